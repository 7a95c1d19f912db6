import numpy as np
import pytest

from streamridge.metrics import (
    coverage,
    coverage_window,
    gap_spans,
    rmse,
    rmse_by_hour,
    rmse_by_weekday,
    rolling_coverage,
    running_curve,
    running_rmse,
)
from tests.support.samples import HOURLY_DAY as DAY
from tests.support.samples import HOURLY_TIMES as TIMES


def test_running_rmse_is_the_rmse_of_every_prefix(rng):
    errors = rng.normal(size=30)

    curve = running_rmse(errors)

    np.testing.assert_allclose(curve, [rmse(errors[: t + 1]) for t in range(30)])


def test_a_gap_reaches_half_a_step_beyond_its_steps(actual):
    first = gap_spans(TIMES, actual)[0]

    assert [str(end)[:16] for end in first] == ["2021-06-13T02:30", "2021-06-13T03:30"]


def test_running_rmse_starts_at_the_end_of_the_first_day(actual):
    errors = actual - 100

    at, curve = running_curve(errors, DAY)

    assert at[0] == DAY
    assert curve[-1] == pytest.approx(rmse(errors[~np.isnan(errors)]))


def test_running_rmse_of_a_run_below_two_days_starts_at_a_tenth(rng):
    at, curve = running_curve(rng.normal(size=40), DAY)

    assert at[0] == 4
    assert len(curve) == 36


def test_errors_by_hour_and_weekday_belong_to_their_steps(actual):
    errors = actual - 100

    by_hour, by_day = rmse_by_hour(TIMES, errors), rmse_by_weekday(TIMES, errors)

    at_seven, on_sunday = errors[7::DAY], errors[:DAY]
    assert by_hour[7] == pytest.approx(rmse(at_seven[~np.isnan(at_seven)]))
    assert by_day[6] == pytest.approx(rmse(on_sunday[~np.isnan(on_sunday)]))
    assert np.isnan(by_day[4:6]).all()


def test_rolling_coverage_is_the_coverage_of_every_window(actual):
    lower, upper, window = np.full(len(actual), 90.0), np.full(len(actual), 110.0), 30

    shares = rolling_coverage(actual, lower, upper, window)

    ends = range(window, len(actual) + 1)
    expected = [coverage(actual[i - window : i], lower[:window], upper[:window]) for i in ends]
    assert np.isnan(shares[: window - 1]).all()
    assert shares[window - 1 :] == pytest.approx(expected)


@pytest.mark.parametrize(("steps", "window"), [(1000, 7 * DAY), (40, 20), (1, 1)])
def test_coverage_is_averaged_over_a_week_or_half_of_a_short_run(steps, window):
    assert coverage_window(steps, DAY) == window
