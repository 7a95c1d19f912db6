"""The history of a sensor: naive forecasts, and rows as they are known now and at past refits."""

from dataclasses import replace

import numpy as np
import pytest

from streamridge import ConstantStep, Features, Forecaster, KernelRidge, Linear, Preset, StateError
from streamridge.forecaster.calibration import Calibration
from streamridge.forecaster.sensor_history import SensorHistory
from tests.support.forecasters import DAY, HOUR, START, column, daily, live, small
from tests.support.tiers import each_horizon

LAGS, FIRST, HORIZON = 2, 1000, 3
MODEL = KernelRidge(Linear())
LAM = MODEL.space.values


def recalled(count, *, gaps=(), horizon=HORIZON):
    """Return a history with rows of two lags, after `count` readings; the value of step t is t."""
    preset = Preset(Features(lags=LAGS), MODEL, ConstantStep(0.1))
    history = SensorHistory(replace(small().settings, preset=preset, horizon=horizon))
    history.reach = LAGS
    history.place(np.datetime64(FIRST, "h"))
    for step in range(FIRST, FIRST + count):
        history.timeline.push(float(step), read=step not in gaps, trusted=step not in gaps)
    return history


def times(samples):
    return (samples.t - FIRST).astype(int).tolist()


def test_a_row_needs_its_lags_and_all_its_labels():
    rows = recalled(8).between(-np.inf, np.inf, LAM)

    assert times(rows) == [2, 3, 4, 5]
    assert rows.x[-1].tolist() == [FIRST + 4, FIRST + 3]
    assert rows.y[-1].tolist() == [FIRST + 5, FIRST + 6, FIRST + 7]


def test_a_span_leaves_out_its_start_and_holds_its_end():
    assert times(recalled(12).between(FIRST + 3, FIRST + 5, LAM)) == [4, 5]


@pytest.mark.parametrize(
    ("count", "wanted"), [(2, [14, 15]), (4, [5, 6, 14, 15]), (9, [2, 3, 4, 5, 6, 14, 15])]
)
def test_the_latest_rows_are_found_behind_gaps(count, wanted):
    gaps = range(FIRST + 9, FIRST + 13)

    assert times(recalled(18, gaps=gaps).latest(count, LAM)) == wanted


def test_rows_that_waited_for_labels_stay_as_the_refit_saw_them():
    history = recalled(12, gaps=[FIRST + 9])
    history.mark_refit(FIRST)
    timeline = history.timeline
    for step in range(12, 15):
        timeline.push(float(FIRST + step), read=True, trusted=True)
    timeline.correct(FIRST + 9, -1.0)

    waited, now = (
        history.between(FIRST + 9, FIRST + 12, LAM, at_last_refit=each) for each in (True, False)
    )

    assert times(waited) == times(now) == [10, 11, 12]
    assert waited.x[0, 0] == FIRST + 9  # what filled the gap
    assert now.x[0, 0] == -1.0
    np.testing.assert_array_equal(waited.y, now.y)


def test_a_refit_forgets_no_reading_that_its_rows_need_and_keeps_none_that_they_do_not():
    history = recalled(20)
    rows = history.latest(5, LAM)

    history.mark_refit(float(rows.t[0]))

    assert history.timeline.oldest == rows.t[0] - LAGS
    assert times(history.latest(9, LAM)) == times(rows)
    np.testing.assert_array_equal(history.at(rows.t, LAM, 0).x, rows.x)


def test_rows_whose_readings_are_forgotten_are_not_made():
    history = recalled(20)
    history.reach = 4  # a row may look back further than it must
    history.timeline.forget_before(FIRST + 10)

    assert times(history.between(-np.inf, FIRST + 15, LAM)) == [14, 15]


def test_rows_are_those_of_their_own_refit():
    gap = FIRST + 9
    history = recalled(20, gaps=[gap])
    first = history.latest(99, LAM)
    history.mark_refit(FIRST)
    history.timeline.correct(gap, 7.0)
    second = history.latest(99, LAM)
    history.mark_refit(FIRST)
    history.timeline.distrust(np.array([FIRST + 4]))

    assert len(history.latest(99, LAM)) < len(second) > len(first)
    for refits_ago, rows in ((1, first), (0, second)):
        again = history.at(rows.t, LAM, refits_ago)
        assert again.x.tobytes() == rows.x.tobytes()
        assert again.y.tobytes() == rows.y.tobytes()
    with pytest.raises(StateError, match=f"readings must make all {len(second)} rows .* got"):
        history.at(second.t, LAM, 1)


def test_before_the_first_fit_old_readings_are_forgotten_now_and_then():
    history, oldest = recalled(1), []

    for step in range(FIRST + 1, FIRST + 60):
        history.timeline.push(float(step), read=True, trusted=True)
        history.forget_unneeded(10)
        oldest.append(history.timeline.oldest)
        kept = min(10 + HORIZON + LAGS, step - FIRST)
        assert history.timeline.remembered()[0] <= step - kept

    assert len(set(oldest)) == 5
    assert step - oldest[-1] < 2 * 10 + HORIZON + LAGS + 1


def exact_history(days=9):
    """Return a history whose days are all the same, so that a day ago is never wrong."""
    history = SensorHistory(small().settings)
    for hour in range(days * DAY):
        history.place(START + hour * HOUR)
        history.push(100.0 + hour % DAY, 100.0, None, None)
    return history


@pytest.mark.parametrize("silence", [1, 5, 20])
@pytest.mark.parametrize("size", [1e-9, 0.1, 30.0], ids=str)
def test_expected_errors_grow_during_silence_up_to_those_of_a_naive_forecast(silence, size):
    history = exact_history()
    for _ in range(silence):
        history.push_gap(100.0, None)
    calibration = Calibration.start(1, 0.9, corrects=True)
    naive = history.naive_offsets(np.array([size]), (0.9,))

    (wider,) = calibration.widened(np.array([size]), silence, naive)

    # The value a day ago has hardly any band of its own, but no band gets narrower.
    below, above = calibration.bands.offsets(np.array([1.0]), (0.9,))
    most = ((naive[1] - naive[0]) / (above - below)).item()
    assert wider == pytest.approx(min(size * np.sqrt(1 + silence), max(size, most)))


def test_after_silence_the_last_reading_is_no_forecast():
    history = SensorHistory(small().settings)
    rng = np.random.default_rng(0)
    for hour, value in enumerate(np.cumsum(rng.normal(size=9 * DAY))):
        history.place(START + hour * HOUR)
        history.push(value, value, None, None)

    sources = []
    for _ in range(10):
        sources.append(history.naive_forecast()[1])
        history.push_gap(0.0, None)

    assert sources == ["last"] * 8 + ["seasonal"] * 2


@each_horizon(1, 3)
def test_a_leap_fills_a_silence_as_single_steps_do(horizon):
    values = daily(15 * DAY)
    stepped, leapt = (small(horizon=horizon) for _ in range(2))
    for forecaster in (stepped, leapt):
        live(forecaster, values)

    live(stepped, [np.nan] * (4 * DAY), 15 * DAY)
    for forecaster in (stepped, leapt):
        live(forecaster, values[:1], 19 * DAY)

    for name, array in stepped._history.timeline.state().items():
        np.testing.assert_array_equal(array, leapt._history.timeline.state()[name])
    np.testing.assert_array_equal(stepped.predict().value, leapt.predict().value)


def test_a_forecast_that_is_corrected_stays_within_what_the_history_may_show():
    rng = np.random.default_rng(2)
    t = np.arange(9 * DAY)
    wave = np.maximum(0.0, 50 * np.sin(2 * np.pi * t / DAY) + 5 * rng.standard_normal(len(t)))
    wave[5 * DAY + 6 :] *= 0.2  # forecasts are too high from here on, and corrected downwards

    forecasts = live(small(), wave)

    assert column(forecasts[3 * DAY :]).min() >= 0.0


def test_a_season_is_remembered_even_if_the_model_looks_back_less():
    forecaster = Forecaster.paper("1h", lags=3, train_size=30, update_every=24, warmup=48)
    values = daily(12 * DAY)
    live(forecaster, values)

    live(forecaster, [np.nan] * (DAY + 2), 12 * DAY)

    forecast = forecaster.predict()
    assert forecast.source == "seasonal"
    history = forecaster._history
    week_ago, day_ago, _ = history.naive_values(history.next_step)
    assert week_ago == values[13 * DAY + 2 - 7 * DAY]
    assert day_ago == history.timeline.value(history.next_step - DAY)
    assert forecast.value[0] in (week_ago, day_ago)
