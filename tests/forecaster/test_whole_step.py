"""The forecaster against its slow, plain version, step by step, on streams full of trouble."""

from dataclasses import replace

import numpy as np
import pytest

from streamridge import AdaGradStep, Forecaster
from streamridge.forecaster.presets import default_preset
from tests.forecaster.plain_forecaster import PlainForecaster

# Three hours a step: a day is 8 steps and a week 56, so that short streams hold many of both.
STEP, DAY, WEEK = np.timedelta64(3, "h"), 8, 56
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
    late = [(33, 30), (64, 60), (381, 380), (385, 382), (414, 412), (416, 411), (450, 440)]
    disorder = [(95, (94, values[94])), (96, (94, 5.0)), (97, (91, 1e7)), (500, (3, 7.0))]
    arrivals = [(step, 0, (step, value)) for step, value in stream]
    arrivals += [(after, 1, (step, values[step])) for after, step in late]
    arrivals += [(after, 2, reading) for after, reading in disorder]
    return [reading for _, _, reading in sorted(arrivals, key=lambda each: each[:2])]


def both(*, horizon=1, preset=None, **settings):
    """Return a small forecaster and its plain version."""
    settings = {"lags": 3, "train_size": 60, "update_every": 24, "warmup": 40, **settings}
    forecaster = Forecaster("3h", horizon=horizon, preset=preset, **settings)
    return forecaster, PlainForecaster(forecaster.settings)


def walk(forecaster, plain, stream):
    """Feed both, and compare all that can be seen of them before and after each reading."""
    for step, value in stream:
        if plain.past is not None:
            compare(forecaster.predict(), plain.predict(), step)
        forecaster.observe(START + step * STEP, value)
        plain.observe(FIRST + step, value)
        assert forecaster.counts == plain.counts, step
        assert forecaster.hyperparameters == pytest.approx(plain.hyperparameters, rel=1e-9), step
    steps, values = zip(*plain.learner.path, strict=True)
    assert forecaster.path.steps.tolist() == list(steps)
    np.testing.assert_allclose(forecaster.path.values, values, rtol=1e-9)


def compare(forecast, expected, step):
    assert forecast.source == expected.source, step
    for part in ("value", "lower", "upper"):
        made, wanted = getattr(forecast, part), getattr(expected, part)
        np.testing.assert_allclose(made, wanted, rtol=1e-9, atol=1e-9, err_msg=f"{part} {step}")


@pytest.mark.parametrize(("horizon", "seed", "readings"), [(1, 0, 999), (1, 2, 999), (3, 1, 500)])
def test_every_step_of_a_troubled_stream_is_that_of_the_plain_version(horizon, seed, readings):
    forecaster, plain = both(horizon=horizon)

    walk(forecaster, plain, troubled(seed)[:readings])

    happened = {"late", "duplicates", "conflicts", "too_late", "missing", "outlier"}
    assert happened | {"implausible", "stuck"} <= set(plain.counts)


@pytest.mark.parametrize("horizon", [1, 3])
def test_without_a_guard_nothing_is_doubted(horizon):
    forecaster, plain = both(horizon=horizon, guard=False)

    walk(forecaster, plain, [each for each in troubled(seed=2) if abs(each[1] or 0.0) < 300])

    assert plain.counts["late"] == 7
    assert not {"implausible", "outlier", "stuck", "rollbacks"} & set(plain.counts)


def test_tuning_that_is_worse_than_its_past_is_rolled_back_and_told(caplog):
    hasty = replace(default_preset(DAY, lags=3), step_rule=AdaGradStep(2.0))
    forecaster, plain = both(preset=hasty)

    walk(forecaster, plain, in_order(daily(700, seed=3)))

    assert plain.counts["rollbacks"] > 0
    assert caplog.text.count("rolled back") == plain.counts["rollbacks"]


def test_setting_and_freezing_are_those_of_the_plain_version():
    forecaster, plain = both()
    stream = in_order(daily(400, seed=4))

    walk(forecaster, plain, stream[:150])
    for each in (forecaster, plain):
        each.set(regularization=9.0)
        each.freeze("drifting.rate")
    walk(forecaster, plain, stream[150:300])
    for each in (forecaster, plain):
        each.unfreeze("drifting.rate")
    walk(forecaster, plain, stream[300:])
