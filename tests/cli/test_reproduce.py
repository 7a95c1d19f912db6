import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster
from streamridge.cli import reproduce
from streamridge.datasets import simulate_roads
from streamridge.experiments import outputs
from streamridge.experiments.regret import study as regret_study
from streamridge.experiments.synthetic import page as synthetic_page
from streamridge.experiments.synthetic import study as synthetic
from streamridge.experiments.traffic import page as traffic_page
from streamridge.runs.engines import ProcessWorkers
from tests.support.commands import press_after
from tests.support.engine_tasks import kill_this_process
from tests.support.studies import TOY, TOY_REGRET, study_of
from tests.support.waiting import LIMIT

TRAFFIC = ["reproduce", "traffic", "--quick", "--methods", "fixed,ohl"]


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Let quick studies be tiny, and pictures quick to draw."""
    monkeypatch.setattr(reproduce, "QUICK", TOY)
    monkeypatch.setattr(regret_study, "SIZES", (regret_study.FULL, TOY_REGRET))
    monkeypatch.setattr(outputs, "DOTS_PER_INCH", 20)


@pytest.fixture
def plain_pages(monkeypatch):
    """Leave the pictures out."""
    monkeypatch.setattr(outputs, "write_figure", lambda path, figure: None)
    for name in ("figure_of_runtimes", "figure_of_errors"):
        monkeypatch.setattr(traffic_page, name, lambda results, **options: None)
    for name in ("figure_of_forecasts", "figure_of_learning"):
        monkeypatch.setattr(synthetic_page, name, lambda results: None)


@pytest.fixture
def flows(tmp_path):
    """Return the path of a file of two simulated detectors, every 15 minutes."""
    roads = simulate_roads(np.random.default_rng(1), detectors=2, days=3, step_minutes=15)
    path = tmp_path / "flows.csv"
    roads.frame().to_csv(path, index=False)
    return path


def cells(folder):
    """Return the files of a study with the time at which each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}


def test_a_traffic_study_writes_its_files_and_prints_their_path(invoke, tmp_path):
    result = invoke(*TRAFFIC, "--out", "s")

    assert result.exit_code == 0, result.output
    assert f"Open {'s'}{os.sep}index.html in a browser." in result.stderr
    assert result.stdout == ""
    assert {path.name for path in (tmp_path / "s").iterdir()} == {
        *("cells", "study.json", "results.json", "cells.csv", "methods.csv"),
        *("runtime.png", "rmse.png", "index.html"),
    }
    content = json.loads((tmp_path / "s" / "results.json").read_text())
    assert [each["method"] for each in content["methods"]] == ["FIXED", "OHL"]
    assert len(content["cells"]) == 4


def test_a_repeated_command_runs_nothing(invoke, tmp_path, monkeypatch, plain_pages):
    invoke(*TRAFFIC, "--out", "s", "--quiet")
    before = cells(tmp_path / "s")
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    result = invoke(*TRAFFIC, "--out", "s")

    assert result.exit_code == 0, result.output
    assert "4 of 4 runs are already stored." in result.stderr
    assert cells(tmp_path / "s") == before


def test_ctrl_c_keeps_complete_runs_and_the_command_continues(
    invoke, tmp_path, monkeypatch, plain_pages
):
    with monkeypatch.context() as patched:
        press_after(patched, 300)
        first = invoke(*TRAFFIC, "--out", "s")
    before = cells(tmp_path / "s")
    page = (tmp_path / "s" / "index.html").read_text()
    second = invoke(*TRAFFIC, "--out", "s")

    assert (first.exit_code, second.exit_code) == (130, 0)
    assert "Stopped early" in first.stderr
    assert list(before) == ["mainline-1-fixed.run"]
    assert "Not finished: this page shows 1 of 4 runs." in page
    assert "Not finished" not in (tmp_path / "s" / "index.html").read_text()
    assert "1 of 4 runs is already stored." in second.stderr
    after = cells(tmp_path / "s")
    assert len(after) == 4
    assert after["mainline-1-fixed.run"] == before["mainline-1-fixed.run"]


def test_a_study_stopped_before_its_first_run_writes_no_page(invoke, tmp_path, monkeypatch):
    press_after(monkeypatch, 10)

    assert invoke(*TRAFFIC, "--out", "s").exit_code == 130
    assert not (tmp_path / "s" / "index.html").exists()


def test_a_detector_that_fails_does_not_stop_the_others(invoke, flows, tmp_path, plain_pages):
    table = pd.read_csv(flows)
    table.loc[200, "mainline-1"] = 1e13
    table.to_csv(flows, index=False)

    result = invoke(*TRAFFIC, "--data", "flows.csv", "--out", "s", "--quiet")

    assert result.exit_code == 3
    said = "at 2017-01-03T02:00:00: value must be at most 1e+12"
    assert f"error: mainline-1 (FIXED): {said}" in result.stderr
    assert set(cells(tmp_path / "s")) == {"mainline-2-fixed.run", "mainline-2-ohl.run"}
    assert (
        "Not finished: this page shows 2 of 4 runs" in (tmp_path / "s" / "index.html").read_text()
    )


def test_a_crashed_worker_is_reported_and_the_others_continue(
    invoke, tmp_path, monkeypatch, plain_pages
):
    submit = ProcessWorkers.submit

    def deadly_at_the_second_cell(workers, number, call):
        return submit(workers, number, kill_this_process if number == 1 else call)

    monkeypatch.setattr(ProcessWorkers, "submit", deadly_at_the_second_cell)

    result = invoke(*TRAFFIC, "--out", "s", "--jobs", "2", "--quiet")

    assert result.exit_code == 3
    assert "error: mainline-1 (OHL): its worker process died 2 times." in result.stderr
    assert set(cells(tmp_path / "s")) == {
        *("mainline-1-fixed.run", "mainline-2-fixed.run", "mainline-2-ohl.run"),
    }


def test_other_detectors_can_be_added_to_a_study(invoke, flows, tmp_path, plain_pages):
    asked = [*TRAFFIC, "--data", "flows.csv", "--out", "s"]
    first = invoke(*asked, "--sensor", "mainline-1")
    before = cells(tmp_path / "s")

    second = invoke(*asked, "--sensor", "mainline-2")

    assert (first.exit_code, second.exit_code) == (0, 0), second.output
    after = cells(tmp_path / "s")
    assert {name: after[name] for name in before} == before
    content = json.loads((tmp_path / "s" / "results.json").read_text())
    assert {cell["detector"] for cell in content["cells"]} == {"mainline-1", "mainline-2"}
    again = invoke(*shlex.split(content["command"])[1:], "--out", "s")
    assert "4 of 4 runs are already stored." in again.stderr


def test_the_settings_of_the_authors_code_can_be_chosen(invoke, tmp_path, plain_pages):
    result = invoke(*TRAFFIC, "--model", "paper-prototype", "--out", "s", "--quiet")
    again = invoke(*TRAFFIC, "--out", "s", "--quiet")

    assert (result.exit_code, again.exit_code) == (0, 2)
    assert "with another setting of 'fixed', 'ohl'. Choose another folder" in again.stderr
    content = json.loads((tmp_path / "s" / "results.json").read_text())
    assert "--model paper-prototype" in content["command"]


PROGRAM = """
import sys
from streamridge.cli import main, reproduce
from streamridge.experiments.traffic.study import TrafficSize
from streamridge.runs import tasks

reproduce.QUICK = TrafficSize(2, 12, warmup=150, steps=900, train_size=250, validation_size=40,
                       update_every=2, tune_every=96)
write = tasks.write_run


def written_and_said(path, run):
    write(path, run)
    print("a run is kept", flush=True)


tasks.write_run = written_and_said
if __name__ == "__main__":
    main.app(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [["--jobs", "1"], ["--jobs", "2"], ["--engine", "dask", "--jobs", "2"]], ids=" ".join
)
def test_an_interrupt_stops_a_study_cleanly(how, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), *TRAFFIC, "--out", "s", *how]
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout.readline() == "a run is kept\n"

    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=LIMIT)  # ends once no process holds the other end

    assert running.returncode == 130, said
    assert "Stopped early" in said
    assert "Traceback" not in said
    assert 1 <= len(cells(tmp_path / "s")) < 4
    assert "Not finished" in (tmp_path / "s" / "index.html").read_text()


@pytest.mark.slow
def test_several_processes_give_the_same_results_as_one(invoke, tmp_path):
    for jobs in ("1", "2"):
        result = invoke(*TRAFFIC, "--out", jobs, "--jobs", jobs, "--quiet")
        assert result.exit_code == 0, result.output

    tables = [pd.read_csv(tmp_path / jobs / "cells.csv") for jobs in ("1", "2")]
    same = [name for name in tables[0] if not name.startswith("seconds_")]
    pd.testing.assert_frame_equal(tables[0][same], tables[1][same], check_exact=True)


def test_quiet_prints_nothing(invoke, plain_pages):
    result = invoke(*TRAFFIC, "--out", "s", "--quiet")

    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_the_page_names_the_command_that_repeats_the_study(invoke, flows, tmp_path, plain_pages):
    arguments = ["--data", "flows.csv", "--sensor", "mainline-1", "--steps", "50", "--seed", "3"]

    invoke(*TRAFFIC, *arguments, "--out", "s", "--quiet")

    command = json.loads((tmp_path / "s" / "results.json").read_text())["command"]
    again = invoke(*shlex.split(command)[1:], "--out", "t", "--quiet")
    assert again.exit_code == 0, again.output
    one, other = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("s", "t"))
    assert one["command"] == other["command"]
    assert [cell["rmse"] for cell in one["cells"]] == [cell["rmse"] for cell in other["cells"]]
    assert {cell["detector"] for cell in one["cells"]} == {"mainline-1"}
    assert {cell["scored"] for cell in one["cells"]} == {50}


def test_finer_counts_are_summed_to_15_minutes(invoke, tmp_path, plain_pages):
    times = pd.date_range("2021-06-13", periods=3 * 288, freq="5min")
    counts = np.random.default_rng(0).poisson(20, len(times))
    pd.DataFrame({"time": times, "ramp": counts}).to_csv(tmp_path / "fine.csv", index=False)

    result = invoke(*TRAFFIC, "--data", "fine.csv", "--out", "s", "--methods", "fixed")

    assert result.exit_code == 0, result.output
    rmse = pd.read_csv(tmp_path / "s" / "cells.csv").rmse[0]
    assert 60**0.5 * 0.8 < rmse < 60**0.5 * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "ohl,magic"], "error: method must be one of 'fixed', 'ohl', "),
        (["--out", "flows.csv"], "error: out must be a folder that can be written"),
        (["--out", "flows.csv/s"], "error: out must be a folder that can be written"),
        (["--data", "nowhere.csv"], "error: nowhere.csv"),
        (["--data", "flows.csv", "--sensor", "x"], "error: sensors must be among 'mainline-1'"),
        (
            ["--data", "short.csv"],
            "error: mainline-1: the series must have more than the 150 steps of the warm-up, got "
            "100.",
        ),
        (["--data", "hourly.csv"], "data must have a reading every 15min, got one every 1h."),
        (["--data", "d07_*.gz"], "--data must match a file, got 'd07_*.gz', which matches none."),
        (["--sensor", "ramp-3"], "error: --sensor, --from and --to must come with --data"),
        (
            ["--out", "other"],
            "another seed and series of 'mainline-1', 'mainline-2'. Choose another folder",
        ),
        (
            ["--out", "damaged", "--seed", "5"],
            "mainline-1-fixed.run is not a streamridge checkpoint. Or remove the file",
        ),
    ],
)
def test_invalid_requests_are_refused_before_any_work(
    arguments, message, invoke, flows, tmp_path, monkeypatch
):
    hourly = pd.read_csv(flows).iloc[::4]
    hourly.to_csv(tmp_path / "hourly.csv", index=False)
    pd.read_csv(flows).iloc[:100].to_csv(tmp_path / "short.csv", index=False)
    seeded = study_of(tmp_path / "other", seed=5)
    seeded.prepare()
    damaged = replace(seeded, folder=tmp_path / "damaged")
    damaged.prepare()
    damaged.cells()[0].keep_in.write_bytes(b"rubbish")
    monkeypatch.setattr(Forecaster, "predict", pytest.fail)

    result = invoke(
        "reproduce",
        "traffic",
        "--quick",
        *(() if "--out" in arguments else ("--out", "s")),
        *arguments,
    )

    assert result.exit_code == 2, result.output
    assert message in result.stderr


@pytest.mark.parametrize("study", ["synthetic", "traffic", "regret"])
def test_a_folder_that_cannot_be_written_is_refused_by_every_study(study, invoke, tmp_path):
    (tmp_path / "file").write_text("")

    result = invoke("reproduce", study, "--quick", "--out", "file")

    assert result.exit_code == 2
    assert "error: out must be a folder that can be written, got 'file': " in result.stderr


@pytest.mark.parametrize("study", ["synthetic", "traffic", "regret"])
def test_help_ends_with_an_example_that_runs(study, invoke, tmp_path, monkeypatch, plain_pages):
    few = reproduce_steps(monkeypatch)
    words = " ".join(invoke("reproduce", study, "--help").stdout.split())
    (text,) = re.findall(r"Example: streamridge (.*? --out \w+)", words)
    example = shlex.split(text)

    result = invoke(*example)

    assert result.exit_code == 0, result.output
    assert (tmp_path / example[-1] / "index.html").exists()
    assert few == ([3] if study == "synthetic" else [])


def reproduce_steps(monkeypatch):
    """Let synthetic runs be short, and return a list of how many seeds were asked for."""
    run, asked = synthetic.run_synthetic, []

    def short(seeds, **options):
        asked.append(len(seeds))
        return run(seeds, 30, **options)

    monkeypatch.setattr(synthetic, "run_synthetic", short)
    return asked


def test_ctrl_c_keeps_complete_plays_and_the_command_continues(invoke, tmp_path, monkeypatch):
    command = ["reproduce", "regret", "--quick", "--out"]
    with monkeypatch.context() as patched:
        patched.setattr(regret_study, "play_leader", interrupted)
        first = invoke(*command, "r")
    kept = {file.name: file.read_bytes() for file in (tmp_path / "r" / "plays").iterdir()}
    second = invoke(*command, "r")
    whole = invoke(*command, "whole")

    assert (first.exit_code, second.exit_code, whole.exit_code) == (130, 0, 0)
    assert "Stopped early: 2 of 4 methods are stored in r." in first.stderr
    assert set(kept) == {"lazy_m_1.play", "lazy_m_4.play"}
    assert "2 of 4 methods are already stored." in second.stderr
    assert {name: (tmp_path / "r" / "plays" / name).read_bytes() for name in kept} == kept
    assert regret_numbers(tmp_path / "r") == regret_numbers(tmp_path / "whole")


def interrupted(game, **options):
    """Press Ctrl-C in the middle of a play."""
    signal.raise_signal(signal.SIGINT)


def regret_numbers(folder):
    """Return the results of an experiment on regret without seconds, which always differ."""
    records = json.loads((folder / "results.json").read_text())["records"]
    return [{name: each[name] for name in each if name != "seconds"} for each in records]


def test_another_study_of_regret_in_the_same_folder_is_refused(invoke, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(regret_study, "play_lazily", interrupted)
        invoke("reproduce", "regret", "--quick", "--out", "r")

    other = invoke("reproduce", "regret", "--quick", "--seed", "4", "--out", "r")

    assert other.exit_code == 2
    assert "with another seed. Choose another folder, or remove this one." in other.stderr


def test_a_damaged_play_is_named_with_a_remedy(invoke, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(regret_study, "play_lazily", interrupted)
        invoke("reproduce", "regret", "--quick", "--out", "r")
    (tmp_path / "r" / "plays" / "lazy_m_4.play").write_bytes(b"rubbish")

    result = invoke("reproduce", "regret", "--quick", "--out", "r")

    assert result.exit_code == 2
    assert "lazy_m_4.play is not a streamridge checkpoint. Or remove the file" in result.stderr


def test_the_seed_of_regret_is_in_its_results(invoke, tmp_path):
    result = invoke("reproduce", "regret", "--quick", "--seed", "4", "--out", "r", "--quiet")

    assert (result.exit_code, result.stderr) == (0, "")
    content = json.loads((tmp_path / "r" / "results.json").read_text())
    assert content["seed"] == 4
    assert content["command"] == "streamridge reproduce regret --seed 4 --quick"


def test_the_full_synthetic_study_has_every_interpretation(
    invoke, tmp_path, monkeypatch, plain_pages
):
    asked = reproduce_steps(monkeypatch)

    invoke("reproduce", "synthetic", "--seeds", "1", "--out", "s", "--quiet")

    content = json.loads((tmp_path / "s" / "results.json").read_text())
    assert asked == [1]
    assert len(content["readings"]) == 9
    assert content["command"] == "streamridge reproduce synthetic --seeds 1"


def test_methods_can_be_added_to_a_study(invoke, tmp_path, plain_pages):
    invoke("reproduce", "traffic", "--quick", "--methods", "fixed", "--out", "s", "--quiet")

    result = invoke("reproduce", "traffic", "--quick", "--methods", "grid", "--out", "s")

    assert "already" not in result.stderr
    assert len(cells(tmp_path / "s")) == 4
    content = json.loads((tmp_path / "s" / "results.json").read_text())
    assert [each["method"] for each in content["methods"]] == ["FIXED", "GRID"]
    assert "--methods fixed,grid" in content["command"]
    assert content["methods"][1]["improvement"] is not None


def test_an_unknown_method_is_refused_before_a_file_is_read(invoke):
    result = invoke("reproduce", "traffic", "--data", "none.csv", "--methods", "magic")

    assert result.exit_code == 2
    assert "got 'magic'" in result.stderr


def station_row(time, station, kind, flow):
    """Return a row of a station file of I-210."""
    stamp = time.strftime("%m/%d/%Y %H:%M:%S")
    return f"{stamp},{station},7,210,E,{kind},.5,30,100,{flow},.05,65,10,.05,65"


def test_the_months_of_the_paper_are_read_from_station_files(invoke, tmp_path, plain_pages):
    rng = np.random.default_rng(0)
    for day in pd.date_range("2017-01-01", periods=3):
        rows = [
            station_row(time, station, kind, rng.poisson(40))
            for time in pd.date_range(day, periods=288, freq="5min")
            for station, kind in ((716078, "ML"), (717046, "OR"), (999999, "ML"))
        ]
        name = tmp_path / f"d07_text_station_5min_{day:%Y_%m_%d}.txt.gz"
        name.write_bytes(gzip.compress("\n".join(rows).encode()))

    result = invoke(
        *TRAFFIC,
        *("--data", "d07_text_station_5min_2017_0*.txt.gz"),
        *("--sensor", "716078", "--sensor", "717046", "--to", "2017-05-16T23:59", "--out", "s"),
    )

    assert result.exit_code == 0, result.output
    runs = json.loads((tmp_path / "s" / "results.json").read_text())["cells"]
    assert {run["detector"] for run in runs} == {"716078", "717046"}
    assert {run["scored"] for run in runs} == {100}
