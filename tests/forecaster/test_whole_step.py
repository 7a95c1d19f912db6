"""The forecaster against its slow, plain version, step by step, on streams full of trouble."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from streamridge import AdaGradStep, Forecaster
from streamridge.features.seasons import Season
from streamridge.forecaster.presets import default_preset, seasonal_features
from streamridge.series.lengths import default_seasons, parse_step
from tests.support.plain_forecaster import PlainForecaster
from tests.support.tiers import each_horizon, tiered

# Three hours a step: a day is 8 steps and a week 56, so that short streams hold many of both.
STEP, DAY, WEEK = np.timedelta64(3, "h"), 8, 56
SEASONS = (Season("day", DAY, count=7, lags=3), Season("week", WEEK, count=4, lags=4))
START = np.datetime64("2021-06-13T00:00", "h")
FIRST = (START - np.datetime64("1970-01-01T00:00", "h")) // STEP


def daily(count, seed):
    """Return a daily wave that is lower at weekends, with noise, read to a tenth."""
    rng = np.random.default_rng(seed)
    t = np.arange(count)
    weekend = np.where(t % WEEK < 2 * DAY, 0.7, 1.0)
    wave = 100 + 40 * weekend * np.sin(2 * np.pi * t / DAY) + 8 * np.sin(2 * np.pi * t / 61)
    return np.round(wave + 4 * rng.standard_normal(count), 1)


def in_order(values, missing=()):
    """Return readings as they come: a step, and its value."""
    return [(step, float(value)) for step, value in enumerate(values) if step not in missing]


def troubled(seed):
    """Return a stream with gaps, silence, spikes, a stuck stretch, a new level, and disorder."""
    values = daily(620, seed)
    values[21] = 1e4  # in the warm-up
    values[[200, 201]] = 1e5, -4e4
    values[[180, 230, 243]] += 150.0, -140.0, 160.0
    values[255:280] = values[255]
    values[340:] *= 1.6
    values[590:605] = np.round(30 * values[590:605], 1)
    gaps = {30, 60, 90, 91, 92, 93, *range(150, 166), 380, 382, 411, 412, 440}
    stream = in_order(values, gaps)
    told = [(step, None) for step in (92, *range(300, 314))]
    stream = [each for each in stream if each[0] not in dict(told)] + told
    late = [
        (33, 30),
        (64, 60),
        (308, 304),
        (381, 380),
        (385, 382),
        (414, 412),
        (416, 411),
        (450, 440),
    ]
    disorder = [(95, (94, values[94])), (96, (94, 5.0)), (97, (91, 1e7)), (398, (3, 7.0))]
    arrivals = [(step, 0, (step, value)) for step, value in stream]
    arrivals += [(after, 1, (step, values[step])) for after, step in late]
    arrivals += [(after, 2, reading) for after, reading in disorder]
    return [reading for _, _, reading in sorted(arrivals, key=lambda each: each[:2])]


def lopsided(seed):
    """Return readings that fall often and far below their course, and hardly ever above."""
    drops = np.random.default_rng(seed).exponential(2.5, 250) ** 3
    return in_order(np.round(400 + daily(250, seed) - drops, 1))


def intermittent(seed):
    """Return zeros with a burst of two steps each day, some gaps, and two faults."""
    rng, at = np.random.default_rng(seed), np.arange(210)
    sizes = np.round(500 * rng.lognormal(0, 0.3, len(at)), 1)
    values = np.where((at % DAY >= 2) & (at % DAY < 4), sizes, 0.0)
    values[[150, 200]] = 1e6, 300.0
    return in_order(values, {101, 130, 131})


def a_step_late(values):
    """Return readings each of which is told to be missing before it comes."""
    return [reading for step, value in values for reading in ((step, None), (step, value))]


def both(*, horizon=1, preset=None, **settings):
    """Return a small forecaster and its plain version."""
    settings = {"lags": 3, "train_size": 60, "update_every": 24, "warmup": 40, **settings}
    forecaster = Forecaster("3h", horizon=horizon, preset=preset, **settings)
    return forecaster, PlainForecaster(forecaster.settings)


def walk(forecaster, plain, stream, *, asked=()):
    """Feed both, and compare all that can be seen of them before and after each reading.

    Bands of further levels are asked for, if there are any.
    """
    for step, value in stream:
        if plain.past is not None:
            compare(forecaster.predict(), plain.predict(), step)
            if asked:
                compare(forecaster.predict(level=asked), plain.predict(asked), step)
        forecaster.observe(START + step * STEP, value)
        plain.observe(FIRST + step, value)
        assert forecaster.counts == plain.counts, step
        tuned, wanted = (list(each.hyperparameters.values()) for each in (forecaster, plain))
        np.testing.assert_allclose(tuned, wanted, rtol=1e-9, err_msg=f"hyperparameters {step}")
    if plain.learner is not None:
        steps, values = zip(*plain.learner.path, strict=True)
        assert forecaster.tuning.path.steps.tolist() == list(steps)
        np.testing.assert_allclose(forecaster.tuning.path.values, values, rtol=1e-9)


def reloaded(forecaster, folder):
    """Return the forecaster as it comes back from a file."""
    forecaster.save(folder / "sensor.sr")
    return Forecaster.load(folder / "sensor.sr")


def compare(forecast, expected, step):
    assert forecast.source == expected.source, step
    for part in ("value", "lower", "upper"):
        made, wanted = getattr(forecast, part), getattr(expected, part)
        # The weights of bands are in single precision, which rounding may turn either way.
        close = 1e-9 if part == "value" else 1e-6
        np.testing.assert_allclose(made, wanted, rtol=close, atol=close, err_msg=f"{part} {step}")


@each_horizon(1, 3)
def test_bursts_of_each_day_equal_the_oracle(horizon):
    forecaster, plain = both(horizon=horizon)

    walk(forecaster, plain, intermittent(seed=horizon))

    assert forecaster._bursts.share > 0
    assert plain.counts["implausible"] > 0


@pytest.mark.parametrize(
    ("horizon", "steps"), tiered([1, 3], [420, 700], quick=lambda *case: case == (3, 420))
)
def test_saved_and_loaded_every_step_equals_the_oracle(horizon, steps, tmp_path):
    # With shorter profiles, some readings come too late.
    length = parse_step("3h")
    seasons = seasonal_features(default_seasons(length), length, lags=3, counts=(7, 4))
    preset = default_preset(seasons, lags=3, horizon=horizon)
    forecaster, plain = both(horizon=horizon, preset=preset)
    stream = troubled(seed=horizon // 2)[:steps]
    # Also in the midst of silence, of a stuck stretch, and right after late readings.
    cuts = [*range(36, len(stream), 36), 367, 371, 399, 402, 436, len(stream)]

    for first, last in pairwise([0, *sorted(cuts)]):
        walk(forecaster, plain, stream[first:last])
        forecaster = reloaded(forecaster, tmp_path)

    happened = {"late", "duplicates", "conflicts", "too_late", "missing", "outlier"}
    assert happened | {"implausible", "stuck"} <= set(plain.counts)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [210, 330])
def test_with_holidays_every_step_equals_the_oracle(steps, tmp_path):
    # In the warm-up, two in a row, on a Saturday, a week after another, and every Tuesday.
    dates = ["2021-06-15", "2021-06-24", "2021-06-25", "2021-07-03", "2021-07-10"]
    tuesdays = [f"2021-{day}" for day in ("07-13", "07-20", "07-27")]
    forecaster, plain = both(horizon=2, holidays=dates + tuesdays)
    stream = troubled(seed=8)[:steps]

    walk(forecaster, plain, stream[:190])
    walk(reloaded(forecaster, tmp_path), plain, stream[190:])

    assert plain.learner is not None


@pytest.mark.parametrize(
    ("horizon", "guard", "bounds", "steps"),
    [
        pytest.param(1, True, (0, 190), 230, marks=pytest.mark.slow),
        (3, True, (None, 150.5), 170),
        pytest.param(1, False, (60.0, 300.0), 230, marks=pytest.mark.slow),
    ],
)
def test_several_levels_and_known_bounds_equal_the_oracle(horizon, guard, bounds, steps, tmp_path):
    forecaster, plain = both(horizon=horizon, level=(0.95, 0.6), bounds=bounds, guard=guard)
    stream = [(-2, -1e3), (-1, 1e3), *troubled(seed=8)[:steps]]
    asked = (0.99, 0.5, 0.85, 0.92, 0.6)

    walk(forecaster, plain, stream[: steps - 50], asked=asked)
    walk(reloaded(forecaster, tmp_path), plain, stream[steps - 50 :], asked=asked)

    assert plain.counts["implausible"] > 5
    assert {"late", "missing"} <= set(plain.counts)


SPARSE = in_order(daily(150, seed=5), missing={step for step in range(75) if step % 6})
FIRST_FITS = {"sparse": SPARSE, "a step late": a_step_late(SPARSE)}
JUST_AFTER = in_order(daily(80, seed=7), missing={37})


def test_a_reading_that_comes_late_just_after_the_first_fit_is_taken():
    forecaster, plain = both()

    walk(forecaster, plain, [*JUST_AFTER[:39], (37, 111.1), *JUST_AFTER[39:]])

    assert plain.counts["late"] == 1
    assert plain.learner.path[0][0] == FIRST + 39


@pytest.mark.parametrize("stream", FIRST_FITS.values(), ids=FIRST_FITS)
def test_a_first_fit_waits_for_rows_enough_and_is_tried_now_and_then(stream, tmp_path):
    forecaster, plain = both()

    half = sum(step < 70 for step, _ in stream)
    walk(forecaster, plain, stream[:half])
    assert not forecaster.tuning.has_model
    forecaster = reloaded(forecaster, tmp_path)
    walk(forecaster, plain, stream[half:])
    assert forecaster.tuning.has_model

    for each in (forecaster, plain):
        each.tuning.set(regularization=3.0)  # a refit takes in what was admitted
    walk(forecaster, plain, [(150, 99.9)])


@pytest.mark.slow
def test_half_a_band_is_its_wider_side():
    forecaster, plain = both()

    walk(forecaster, plain, lopsided(seed=6))

    below, above = plain.bands.reach(0.9)[0]
    assert below > 1.5 * above


def test_without_a_guard_nothing_is_rolled_back():
    hasty = replace(default_preset(SEASONS, lags=3), step_rule=AdaGradStep(8.0))
    forecaster, _ = both(preset=hasty, guard=False)

    for step, value in in_order(daily(350, seed=3)):
        forecaster.observe(START + step * STEP, value)

    assert "rollbacks" not in forecaster.counts


@pytest.mark.slow
@each_horizon(1, 3)
def test_without_a_guard_nothing_is_doubted(horizon):
    forecaster, plain = both(horizon=horizon, guard=False)

    mild = [each for each in troubled(seed=2) if abs(each[1] or 0.0) < 300]
    walk(forecaster, plain, [*mild[:250], (91, 3000.0), *mild[250:280]])

    assert not {"implausible", "outlier", "stuck", "rollbacks"} & set(plain.counts)


@each_horizon(1, 3)
def test_tuning_that_is_worse_than_its_past_is_rolled_back_and_logged(horizon, tmp_path, caplog):
    hasty = replace(default_preset(SEASONS, lags=3, horizon=horizon), step_rule=AdaGradStep(8.0))
    forecaster, plain = both(horizon=horizon, preset=hasty)

    stream = in_order(daily(230, seed=7))

    walk(forecaster, plain, stream[:150])
    walk(reloaded(forecaster, tmp_path), plain, stream[150:])

    assert plain.counts["rollbacks"] > 0
    assert caplog.text.count("rolled back") == plain.counts["rollbacks"]


@each_horizon(1, 3)
def test_setting_and_freezing_equal_the_oracle(horizon):
    forecaster, plain = both(horizon=horizon)
    stream = in_order(daily(150, seed=4))

    walk(forecaster, plain, stream[:90])
    compare(forecaster.predict(), plain.predict(), 90)
    for each in (forecaster, plain):
        each.tuning.set(regularization=9.0)
        each.tuning.freeze("drifting.rate")
    walk(forecaster, plain, stream[90:120])
    for each in (forecaster, plain):
        each.tuning.unfreeze("drifting.rate")
    walk(forecaster, plain, stream[120:])


@pytest.mark.parametrize(
    "seasons",
    [
        pytest.param((), id="none", marks=pytest.mark.slow),
        pytest.param(("20h",), id="odd", marks=pytest.mark.slow),
        pytest.param(("20h", "7d"), id="two"),
        pytest.param(("1d", "7d", "95d"), id="long", marks=pytest.mark.slow),
    ],
)
def test_with_other_seasons_every_step_equals_the_oracle(seasons):
    forecaster, plain = both(seasons=seasons, horizon=2)

    walk(forecaster, plain, troubled(5)[:200])
