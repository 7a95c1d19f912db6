from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from streamridge import Forecaster, StateError, replay
from streamridge.files.checkpoint import read_checkpoint, write_checkpoint
from streamridge.forecaster.methods import tuned_by
from streamridge.runs.expert_path import ExpertPath
from streamridge.runs.run_files import read_run, write_run
from tests.forecaster.test_forecaster import DAY, daily, small
from tests.runs.test_replay import frame


@pytest.fixture(scope="module")
def searched():
    """Return a run with gaps, two steps ahead, with a path and counts of every kind."""
    values = daily(5 * DAY)
    values[90:93] = np.nan
    settings = small(horizon=2, train_size=96, tune_every=DAY).settings
    return replay(Forecaster.of(tuned_by("random", settings)), frame(values))


def assert_same(one, other):
    for part in fields(one):
        if part.name == "backend":  # of this process, not of the run
            continue
        mine, yours = getattr(one, part.name), getattr(other, part.name)
        if part.name == "path" and mine is not None:
            assert mine.names == yours.names
            np.testing.assert_array_equal(mine.steps, yours.steps)
            np.testing.assert_array_equal(mine.values, yours.values)
        elif part.name == "yardsticks":
            assert list(mine) == list(yours)
            for name in mine:
                np.testing.assert_array_equal(mine[name], yours[name])
        elif isinstance(mine, np.ndarray):
            assert mine.dtype.kind == yours.dtype.kind
            np.testing.assert_array_equal(mine, yours)
        else:
            assert mine == yours, part.name


def test_a_run_comes_back_as_it_was(searched, tmp_path):
    write_run(tmp_path / "a.run", searched)

    back = read_run(tmp_path / "a.run")

    assert_same(searched, back)
    assert searched.counts["tuning_fits"] > 0
    assert np.isnan(back.actual).sum() == 3
    assert back.record() == searched.record()


def test_a_run_of_several_levels_comes_back_as_it_was(tmp_path):
    run = replay(small(level=(0.95, 0.8)), frame(daily(4 * DAY)))

    write_run(tmp_path / "a.run", run)

    assert_same(run, read_run(tmp_path / "a.run"))


def test_a_run_without_a_model_comes_back_without_a_path(tmp_path):
    run = replay(small(), frame(daily(2 * DAY)), warmup=DAY)

    write_run(tmp_path / "a.run", run)

    assert run.path is None
    assert_same(run, read_run(tmp_path / "a.run"))


def test_the_weights_of_the_experts_come_back_and_earlier_files_have_none(searched, tmp_path):
    path = tmp_path / "a.run"
    write_run(path, searched)
    header, arrays = read_checkpoint(path)

    back = read_run(path).expert_path
    del header["experts"]
    write_checkpoint(path, header, arrays)

    assert back.names == ("model", "week", "day", "last")
    assert back == searched.expert_path
    assert read_run(path).expert_path == ExpertPath.empty()


def test_a_run_that_was_stopped_says_so(searched, tmp_path):
    stopped = replace(searched, interrupted=True)

    write_run(tmp_path / "a.run", stopped)

    assert_same(stopped, read_run(tmp_path / "a.run"))


def test_a_damaged_file_is_refused(searched, tmp_path):
    path = tmp_path / "a.run"
    write_run(path, searched)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with pytest.raises(StateError, match=r"a\.run is damaged: it was cut short or altered"):
        read_run(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "a.sr"
    small().save(path)

    with pytest.raises(StateError, match=r"a\.sr must hold a run, got 'forecaster'"):
        read_run(path)


def test_a_file_that_lacks_a_part_is_refused(searched, tmp_path):
    path = tmp_path / "a.run"
    write_run(path, searched)
    header, arrays = read_checkpoint(path)
    del header["costs"]
    write_checkpoint(path, header, arrays)

    with pytest.raises(StateError, match=r"a\.run must hold a whole run, got one without 'costs'"):
        read_run(path)


def test_a_run_of_format_1_is_still_read():
    run = read_run(Path(__file__).parent / "golden" / "format-1.run")

    assert run.rmse == pytest.approx(2.86036586)
    assert (run.level, run.levels) == (0.9, (0.9,))
    assert (run.sensor, run.method, len(run.times)) == ("ramp-7", "ohl", 58)
    assert run.path.values.shape == (3, 21)
    assert run.path.names[0] == "weight.drifting"
    assert run.path["regularization"][0] == pytest.approx(2.0)


def test_a_run_of_format_1_has_no_yardsticks_and_nothing_scored_apart():
    record = read_run(Path(__file__).parent / "golden" / "format-1.run").record()

    assert (record["implausible"], record["rmse_relative"]) == (0, None)
    assert record["rmse_all"] == record["rmse"]
    assert record["experts"] is None
