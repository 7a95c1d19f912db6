"""Three common tasks take a few lines each; pages show them beside other libraries."""

import re

import numpy as np
import pytest

import streamridge
from streamridge.datasets import simulate_roads
from tests.support.paths import ROOT

PAGES = ROOT / "docs" / "coming-from"
MOST_LINES = {"backtest": 5, "live-loop": 6, "next-day": 2}


def task(name):
    """Return the code of a task."""
    page = (PAGES / "index.md").read_text()
    found = re.search(rf"\[start:{name}\] -->\n```python\n(.*?)```\n", page, re.DOTALL)
    assert found, name
    return found[1]


@pytest.fixture
def roads(tmp_path, monkeypatch, quick_figures):
    """Return a table of five sensors, which is also the file five.csv in this folder."""
    monkeypatch.chdir(tmp_path)
    frame = simulate_roads(np.random.default_rng(0), detectors=5, days=4).frame("pandas")
    frame.to_csv("five.csv", index=False)
    return frame


@pytest.mark.parametrize("name", MOST_LINES)
def test_a_task_takes_few_lines(name):
    lines = [line for line in task(name).splitlines() if line.strip()]

    assert len(lines) <= MOST_LINES[name]


def test_five_sensors_are_backtested_and_plotted(roads, tmp_path, capsys):
    exec(task("backtest"), {})

    assert {path.stem for path in tmp_path.glob("*.png")} == set(roads.columns[1:])
    assert len(capsys.readouterr().out.splitlines()) == 1 + 5


def test_a_live_loop_continues_after_a_restart(roads, tmp_path, capsys):
    rows = roads[["time", "mainline-1"]]
    given = {"saved": tmp_path / "ramp.sr", "history": rows[:-10]}

    exec(task("live-loop"), {**given, "new_readings": lambda: [rows[-10:-7], rows[-7:-6]]})
    exec(task("live-loop"), {**given, "new_readings": lambda: [rows[-6:]]})  # it starts again

    alone = streamridge.Forecaster.start(rows[:-10])
    alone.observe(rows[-10:])
    assert capsys.readouterr().out.splitlines()[-1] == repr(alone.predict())


def test_the_next_day_of_all_sensors_has_intervals(roads):
    namespace = {}

    exec(task("next-day"), namespace)

    tomorrow = namespace["tomorrow"]
    assert list(tomorrow.columns) == ["sensor", "time", "value", "lower", "upper"]
    assert tomorrow.groupby("sensor").size().to_dict() == dict.fromkeys(roads.columns[1:], 96)
    assert (tomorrow["lower"] <= tomorrow["value"]).all()
    assert (tomorrow["value"] <= tomorrow["upper"]).all()


@pytest.mark.parametrize("library", ["statsforecast", "skforecast", "river", "Prophet"])
def test_the_same_tasks_stand_beside_in_other_libraries(library):
    text = (PAGES / f"{library.lower()}.md").read_text()

    assert re.search(rf"{library} \d+\.\d+\.\d+", text), "with the version it was written for"
    blocks = re.findall(r"``` \{ \.python \}\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == len(MOST_LINES)
    compile("".join(blocks), library, "exec")
    for name in MOST_LINES:
        assert f'"docs/coming-from/index.md:{name}"' in text
