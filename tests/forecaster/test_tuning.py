"""The operator's view on a forecaster, and the size of its public interface."""

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.forecaster.tuning import Tuning
from tests.support.forecasters import DAY, HOUR, START, daily, live, same, small


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def fitted(**settings):
    forecaster = small(**settings)
    live(forecaster, daily(5 * DAY))
    return forecaster


def test_operators_find_their_actions_and_figures_in_one_place():
    assert public(Tuning) == {
        *("set", "rollback", "freeze", "unfreeze"),
        *("has_model", "frozen", "active_bounds", "path", "refit_times"),
        *("experts", "correction", "costs"),
    }
    assert public(Forecaster) == {
        *("paper", "start", "from_settings"),
        *("settings", "hyperparameters", "counts", "next_time", "refit_due", "workspace", "tuning"),
        "relevance",
        *("predict", "observe", "exclude", "refit"),
        *("to_bytes", "from_bytes", "save", "load"),
    }


def test_a_rollback_puts_all_hyperparameters_back_to_their_start():
    forecaster, other = fitted(), fitted()
    start = small().hyperparameters
    forecaster.tuning.set(regularization=50.0)

    forecaster.tuning.rollback()
    other.tuning.set(**start)

    assert forecaster.hyperparameters == pytest.approx(start)
    same(forecaster.predict(), other.predict())
    assert forecaster.counts["fits"] == other.counts["fits"] + 1


def test_a_view_follows_its_forecaster():
    forecaster = small()
    tuning = forecaster.tuning
    assert (tuning.experts, tuning.frozen, tuning.active_bounds) == ({}, (), {})
    assert not tuning.has_model
    with pytest.raises(InvalidInputError, match="the model must have been fitted first"):
        tuning.freeze("regularization")

    live(forecaster, daily(5 * DAY))

    assert sum(tuning.experts.values()) == pytest.approx(1.0)
    assert tuning.has_model
    assert tuning.costs.fitting > 0


@pytest.mark.parametrize("missing", [None, np.nan], ids=str)
def test_a_missing_value_does_not_count_as_a_reading(missing):
    forecaster, values = small(), daily(DAY)

    for hour, value in enumerate(values):
        forecaster.observe(START + hour * HOUR, missing if hour % 4 == 3 else value)

    assert forecaster.counts["readings"] == DAY - DAY // 4
    assert forecaster.counts["missing"] == DAY // 4


def test_readings_count_the_same_observed_and_in_a_history():
    times = START + np.arange(DAY) * HOUR
    values = np.where(np.arange(DAY) % 5 == 2, np.nan, daily(DAY))
    observed = small()
    for time, value in zip(times, values, strict=True):
        observed.observe(time, value)

    frame = pd.DataFrame({"time": times.astype("M8[ns]"), "value": values})
    from_history = Forecaster.start(frame, step="1h")

    for name in ("readings", "missing"):
        assert from_history.counts[name] == observed.counts[name]


def test_the_next_time_is_unknown_before_the_first_reading():
    forecaster = small()
    assert forecaster.next_time is None

    forecaster.observe(START, 5.0)

    assert forecaster.next_time == START + HOUR


def test_with_the_state_of_another_a_forecaster_continues_as_the_other_one():
    other, forecaster = fitted(horizon=2), small()
    live(forecaster, daily(DAY))

    forecaster.__setstate__(other.__getstate__())

    assert forecaster.settings == other.settings
    assert forecaster.counts == other.counts
    for one, another in zip(
        live(forecaster, daily(2 * DAY, seed=1), 5 * DAY),
        live(other, daily(2 * DAY, seed=1), 5 * DAY),
        strict=True,
    ):
        same(one, another)


def test_a_state_that_cannot_be_read_changes_nothing():
    forecaster, untouched = fitted(), fitted()

    with pytest.raises(InvalidInputError, match="content must be bytes, got str"):
        forecaster.__setstate__("no bytes")

    same(forecaster.predict(), untouched.predict())
