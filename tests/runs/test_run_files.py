from dataclasses import fields, replace

import numpy as np
import pytest

from streamridge import Forecaster, StateError, replay
from streamridge.files.checkpoint import read_checkpoint, write_checkpoint
from streamridge.forecaster.methods import tuned_by
from streamridge.runs.run_files import read_run, write_run
from tests.support.forecasters import DAY, daily, small
from tests.support.series import frame


@pytest.fixture(scope="module")
def searched():
    """Return a run with gaps, two steps ahead, with a path and counts of every kind."""
    values = daily(5 * DAY)
    values[90:93] = np.nan
    settings = small(horizon=2, train_size=96, tune_every=DAY).settings
    return replay(Forecaster.from_settings(tuned_by("random", settings)), frame(values))


def assert_same(one, other):
    for part in fields(one):
        if part.name == "backend":  # of this process, not of the run
            continue
        mine, yours = getattr(one, part.name), getattr(other, part.name)
        if part.name == "path" and mine is not None:
            assert mine.names == yours.names
            np.testing.assert_array_equal(mine.steps, yours.steps)
            np.testing.assert_array_equal(mine.values, yours.values)
        elif part.name == "naive_forecasts":
            assert list(mine) == list(yours)
            for name in mine:
                np.testing.assert_array_equal(mine[name], yours[name])
        elif isinstance(mine, np.ndarray):
            assert mine.dtype.kind == yours.dtype.kind
            np.testing.assert_array_equal(mine, yours)
        else:
            assert mine == yours, part.name


def test_a_run_is_read_unchanged(searched, tmp_path):
    write_run(tmp_path / "a.run", searched)

    back = read_run(tmp_path / "a.run")

    assert_same(searched, back)
    assert searched.counts["tuning_fits"] > 0
    assert np.isnan(back.actual).sum() == 3
    assert back.record() == searched.record()


def test_a_run_of_several_levels_is_read_unchanged(tmp_path):
    run = replay(small(level=(0.95, 0.8)), frame(daily(4 * DAY)))

    write_run(tmp_path / "a.run", run)

    assert_same(run, read_run(tmp_path / "a.run"))


def test_a_run_without_a_model_is_read_without_a_path(tmp_path):
    run = replay(small(), frame(daily(2 * DAY)), warmup=DAY)

    write_run(tmp_path / "a.run", run)

    assert run.path is None
    assert_same(run, read_run(tmp_path / "a.run"))


def test_the_weights_of_the_experts_are_read_unchanged(searched, tmp_path):
    path = tmp_path / "a.run"
    write_run(path, searched)

    back = read_run(path).expert_path

    assert back.names == ("model", "week", "day", "last")
    assert back == searched.expert_path


def test_an_interrupted_run_is_read_as_interrupted(searched, tmp_path):
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


def test_a_file_without_a_field_is_refused(searched, tmp_path):
    path = tmp_path / "a.run"
    write_run(path, searched)
    header, arrays = read_checkpoint(path)
    del header["costs"]
    write_checkpoint(path, header, arrays)

    with pytest.raises(
        StateError, match=r"a\.run must hold a complete run, got one without 'costs'"
    ):
        read_run(path)
