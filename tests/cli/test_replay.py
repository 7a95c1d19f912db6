import gzip
import json
import shlex

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster
from streamridge.files.checkpoint import MAGIC
from tests.support.forecasters import DAY, daily

QUICK = ["--train-size", "96", "--update-every", "48", "--quiet"]


@pytest.fixture
def flows(tmp_path):
    """Return the path of an hourly file of two sensors with a gap, a duplicate and a conflict."""
    times = pd.date_range("2021-06-13", periods=5 * DAY, freq="h")
    table = pd.DataFrame({"time": times, "ramp": daily(5 * DAY), "main": daily(5 * DAY, seed=1)})
    table = table.drop(index=range(80, 84))
    again = table.iloc[[5, 6]].assign(ramp=[table.ramp[5], 0.0])
    path = tmp_path / "flows.csv"
    pd.concat([table, again]).to_csv(path, index=False)
    return path


def test_a_file_is_replayed_and_its_defects_are_counted(invoke, flows):
    result = invoke("replay", str(flows), *QUICK[:-1])

    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    assert "ramp: 120 steps of 1h" in said
    assert "3 duplicates" not in said
    assert "1 duplicate, 1 conflict, 2 out of order, 4 missing" in said
    assert "main: 120 steps of 1h" in said
    for word in ("sensor", "RMSE", "coverage", "ramp", "main", "ohl"):
        assert word in result.stdout


def test_json_is_one_object_per_sensor_and_method(invoke, flows):
    result = invoke("replay", str(flows), *QUICK, "--json", "--method", "ohl", "--method", "fixed")

    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(record["sensor"], record["method"]) for record in records] == [
        *(("ramp", "ohl"), ("ramp", "fixed"), ("main", "ohl"), ("main", "fixed")),
    ]
    assert records[0]["counts"]["conflicts"] == 1
    assert records[0]["scored"] + records[0]["missing"] == 48
    assert result.stderr == ""


def test_predictions_contain_every_forecast(invoke, flows, tmp_path):
    for name in ("p.csv", "p.csv.gz", "p.parquet"):
        arguments = ["--horizon", "2", "--predictions", name, "--sensor", "ramp"]
        result = invoke("replay", str(flows), *QUICK, *arguments)

        assert result.exit_code == 0, result.output
        read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
        table = read(tmp_path / name)
        assert len(table) == 2 * 48
        assert set(table.horizon) == {1, 2}
        assert table.value.notna().all()


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_each_of_several_levels_has_its_columns(name, invoke, flows, tmp_path):
    arguments = ["--level", "0.8,0.95", "--predictions", name, "--sensor", "ramp"]

    result = invoke("replay", str(flows), *QUICK, *arguments)

    assert result.exit_code == 0, result.output
    assert "80% coverage  95% coverage" in result.stdout
    table = (pd.read_parquet if name.endswith("parquet") else pd.read_csv)(tmp_path / name)
    assert list(table.columns[5:]) == ["value", "lower_80", "upper_80", "lower_95", "upper_95"]
    assert (table.lower_95 <= table.lower_80).all()
    assert (table.upper_95 >= table.upper_80).all()


def test_levels_and_bounds_are_used_in_json_and_the_saved_forecaster(invoke, flows, tmp_path):
    arguments = ["--level", "0.95,0.5", "--bounds", "-10,140", "--save", "models", "--json"]

    result = invoke("replay", str(flows), *QUICK, *arguments, "--sensor", "main")

    record = json.loads(result.stdout)
    assert {"coverage_95", "coverage_50"} <= set(record)
    assert record["counts"]["implausible"] > 0
    saved = Forecaster.load(tmp_path / "models" / "main.sr")
    assert (saved.settings.level, saved.settings.bounds) == ((0.95, 0.5), (-10.0, 140.0))
    shown = " ".join(invoke("inspect", "models/main.sr").stdout.split())
    assert "intervals 95% and 50%" in shown
    assert "bounds -10,140" in shown
    facts = json.loads(invoke("inspect", "models/main.sr", "--json").stdout)
    assert facts["forecast"]["upper_50"] == saved.predict(level=0.5).upper.tolist()


def test_help_ends_with_an_example_that_runs(invoke, tmp_path):
    example = invoke("replay", "--help").stdout.partition("Example:\n  ")[2].strip()
    invoke("simulate", "--out", "roads.csv", "--days", "4", "--detectors", "1")

    result = invoke(*shlex.split(example)[1:], *QUICK)

    assert result.exit_code == 0, result.output
    assert "95% coverage" in result.stdout
    assert "coverage, 95%" in (tmp_path / "report" / "index.html").read_text()


def test_a_report_is_written(invoke, flows, tmp_path):
    result = invoke("replay", str(flows), *QUICK, "--sensor", "ramp", "--report", "r")

    assert result.exit_code == 0, result.output
    assert "Replay of flows.csv" in (tmp_path / "r" / "index.html").read_text()


def test_a_saved_forecaster_can_be_inspected_and_loaded(invoke, flows, tmp_path):
    invoke("replay", str(flows), *QUICK, "--sensor", "ramp", "--save", "models")
    path = tmp_path / "models" / "ramp.sr"

    shown = invoke("inspect", str(path))
    facts = json.loads(invoke("inspect", str(path), "--json").stdout)

    assert shown.exit_code == 0, shown.output
    for word in (
        "sensor      ramp\nstep        1h, horizon 1",
        "regularization",
        "weight.linear",
        "forecast by model",
    ):
        assert word in shown.stdout
    experts = Forecaster.load(path).tuning.experts
    name, share = max(experts.items(), key=lambda pair: pair[1])
    assert f"experts     {name} {share:.0%}" in shown.stdout
    assert facts["experts"] == experts
    forecast = Forecaster.load(path).predict()
    assert facts["forecast"]["value"] == forecast.value.tolist()
    assert facts["bytes"] == path.stat().st_size
    assert facts["settings"]["sensor"] == "ramp"


def test_a_damaged_checkpoint_is_refused(invoke, tmp_path):
    (tmp_path / "bad.sr").write_bytes(MAGIC + bytes(99))

    result = invoke("inspect", "bad.sr")

    assert result.exit_code == 2
    assert "error: bad.sr is damaged" in result.stderr


def test_standard_input_is_read(invoke, flows):
    result = invoke(
        *("replay", "-", *QUICK, "--json", "--sensor", "ramp"), input=flows.read_bytes()
    )

    assert json.loads(result.stdout)["sensor"] == "ramp"


def test_several_processes_give_the_same_results_as_one(invoke, flows):
    alone, together = (
        [
            json.loads(line)["rmse"]
            for line in invoke("replay", str(flows), *QUICK, "--json", "--jobs", jobs)
            .stdout.strip()
            .splitlines()
        ]
        for jobs in ("1", "2")
    )

    assert alone == together


def test_a_part_of_the_file_can_be_selected(invoke, flows):
    result = invoke(
        *("replay", str(flows), *QUICK, "--json", "--sensor", "ramp"),
        *("--from", "2021-06-13T12:00", "--to", "2021-06-17T11:00", "--warmup", "80"),
        *("--steps", "10"),
    )

    record = json.loads(result.stdout)
    assert record["steps"] == 90
    assert record["scored"] + record["missing"] == 10


def test_station_files_of_five_minutes_are_summed(invoke, tmp_path):
    rng = np.random.default_rng(0)
    for day in range(1, 7):
        lines = []
        for minute in range(0, 1440, 5):
            stamp = f"01/{day:02d}/2017 {minute // 60:02d}:{minute % 60:02d}:00"
            flow = 20 + 10 * np.sin(2 * np.pi * minute / 1440) + rng.integers(0, 5)
            lines.append(f"{stamp},717046,7,210,E,ML,.5,30,100,{flow:.0f},.05,65,10,.05,65")
        name = tmp_path / f"d07_text_station_5min_2017_01_{day:02d}.txt.gz"
        name.write_bytes(gzip.compress("\n".join(lines).encode()))
    files = sorted(str(path) for path in tmp_path.glob("d07*"))

    result = invoke("replay", *files, *QUICK, "--json", "--sensor", "717046", "--step", "15min")

    record = json.loads(result.stdout)
    assert (record["sensor"], record["steps"]) == ("717046", 6 * 96)
    assert record["rmse"] < 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "error: nowhere.csv"),
        (["flows.csv", "--sensor", "x"], "sensor"),
        (["flows.csv", "--step", "0min"], "error: step must be positive, got '0min'."),
        (["flows.csv", "--step", "15"], "error: ramp: step must be a time such as 15min, as its"),
        (["flows.csv", "--seasons", "1d,1d"], "error: seasons must be distinct, got ('1d', '1d')."),
        (["flows.csv", "--seasons", "often"], "error: season must be a time such as 15min"),
        (["flows.csv", "--tz", "Mars"], "error: tz must be the name of a time zone"),
        (["flows.csv", "--level", "90"], "error: level must lie between 0 and 1, got 90.0."),
        (
            ["flows.csv", "--from", "soon"],
            "error: --from (from_= in Python) must be an ISO 8601 time",
        ),
        (
            ["flows.csv", "--from", "2031-01-01"],
            "error: ramp: readings from 2031-01-01",
        ),
        (
            ["flows.csv", "--warmup", "500"],
            "error: ramp: the series must have more than the 500 steps of the warm-up, got 120.",
        ),
        (
            ["flows.csv", "--predictions", "p.txt"],
            "error: path must end in .csv, .csv.gz, .parquet",
        ),
        (["flows.csv", "--report", "flows.csv"], "error: report must be a folder that can be"),
        (["flows.csv", "--method", "magic"], "magic"),
    ],
)
def test_invalid_requests_are_refused_before_any_work(arguments, message, invoke, flows):
    result = invoke("replay", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def test_a_bad_cell_is_named_by_line_and_column_or_skipped(invoke, flows):
    lines = flows.read_text().splitlines()
    lines[90] = lines[90].replace(lines[90].split(",")[1], "n/a")
    flows.write_text("\n".join(lines))

    refused = invoke("replay", "flows.csv", *QUICK)
    skipped = invoke("replay", "flows.csv", *QUICK, "--json", "--gap", "skip")

    assert refused.exit_code == 2
    assert "flows.csv line 91, column ramp: must be a number, got 'n/a'." in refused.stderr
    assert "--gap skip" in refused.stderr
    assert json.loads(skipped.stdout.splitlines()[0])["counts"]["skipped"] == 1


def test_names_may_have_brackets_and_non_latin_letters(invoke, flows, tmp_path):
    lines = flows.read_text().splitlines()
    lines[0] = "time,[/x]\u5317,\u5357"
    flows.write_text("\n".join(lines), encoding="utf-8")

    result = invoke("replay", "flows.csv", *QUICK, "--save", "models", "--predictions", "p.csv")

    assert result.exit_code == 0, result.output
    assert "[/x]" in result.stdout
    assert len(list((tmp_path / "models").iterdir())) == 2


def test_simulated_roads_can_be_replayed(invoke, tmp_path):
    made = invoke("simulate", "--out", "roads.csv.gz", "--days", "4", "--detectors", "3")

    assert made.exit_code == 0, made.output
    result = invoke("replay", "roads.csv.gz", *QUICK, "--json", "--sensor", "ramp-3")
    assert json.loads(result.stdout)["scored"] == 96


def test_the_same_seed_simulates_the_same_roads(invoke, tmp_path):
    for name in ("a.csv", "b.csv"):
        invoke("simulate", "--out", name, "--days", "2", "--seed", "7")

    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_excluded_times_are_counted_and_keep_their_forecasts(invoke, flows, tmp_path):
    span = ("--exclude", "2021-06-17T00:00/2021-06-17T05:00")
    only = ("--sensor", "main", "--predictions", "forecasts.csv")

    result = invoke("replay", str(flows), *QUICK[:-1], *span, *only, "--json")

    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert (record["scored"], record["excluded"], record["missing"]) == (38, 6, 4)
    assert "main (ohl): 6 excluded" in result.stderr
    assert pd.read_csv(tmp_path / "forecasts.csv")["value"].notna().sum() == 48


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("2021-06-17", "exclude must be START/END"),
        ("2021-06-17/2021-06-16", "exclude must not end before it starts"),
        ("2021-06-17/soon", "exclude must be START/END"),
    ],
)
def test_a_bad_span_is_refused_before_any_work(invoke, flows, tmp_path, span, message):
    result = invoke("compare", str(flows), *QUICK, "--exclude", span, "--save", "models")

    assert result.exit_code == 2
    assert f"error: {message}" in result.stderr
    assert not (tmp_path / "models").exists()


def test_holidays_come_from_a_file_or_a_country_code(invoke, flows, tmp_path):
    (tmp_path / "dates.txt").write_text("\ufeff# free\n2021-06-16  # Wednesday\n\n2021-06-14\n")
    only = ("--sensor", "main", "--save")

    dates = invoke("replay", str(flows), *QUICK, "--holidays", "dates.txt", *only, "dates")
    country = invoke("replay", str(flows), *QUICK, "--holidays", "de-be", *only, "country")

    for result in (dates, country):
        assert result.exit_code == 0, result.output
    saved = [Forecaster.load(tmp_path / name / "main.sr") for name in ("dates", "country")]
    wanted = [("2021-06-14", "2021-06-16"), "DE-BE"]
    assert [each.settings.holidays for each in saved] == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("XX", "holidays must be a country's code such as DE or GB-ENG, or dates"),
        ("none.txt", "holidays must be a country's code such as DE, or a text file of dates"),
        ("empty.txt", "empty.txt must hold at least one date such as 2024-12-25, got none"),
        ("bad.txt", "bad.txt line 2: a holiday must be a date such as 2024-12-25, got 'someday'"),
    ],
)
def test_bad_holidays_are_refused_before_any_work(invoke, flows, tmp_path, given, message):
    (tmp_path / "empty.txt").write_text("\n# none\n")
    (tmp_path / "bad.txt").write_text("2021-06-16\nsomeday # or other\n")

    result = invoke("replay", str(flows), *QUICK, "--holidays", given, "--save", "models")

    assert result.exit_code == 2
    assert f"error: {message}" in result.stderr
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(("flags", "start"), [([], "default"), (["--start", "search"], "search")])
def test_the_start_is_used_in_the_saved_forecaster(invoke, flows, tmp_path, flags, start):
    save = ["--save", "saved", "--sensor", "main"]

    result = invoke("replay", str(flows), *QUICK, *save, *flags)

    assert result.exit_code == 0, result.output
    (saved,) = (tmp_path / "saved").glob("main*")
    assert Forecaster.load(saved).settings.start == start


def test_an_unknown_start_is_refused(invoke, flows):
    result = invoke("compare", str(flows), "--start", "best")

    assert result.exit_code == 2
    assert "'best' is not one of 'default', 'search'" in result.output


def test_a_dry_run_prints_an_estimate_and_writes_nothing(invoke, flows, tmp_path):
    before = sorted(tmp_path.iterdir())

    result = invoke("replay", str(flows), "--dry-run", "--predictions", "p.csv", "--report", "r")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("2 runs of 120 steps (2 sensors, ")
    assert "MB of memory in 1 process." in result.stdout
    assert sorted(tmp_path.iterdir()) == before


def test_a_dry_run_in_json_is_one_object(invoke, flows):
    result = invoke("replay", str(flows), "--dry-run", "--json", "--quiet", "--method", "ohl,fixed")

    estimate = json.loads(result.stdout)
    assert [estimate[name] for name in ("sensors", "runs", "steps", "processes")] == [2, 4, 120, 1]
    assert estimate["fits"] > 0
    assert estimate["seconds"] > 0
    assert estimate["megabytes"] > 50


def test_smaller_models_have_smaller_estimates(invoke, flows):
    flags = ["--dry-run", "--json", "--quiet", "--train-size", "2880", "--warmup", "72"]
    needs = [
        json.loads(invoke("replay", str(flows), *flags, "--model", model).stdout)["megabytes"]
        for model in ("compact", "default", "long")
    ]

    assert needs == sorted(set(needs))


def test_a_budget_prints_the_chosen_model(invoke, flows):
    result = invoke("replay", str(flows), "--budget", "0.1s/sensor/day", "--steps", "20")

    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    assert "Budget of 0.1s/sensor/day: " in said
    assert "landmarks" in said
    assert "RMSE" in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--budget", "much"], "budget must be processor time such as '0.1s/sensor/day'"),
        (["--budget", "1ns/sensor/day"], "budget must be processor time such as"),
        (["--budget", "0.001ms/sensor/day"], "budget must be at least"),
        (["--budget", "1s/day", "--train-size", "96"], "train_size must be left out with a budget"),
        (["--budget", "1s/day", "--model", "compact"], "model must be left out with a budget"),
        (["--budget", "1s/day", "--model", "paper"], "budget must be left out with the paper's"),
    ],
)
def test_impossible_budgets_are_refused(invoke, flows, flags, message):
    result = invoke("replay", str(flows), *flags)

    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("model", ["compact", "long", "paper-prototype"])
def test_ready_made_models_are_replayed(invoke, flows, model):
    flags = [*QUICK, "--model", model, "--json", "--sensor", "ramp", "--warmup", "72"]
    result = invoke("replay", str(flows), *flags)

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rmse"] > 0
