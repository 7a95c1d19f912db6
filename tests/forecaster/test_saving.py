"""A forecaster in two parts: the whole of its last refit, and what has changed since."""

import numpy as np
import pytest

from streamridge import Forecaster, StateError
from tests.support.forecasters import DAY, HOUR, START, daily, live, same, small, state_of
from tests.support.tiers import each_horizon


def assert_twins(one, other):
    """Compare all that two forecasters are, and their next forecasts."""
    assert one.counts == other.counts
    state, wanted = state_of(one), state_of(other)
    assert state.keys() == wanted.keys()
    for name in state:
        assert state[name].tobytes() == wanted[name].tobytes(), name
    same(one.predict(), other.predict())


def in_parts(whole, forecaster):
    return Forecaster.from_bytes(whole, forecaster.to_bytes(since_refit=True))


@pytest.mark.parametrize("when", [0, 5], ids=["right after", "some steps after"])
@each_horizon(1, 4)
def test_the_whole_of_any_time_since_the_refit_will_do(horizon, when):
    forecaster, values = small(horizon=horizon, train_size=60), daily(7 * DAY)
    live(forecaster, values[: 5 * DAY])
    forecaster.refit()
    live(forecaster, values[5 * DAY :][:when], 5 * DAY)
    whole = forecaster.to_bytes()

    live(forecaster, values[5 * DAY + when :][:9], 5 * DAY + when)

    assert_twins(in_parts(whole, forecaster), forecaster)


def test_a_reading_that_came_late_and_was_excluded_since_is_in_the_part():
    forecaster, values = small(), daily(5 * DAY)
    values[-3] = np.nan
    live(forecaster, values)
    forecaster.refit()
    whole, late = forecaster.to_bytes(), START + (len(values) - 3) * HOUR
    forecaster.observe(late, 77.0)
    forecaster.exclude(late, late)

    twin = in_parts(whole, forecaster)

    assert_twins(twin, forecaster)
    for each in (forecaster, twin):
        each.observe(late, 78.0)
    assert_twins(twin, forecaster)


def test_set_and_frozen_hyperparameters_are_in_the_parts():
    forecaster = small()
    live(forecaster, daily(5 * DAY))
    forecaster.tuning.set(regularization=3.0)
    whole = forecaster.to_bytes()
    forecaster.tuning.freeze("regularization")

    twin = in_parts(whole, forecaster)

    assert twin.tuning.frozen == ("regularization",)
    assert_twins(twin, forecaster)


def test_before_the_first_fit_the_later_part_is_the_whole():
    forecaster = small()
    live(forecaster, daily(DAY))
    whole = forecaster.to_bytes()
    live(forecaster, daily(DAY + 5)[DAY:], DAY)

    assert_twins(in_parts(whole, forecaster), forecaster)


def test_a_part_of_a_forecaster_that_was_fitted_since_is_refused():
    forecaster = small()
    live(forecaster, daily(DAY))
    whole = forecaster.to_bytes()
    live(forecaster, daily(4 * DAY)[DAY:], DAY)

    with pytest.raises(StateError, match="must be of the same refit as the whole"):
        in_parts(whole, forecaster)


def test_a_part_of_the_same_number_of_refits_at_another_time_is_refused():
    values = daily(6 * DAY)
    one, other = small(), small()
    live(one, values[: 4 * DAY])
    whole = one.to_bytes()
    live(other, values[5:][: 4 * DAY], 5)

    with pytest.raises(StateError, match="must be of the same refit as the whole"):
        in_parts(whole, other)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_will_do(kind):
    forecaster = small()
    live(forecaster, daily(DAY))

    assert_twins(Forecaster.from_bytes(kind(forecaster.to_bytes())), forecaster)
