import numpy as np
import pytest

from streamridge import replay
from streamridge.runs.run import ExpertPath
from tests.support.forecasters import DAY, daily, hours, small
from tests.support.series import frame

# Three days before the first fit, and a level that changes on the sixth.
CHANGED = daily(8 * DAY) + 80 * (np.arange(8 * DAY) >= 5 * DAY)


@pytest.fixture(scope="module")
def lived():
    """Return a forecaster that refits every 12 hours, and its run."""
    forecaster = small(update_every=12)
    return forecaster, replay(forecaster, frame(CHANGED))


def test_weights_are_recorded_at_each_refit_and_at_the_end(lived):
    forecaster, run = lived
    path = run.expert_path

    assert set(run.refit_times) < set(path.times)
    assert path.times[-1] == run.times[-1]
    assert path.names == ("model", "start", "week", "day", "last")
    assert path.weights.shape == (len(path.times), 5)
    np.testing.assert_allclose(path.weights.sum(axis=1), 1.0, rtol=1e-12)
    assert run.record()["experts"] == path.last == forecaster.tuning.experts


def test_weights_follow_a_change_of_the_sensor(lived):
    _, run = lived
    model = run.expert_path.by_name()["model"]

    assert model[0] == 1.0
    assert model.min() < 0.9


def test_weights_are_recorded_daily_if_refits_are_rarer():
    run = replay(small(update_every=3 * DAY), frame(daily(8 * DAY)))

    assert len(run.refit_times) == 2
    waits = np.diff(run.expert_path.times)
    assert waits.max() == np.timedelta64(DAY, "h")
    np.testing.assert_array_equal(
        run.expert_path.times,
        np.array([hours(0, 8 * DAY)[at] for at in range(3 * DAY - 1, 8 * DAY, DAY)]),
    )


@pytest.mark.parametrize("settings", [{"learn": False}, {"guard": False}])
def test_a_forecaster_without_experts_has_no_path(settings):
    run = replay(small(**settings), frame(daily(4 * DAY)))

    assert run.expert_path == ExpertPath.empty()
    assert run.record()["experts"] is None


def test_a_naive_run_has_no_experts(lived):
    _, run = lived

    assert run.naive_run("week").expert_path == ExpertPath.empty()


def test_their_times_become_local_with_all_others():
    run = replay(small(tz="Europe/Berlin"), frame(daily(5 * DAY)))

    shown = run.in_local_time()

    assert set(shown.refit_times) <= set(shown.expert_path.times)
    assert shown.expert_path.times[-1] == shown.times[-1]
