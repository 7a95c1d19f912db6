"""The correction of changed patterns: formulas on lists, help where it can be, and no harm."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import streamridge as sr
from streamridge.errors import StateError
from streamridge.forecaster import stepwise
from streamridge.forecaster.pattern_correction import (
    ARRAYS,
    CHANGE,
    COLUMNS,
    DOUBT,
    FIRST_DAYS,
    LARGEST,
    MEMORY,
    RIDGE,
    SHARE,
    SHARE_MEMORY,
    VALUE,
    PatternCorrection,
    PatternForecast,
)
from tests.support.forecasters import loaded_without
from tests.support.tiers import tiered

DAY, HORIZON = 8, 4
ANY = (-np.inf, np.inf)


def learned(rng, count, missing=()):
    """Return a correction after some steps, its forecasts by step, and the values.

    It has just been solved for if the last step is a multiple of four.
    """
    correction, made, values = PatternCorrection.start(DAY, HORIZON), {}, rng.normal(size=count)
    for step in range(count):
        if step in missing:
            continue
        forecast = rng.normal(size=HORIZON)
        simple = values[step] + rng.normal(size=(HORIZON - 1, COLUMNS))
        made[step] = correction.forecast(forecast, simple)
        correction = correction.observe(step, values[step], made[step], learns=True)
    return correction, made, values


def known(made, values, lead):
    """Return what was forecast at a lead, with the value that came, or None, for each reading."""
    steps = sorted(made)
    return [
        (made[s - lead].leads[lead - 1] if s - lead in made else None, values[s]) for s in steps
    ]


@pytest.mark.parametrize("missing", [(), (20, 21, 33)])
def test_weights_solve_the_discounted_ridge_regression_of_all_leads(rng, missing):
    correction, made, values = learned(rng, 61, missing)

    rows, errors = [], []
    for lead in range(1, HORIZON):
        pairs = known(made, values, lead)
        for weight, (each, value) in zip(discounts(len(pairs), MEMORY), pairs, strict=True):
            if each is not None:
                rows.append(np.sqrt(weight) * each[:COLUMNS])
                errors.append(np.sqrt(weight) * (value - each[VALUE]))
    penalty = RIDGE * np.square(rows).sum() / COLUMNS
    # A ridge regression is a least-squares fit with a row for each weight.
    system = np.vstack([*rows, np.sqrt(penalty) * np.eye(COLUMNS)])
    wanted = np.linalg.lstsq(system, np.append(errors, np.zeros(COLUMNS)), rcond=None)[0]
    np.testing.assert_allclose(correction.weights, wanted, rtol=1e-10)


@pytest.mark.parametrize("missing", [(), (20, 21, 33)])
def test_shares_are_least_squares_less_a_standard_error(rng, missing):
    correction, made, values = learned(rng, 201, missing)

    for lead in range(1, HORIZON):
        pairs = known(made, values, lead)
        weights = discounts(len(pairs), SHARE_MEMORY)
        weights = np.array(
            [w for w, (each, _) in zip(weights, pairs, strict=True) if each is not None]
        )
        leads, targets = zip(*[pair for pair in pairs if pair[0] is not None], strict=True)
        leads, errors = np.array(leads), np.array(targets) - np.array(leads)[:, VALUE]
        change, share = leads[:, CHANGE], leads[:, SHARE]
        noise = DOUBT * np.sqrt(
            (lead + 1) * (weights * (change * (errors - share * change)) ** 2).sum()
        )
        best = ((weights * change * errors).sum() - noise) / (weights * change**2).sum()
        seen = weights[change != 0].sum()
        wanted = np.clip(best, 0, 1) * seen / (seen + FIRST_DAYS * DAY)
        assert correction.shares[lead - 1] == pytest.approx(wanted, rel=1e-10)
        assert 0 < wanted < 1


def discounts(count, days):
    return (1 - 1 / (days * DAY)) ** np.arange(count)[::-1]


def test_the_first_step_ahead_never_changes_and_limits_hold():
    leads = np.zeros((HORIZON - 1, 6))
    leads[:, CHANGE], leads[:, SHARE] = [5.0, 5.0, 50.0], [0.5, 0.0, 1.0]
    values = np.array([1.0, 2.0, 3.0, 4.0])

    moved = PatternForecast(leads).corrected(values, (0.0, 20.0))

    assert moved.tolist() == [1.0, 4.5, 3.0, 20.0]
    leads[:, SHARE] = 0.0
    assert PatternForecast(leads).corrected(values, (0.0, 2.0)) is values


def test_changes_are_at_most_four_times_as_large_as_earlier_ones(rng):
    correction, made, values = learned(rng, 61)
    far = np.full((HORIZON - 1, COLUMNS), 1e6)

    changes = correction.forecast(np.zeros(HORIZON), far).leads[:, CHANGE]

    for lead in range(1, HORIZON):
        pairs = known(made, values, lead)
        weights = discounts(len(pairs), SHARE_MEMORY)[lead:]
        earlier = np.array([each[CHANGE] for each, _ in pairs[lead:]])
        mean = (weights * earlier**2).sum() / weights[earlier != 0].sum()
        assert abs(changes[lead - 1]) == pytest.approx(LARGEST * np.sqrt(mean), rel=1e-10)


def test_unknown_simple_forecasts_change_nothing_and_teach_nothing(rng):
    correction, _, _ = learned(rng, 61)
    unknown = np.full((HORIZON - 1, COLUMNS), np.nan)

    forecast = correction.forecast(np.ones(HORIZON), unknown)
    after = correction
    for step in range(61, 61 + 2 * HORIZON):
        made = after.forecast(np.ones(HORIZON), unknown)
        after = after.observe(step, 7.0, made, learns=True)
    last = after.observe(61 + 2 * HORIZON, 1e6, None, learns=True)

    assert not forecast.leads[:, [*range(COLUMNS), CHANGE]].any()
    np.testing.assert_allclose(last.products, (1 - 1 / DAY) * after.products)


def test_nothing_is_learned_from_doubted_readings(rng):
    correction, made, _ = learned(rng, 20)

    after = correction.observe(20, 1e9, made[19], learns=False)

    assert after.products is correction.products
    assert after.trust is correction.trust


def test_later_readings_do_not_change_earlier_corrections(rng):
    correction, _, _ = learned(rng, 61)
    values, simple = np.ones(HORIZON), rng.normal(size=(HORIZON - 1, COLUMNS))
    before = correction.forecast(values, simple).leads.copy()

    correction.observe(61, 1e9, correction.forecast(values, simple), learns=True)

    np.testing.assert_array_equal(correction.forecast(values, simple).leads, before)


def test_a_restored_correction_continues_bit_for_bit(rng):
    correction, _, _ = learned(rng, 20)
    state = {name: array.copy() for name, array in correction.state().items()}
    restored = PatternCorrection.start(DAY, HORIZON).restore(state)
    simple = rng.normal(size=(HORIZON - 1, COLUMNS))

    for each in (correction, restored):
        assert each.forecast(np.ones(HORIZON), simple).leads.any()
    for name, array in correction.observe(20, 3.0, None, learns=True).state().items():
        assert (
            restored.observe(20, 3.0, None, learns=True).state()[name].tobytes() == array.tobytes()
        )


@pytest.mark.parametrize("name", ARRAYS)
def test_states_of_other_leads_are_refused(rng, name):
    state = learned(rng, 20)[0].state()
    state[name] = state[name][:-1]

    with pytest.raises(sr.InvalidInputError, match=f"{name} must have shape"):
        PatternCorrection.start(DAY, HORIZON).restore(state)


def lived(values, forecasts, simple):
    """Return the RMSE of each lead after corrections over that before them."""
    correction, squares = PatternCorrection.start(48, HORIZON), np.zeros((2, HORIZON))
    for step, ahead in enumerate(values):
        made = correction.forecast(forecasts[step], simple[step])
        moved = made.corrected(forecasts[step], ANY)
        squares += np.square([ahead - moved, ahead - forecasts[step]])
        correction = correction.observe(step, ahead[0], made, learns=True)
    return np.sqrt(squares[0] / squares[1])


def wandering(rng, count, memory, *shape):
    """Return noise in which each value keeps a share of the one before, of size one."""
    noise = np.sqrt(1 - memory**2) * rng.normal(size=(count, *shape))
    for before, value in pairwise(noise):
        value += memory * before
    return noise


@pytest.mark.parametrize(
    ("size", "memory"),
    tiered([0.1, 10.0], [0.0, 0.9, 0.98], quick=lambda *case: case in {(0.1, 0.98), (10.0, 0.0)}),
)
def test_forecasts_that_cannot_be_improved_are_not_made_worse(size, memory):
    rng = np.random.default_rng(1)
    signal, errors = rng.normal(size=4000), wandering(rng, 4000, memory)
    values, forecasts = (sliding_window_view(each, HORIZON) for each in (signal + errors, signal))
    noise = size * wandering(rng, len(values), memory, HORIZON - 1, COLUMNS)

    ratios = lived(values, forecasts, forecasts[:, 1:, None] + noise)

    assert ratios[0] == 1.0
    assert ratios[1:].max() < 1.004


def test_simple_forecasts_that_know_more_are_followed_within_days():
    rng = np.random.default_rng(1)
    signal = 5 * rng.normal(size=600)
    values = sliding_window_view(signal + rng.normal(size=600), HORIZON)
    known = sliding_window_view(signal, HORIZON)[:, 1:, None]
    others = rng.normal(size=(len(values), HORIZON - 1, COLUMNS - 1))

    ratios = lived(values, np.zeros(values.shape), np.concatenate((others, known), axis=2))

    assert ratios[0] == 1.0
    assert ratios[1:].max() < 0.6


def stream(days):
    """Return readings every three hours, whose mornings are lower after seven weeks."""
    t = np.arange(8 * days)
    values = 300 - 150 * np.cos(2 * np.pi * t / 8)
    values += np.random.default_rng(1).normal(0, 5, len(t))
    return np.where((t >= 49 * 8) & (t % 8 >= 2) & (t % 8 < 4), 0.7 * values, values)


def forecasts_of(values, *, first=28 * 8):
    """Return the forecasts of all steps from the first on, (n, 3), and the forecaster."""
    times = np.datetime64("2026-01-05T00") + np.arange(len(values)) * np.timedelta64(3, "h")
    forecaster = sr.Forecaster("3h", horizon=3, train_size=120, warmup=first)
    made = []
    for time, value in zip(times, values, strict=True):
        made.append(forecaster.predict().value if forecaster.next_time is not None else np.zeros(3))
        forecaster.observe(time, value)
    return np.array(made), forecaster


def test_later_steps_are_forecast_better_around_a_change_and_the_first_is_the_same(monkeypatch):
    values = stream(63)
    corrected, forecaster = forecasts_of(values)
    monkeypatch.setattr(stepwise, "_simple_forecasts_of", lambda settings: None)
    plain, _ = forecasts_of(values)

    assert forecaster._pattern.shares.max() > 0.1
    assert corrected[:, 0].tobytes() == plain[:, 0].tobytes()
    for lead in (1, 2):
        for weeks in (slice(5 * 56, 7 * 56), slice(7 * 56, 9 * 56 - 2)):
            targets = values[lead:][weeks]
            errors = [np.std(targets - each[:, lead][weeks]) for each in (corrected, plain)]
            assert errors[0] < 0.99 * errors[1]


def test_one_step_ahead_long_horizons_and_short_seasons_have_no_such_correction():
    assert sr.Forecaster("1h", horizon=3)._pattern is not None
    assert sr.Forecaster("1h")._pattern is None
    assert sr.Forecaster("1h", horizon=48)._pattern is None
    assert sr.Forecaster("1h", horizon=3, learn=False)._pattern is None
    assert sr.Forecaster("1h", horizon=3, seasons=())._pattern is None
    assert sr.Forecaster("12h", horizon=3, seasons=("1d",))._pattern is None


def test_a_file_without_the_correction_is_refused():
    forecaster = forecasts_of(stream(30))[1]

    with pytest.raises(StateError, match="products"):
        loaded_without("pattern", forecaster)
