"""What a command writes: never over an input, whole or marked, and files before what is printed."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError
from tests.support.commands import press_after
from tests.support.forecasters import DAY, daily
from tests.support.waiting import LIMIT

QUICK = ["--train-size", "96", "--update-every", "24", "--warmup", "72", "--quiet"]
HEADER = "sensor,method,time,horizon,actual,value,lower,upper"
MINE = "time,ramp\n2021-06-13,1\n"


@pytest.fixture
def flows(tmp_path):
    """Return the path of an hourly file of two sensors."""
    times = pd.date_range("2021-06-13", periods=5 * DAY, freq="h")
    values = {name: daily(5 * DAY, seed=seed) for seed, name in enumerate("ab")}
    path = tmp_path / "flows.csv"
    pd.DataFrame({"time": times, **values}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize("name", ["flows.csv", "./flows.csv", "link.csv", "twin.csv"])
def test_an_input_is_never_replaced(name, force, invoke, flows, tmp_path):
    (tmp_path / "link.csv").symlink_to(flows)
    (tmp_path / "twin.csv").hardlink_to(flows)
    before = flows.read_bytes()

    result = invoke("replay", "flows.csv", *QUICK, "--predictions", name, *force)

    assert result.exit_code == 2
    assert result.stderr.startswith("error: predictions must not replace a file that is read, got ")
    assert flows.read_bytes() == before


def test_a_file_of_holidays_is_an_input_too(invoke, flows, tmp_path):
    (tmp_path / "days.csv").write_text("2021-06-14\n")

    result = invoke(
        *("replay", "flows.csv", *QUICK, "--holidays", "days.csv", "--predictions", "days.csv"),
        "--force",
    )

    assert result.exit_code == 2
    assert (tmp_path / "days.csv").read_text() == "2021-06-14\n"


def test_a_saved_forecaster_never_replaces_an_input(invoke, flows, tmp_path):
    (tmp_path / "models").mkdir()
    os.rename(flows, tmp_path / "models" / "a.sr")

    result = invoke("replay", "models/a.sr", *QUICK, "--save", "models", "--force")

    assert result.exit_code == 2
    assert "error: save must not replace a file that is read, got 'models/a.sr'." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        (["--predictions", "mine.csv"], "mine.csv"),
        (["--predictions", "p.csv"], "p.interrupted.csv"),
        (["--report", "page"], "page/index.html"),
        (["--report", "page"], "page/photo.png"),
        (["--save", "models"], "models/a.sr"),
    ],
)
def test_a_foreign_file_is_replaced_only_with_force(arguments, taken, invoke, flows, tmp_path):
    mine = tmp_path / taken
    mine.parent.mkdir(exist_ok=True)
    mine.write_text(MINE)

    result = invoke("replay", "flows.csv", *QUICK, *arguments)

    assert result.exit_code == 2
    assert f"got '{taken}'. Pass --force to replace it." in result.stderr
    assert mine.read_text() == MINE


def test_with_force_foreign_files_are_replaced(invoke, flows, tmp_path):
    (tmp_path / "mine.csv").write_text(MINE)

    result = invoke("replay", "flows.csv", *QUICK, "--predictions", "mine.csv", "--force")

    assert result.exit_code == 0, result.output
    assert (tmp_path / "mine.csv").read_text().startswith(HEADER)


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.parquet"])
def test_files_of_an_earlier_command_are_replaced(name, invoke, flows):
    arguments = ["replay", "flows.csv", *QUICK, "--sensor", "a", "--steps", "5"]
    arguments += ["--predictions", name, "--save", "models"]

    assert invoke(*arguments).exit_code == 0
    assert invoke(*arguments).exit_code == 0


def test_simulated_roads_replace_only_simulated_roads(invoke, tmp_path):
    (tmp_path / "mine.csv").write_text(MINE)
    quick = ["simulate", "--days", "2", "--detectors", "2"]

    first, again = (invoke(*quick, "--out", "roads.csv", "--seed", seed) for seed in "12")
    refused = invoke(*quick, "--out", "mine.csv")
    forced = invoke(*quick, "--out", "mine.csv", "--force")

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert refused.exit_code == 2
    assert "error: out must be new or replace a file that this command wrote" in refused.stderr
    assert forced.exit_code == 0


def test_the_demo_replaces_no_foreign_file(invoke, tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "index.html").write_text("<html>my page</html>")

    result = invoke("demo", "--days", "2", "--warmup-days", "3")

    assert result.exit_code == 2
    assert os.listdir(tmp_path / "demo") == ["index.html"]


def test_an_output_that_is_written_twice_is_refused(invoke, flows, tmp_path):
    invoke("replay", "flows.csv", *QUICK, "--sensor", "a", "--save", "models")
    (tmp_path / "p.csv").symlink_to(tmp_path / "p.interrupted.csv")

    result = invoke("replay", "flows.csv", *QUICK, "--predictions", "p.csv")

    assert result.exit_code == 2
    assert "predictions must not be written to twice" in result.stderr


def test_the_target_of_a_link_is_replaced_and_the_link_remains(invoke, flows, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "p.csv").symlink_to(tmp_path / "far" / "table.csv")

    result = invoke("replay", "flows.csv", *QUICK, "--predictions", "p.csv")

    assert result.exit_code == 0, result.output
    assert (tmp_path / "p.csv").is_symlink()
    assert (tmp_path / "far" / "table.csv").read_text().startswith(HEADER)


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_predictions_go_to_standard_output_and_the_table_to_standard_error(name, invoke, flows):
    result = invoke("replay", "flows.csv", *QUICK, "--predictions", name)

    table = pd.read_csv(io.StringIO(result.stdout))
    assert result.exit_code == 0
    assert result.stdout.startswith(HEADER)
    assert len(table) == 2 * 48
    assert "RMSE" in result.stderr


def test_predictions_and_json_do_not_share_standard_output(invoke, flows):
    result = invoke("replay", "flows.csv", *QUICK, "--predictions", "-", "--json")

    assert result.exit_code == 2
    assert "error: --predictions - must be left out with --json" in result.stderr


def test_a_device_and_a_named_pipe_are_written_directly(invoke, flows, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()

    piped = invoke("replay", "flows.csv", *QUICK, "--sensor", "a", "--predictions", "pipe")
    reader.join(timeout=LIMIT)
    nowhere = invoke("replay", "flows.csv", *QUICK, "--sensor", "a", "--predictions", "/dev/null")

    assert (piped.exit_code, nowhere.exit_code) == (0, 0)
    assert len(read[0].splitlines()) == 1 + 48
    assert not os.path.isfile("/dev/null")


def test_a_full_disk_fails_only_the_file_on_it(invoke, flows, tmp_path):
    result = invoke(
        *("replay", "flows.csv", *QUICK, "--json"),
        *("--predictions", "/dev/full", "--save", "models"),
    )

    assert result.exit_code == 3
    assert "error: /dev/full must be a file that can be written, got: No space left" in (
        result.stderr
    )
    assert len(result.stdout.splitlines()) == 2
    assert len(os.listdir(tmp_path / "models")) == 2


def test_a_forecaster_that_cannot_be_saved_does_not_fail_its_run(
    invoke, flows, tmp_path, monkeypatch
):
    def refuse(path, content):
        if path.name == "a.sr":
            raise InvalidInputError("models/a.sr must be a file that can be written, got: no room.")

    monkeypatch.setattr("streamridge.runs.tasks.write_bytes", refuse)

    result = invoke("replay", "flows.csv", *QUICK, "--json", "--save", "models")

    assert result.exit_code == 3
    assert result.stderr == (
        "error: a (ohl): models/a.sr must be a file that can be written, got: no room.\n"
    )
    assert [json.loads(line)["sensor"] for line in result.stdout.splitlines()] == ["a", "b"]


def test_after_ctrl_c_results_have_names_with_interrupted(invoke, flows, tmp_path, monkeypatch):
    arguments = ["replay", "flows.csv", *QUICK[:-1], "--predictions", "p.csv"]
    whole = invoke(*arguments)
    before = (tmp_path / "p.csv").read_bytes()
    press_after(monkeypatch, 5 * DAY + 100)

    result = invoke(*arguments, "--report", "page")

    assert (whole.exit_code, result.exit_code) == (0, 130)
    assert (tmp_path / "p.csv").read_bytes() == before
    part = pd.read_csv(tmp_path / "p.interrupted.csv")
    assert part.groupby("sensor").size().to_dict() == {"a": 48, "b": 27}
    assert "(interrupted)" in (tmp_path / "page" / "interrupted" / "index.html").read_text()
    assert not (tmp_path / "page" / "index.html").exists()
    assert "Stopped early: results so far follow." in result.stderr


@pytest.fixture
def hangups():
    """Let hangups end a process, also if the tests were started by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_a_terminal_stops_a_run_like_ctrl_c(
    number, invoke, flows, tmp_path, monkeypatch
):
    press_after(monkeypatch, 100, number)

    result = invoke("replay", "flows.csv", *QUICK, "--predictions", "p.csv")

    assert result.exit_code == 130
    assert len(pd.read_csv(tmp_path / "p.interrupted.csv")) == 27


@pytest.mark.usefixtures("hangups")
def test_a_signal_while_predictions_are_finished_leaves_no_stray_file(
    invoke, flows, tmp_path, monkeypatch
):
    def hang_up(*arguments, **options):
        signal.raise_signal(signal.SIGHUP)

    monkeypatch.setattr("streamridge.cli.output_files.PredictionsTable.finish", hang_up)

    result = invoke("replay", "flows.csv", *QUICK, "--method", "last", "--predictions", "p.csv")

    assert result.exit_code == 130
    assert os.listdir(tmp_path) == ["flows.csv"]


@pytest.mark.usefixtures("hangups")
def test_a_command_that_ignores_hangups_goes_on(invoke, flows, monkeypatch):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    press_after(monkeypatch, 100, signal.SIGHUP)

    result = invoke("replay", "flows.csv", *QUICK, "--sensor", "a")

    assert result.exit_code == 0, result.output


def test_ctrl_c_before_the_first_run_writes_no_file(invoke, flows, tmp_path, monkeypatch):
    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("streamridge.cli.replay.make_tasks", pressed)

    result = invoke("replay", "flows.csv", *QUICK, "--predictions", "p.csv")

    assert result.exit_code == 130
    assert os.listdir(tmp_path) == ["flows.csv"]


def run_in_shell(command, folder):
    """Return the outcome of a shell's command, in which `sr` is this command."""
    sr = f"{sys.executable} -c 'from streamridge.cli.main import run; run()'"
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command.replace('sr ', sr + ' ')}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def test_files_are_complete_although_the_pipe_was_closed(flows, tmp_path):
    flags = " ".join(QUICK)

    done = run_in_shell(f"sr replay flows.csv {flags} --json --predictions p.csv | true", tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 2 * 48


def test_a_full_disk_under_standard_output_is_an_error_after_the_files(flows, tmp_path):
    flags = " ".join(QUICK)

    done = run_in_shell(f"sr replay flows.csv {flags} --predictions p.csv > /dev/full", tmp_path)

    assert done.returncode == 3
    assert done.stderr == (
        "error: standard output must be writable, got: No space left on device.\n"
    )
    assert len(pd.read_csv(tmp_path / "p.csv")) == 2 * 48


def test_a_run_without_a_model_is_marked_and_exits_with_3(invoke, flows):
    early = [*QUICK[:4], "--warmup", "5", "--steps", "20"]

    result = invoke("replay", "flows.csv", "--sensor", "a", *early)

    assert result.exit_code == 3
    assert "ohl *" in result.stdout
    remark = "a (ohl): no model was fitted; all forecasts are naive forecasts."
    assert f"* {remark}" in result.stdout
    assert f"warning: {remark}" in result.stderr


def test_forecasts_before_the_first_fit_are_mentioned(invoke, flows):
    early = [*QUICK[:4], "--warmup", "60"]

    result = invoke("replay", "flows.csv", "--sensor", "a", *early)

    assert result.exit_code == 0
    assert "* a (ohl): the first 12 of 60 forecasts are naive forecasts" in result.stdout


def test_the_papers_model_is_fitted_by_the_end_of_a_short_warm_up(invoke, flows):
    arguments = ["--model", "paper", "--methods", "ohl,random,fixed", "--json", "--sensor", "a"]

    result = invoke("compare", "flows.csv", *QUICK, *arguments)

    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0, result.output
    assert len({record["rmse"] for record in records}) == 3
    assert min(record["fits"] for record in records) > 0


def test_a_fully_excluded_run_has_dashes_instead_of_numbers(invoke, flows):
    result = invoke(
        *("replay", "flows.csv", *QUICK, "--sensor", "a", "--exclude", "2021-06-16/2021-06-30")
    )

    assert "nan" not in result.output
    assert "* a (ohl): no step was scored: all are missing or excluded." in result.stdout


def test_excluded_steps_are_not_missing(invoke, flows):
    excluded = ["--exclude", "2021-06-16T10:00/2021-06-16T12:00"]

    result = invoke("replay", "flows.csv", *QUICK, "--sensor", "a", *excluded, "--json")

    record = json.loads(result.stdout)
    assert (record["missing"], record["excluded"]) == (0, 3)
    assert "missing" not in record["counts"]
    assert record["counts"]["excluded"] == 3


def test_a_full_folder_is_detected_before_any_work(invoke, flows, monkeypatch):
    def refuse(dir):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("streamridge.cli.output_files.TemporaryFile", refuse)

    result = invoke("replay", "flows.csv", *QUICK, "--save", "models")

    assert result.exit_code == 2
    assert (
        "error: save must be a folder that can be written, got 'models': No space left"
        in result.stderr
    )


def test_compressed_predictions_of_interrupted_runs_keep_their_suffix(
    invoke, flows, tmp_path, monkeypatch
):
    press_after(monkeypatch, 100)

    invoke("replay", "flows.csv", *QUICK, "--predictions", "p.csv.gz")

    assert gzip.decompress((tmp_path / "p.interrupted.csv.gz").read_bytes()).startswith(b"sensor,")
    assert np.all([not name.startswith(".p") for name in os.listdir(tmp_path)])


def test_every_sensor_has_a_file_of_its_own_whatever_else_is_saved(invoke, tmp_path):
    names = ["\u5317\u95e8\u6d41\u91cf", "\u5357\u95e8\u6d41\u91cf", "a b", "a_b", "A_b", "a"]
    names += ["a-fixed", "nul"]
    head = ",".join(["time", *names])
    rows = [f"2021-06-{day:02d}," + ",".join("123456789"[: len(names)]) for day in range(1, 20)]
    (tmp_path / "gates.csv").write_text("\n".join([head, *rows]), encoding="utf-8")
    flags = ["--warmup", "0", "--steps", "1", "--quiet", "--save", "models"]

    for name in reversed(names):  # one at a time: no run knows the names of the others
        invoke("replay", "gates.csv", "--sensor", name, *flags)
    one_by_one = {path.name: path.read_bytes() for path in (tmp_path / "models").iterdir()}
    invoke("replay", "gates.csv", "--sensor", "a", "--method", "fixed", *flags)
    invoke("replay", "gates.csv", *flags)

    saved = [Forecaster.load(path) for path in (tmp_path / "models").iterdir()]
    assert sorted(each.settings.sensor for each in saved) == sorted([*names, "a"])
    assert all((tmp_path / "models" / name).exists() for name in one_by_one)
    assert len({path.name.lower() for path in (tmp_path / "models").iterdir()}) == len(saved)
