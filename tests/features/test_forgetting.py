"""Seasonal profiles that forget: their weights, and the derivatives of rows in the rates."""

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.features.base import parameter_space, with_parameters
from streamridge.features.lags import Features
from streamridge.features.profiles import Profiles
from streamridge.features.seasons import Season
from streamridge.series.holidays import Holidays
from tests.oracles import central_difference
from tests.support.features import AUTUMN, SPRING, past_of, profiles

RATES = np.array([0.3, 0.8])


def test_values_of_earlier_seasons_have_smaller_weights():
    season = Season("day", 24, count=3, beside=1, forgetting=np.log(2))

    np.testing.assert_allclose(season.weights, np.repeat([1.0, 0.5, 0.25], 3))
    assert Season("day", 24, count=3).weights.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("forgetting", "bounds", "message"),
    [
        (-0.1, None, "forgetting must be positive, got -0.1"),
        (3.0, (0.01, 2.0), "forgetting must lie within its bounds \\(0.01, 2.0\\), got 3.0"),
        (np.nan, None, "forgetting must be"),
    ],
)
def test_an_invalid_rate_is_refused(forgetting, bounds, message):
    with pytest.raises(InvalidInputError, match=message):
        Season("day", 24, forgetting=forgetting, forgetting_bounds=bounds)


def test_each_season_that_forgets_has_one_parameter():
    day, week = Season("day", 24, forgetting=0.2), Season("week", 168)

    assert Profiles((day, week)).space.names == ("day_forgetting",)
    assert profiles(forgetting=0.2).space.names == ("day_forgetting", "week_forgetting")
    assert profiles(forgetting=0.2).space.learned.all()
    assert not Profiles((day, week)).space.learned.any()
    assert parameter_space(profiles()).names == parameter_space(Features(3)).names == ()


def test_other_rates_change_nothing_else():
    features = profiles(24, forgetting=0.2)
    layout = features.layout

    moved = with_parameters(features, np.array([9.0, *RATES]))

    assert [season.forgetting for season in moved.seasons] == RATES.tolist()
    assert moved.layout is layout
    np.testing.assert_array_equal(moved.space.values, RATES)
    np.testing.assert_array_equal(features.space.values, [0.2, 0.2])
    assert moved.at(features.space.values) == features
    assert with_parameters(Features(3), RATES) == Features(3)


def test_rows_at_other_rates_equal_rows_of_features_with_these_rates():
    past = past_of(5)
    steps = past.timeline.newest - np.arange(50)
    features = profiles(24, lags=4, forgetting=0.2)
    features.rows(past, steps)  # it keeps what does not depend on its rates

    moved, _ = features.at(np.full(2, 0.5)).rows(past, steps)

    np.testing.assert_array_equal(moved, profiles(24, lags=4, forgetting=0.5).rows(past, steps)[0])


@pytest.mark.parametrize("ahead", [1, 30])
@pytest.mark.parametrize("holidays", [False, True])
@pytest.mark.parametrize(
    ("zone", "start"), [(None, SPRING), ("Europe/Berlin", SPRING), ("Europe/Berlin", AUTUMN)]
)
def test_tangents_are_the_derivatives_of_the_rows(zone, start, holidays, ahead):
    days = np.arange("2021-03-03", "2021-11-05", 5, dtype="M8[D]")
    known = Holidays(tuple(map(str, days))) if holidays else None
    past = past_of(6, zone=zone, start=start, holidays=known)
    # Rows with a whole past, rows before the first week, and rows before the first day.
    steps = past.timeline.newest - np.array([0, 1, 2, 30, 31, 500, 1040, 1100, 1190, 1199])
    features = profiles(24, lags=4, ahead=ahead, forgetting=0.2).at(RATES)

    tangents = features.tangents(past, steps)

    def rows(rates):
        return features.at(rates).rows(past, steps)[0]

    assert np.abs(tangents).max() > 0
    wanted = central_difference(rows, RATES)
    scale = np.abs(rows(RATES)).max()
    np.testing.assert_allclose(tangents, wanted, rtol=1e-6, atol=1e-10 * scale)


def test_tangents_of_one_row_equal_tangents_in_bulk():
    past, features = past_of(7), profiles(24, lags=4, forgetting=0.2)
    steps = past.timeline.newest - np.arange(40)

    at_once = features.tangents(past, steps)

    alone = [features.tangents(past, np.array([step])) for step in steps]
    np.testing.assert_array_equal(at_once, np.concatenate(alone, axis=1))


def test_the_bits_of_a_tangent_depend_only_on_its_own_values(rng):
    season = Season("day", 24, count=12, forgetting=0.13, forgetting_bounds=(0.01, 2.0))
    values, usable = rng.normal(300, 100, (12, 900)), rng.random((12, 900)) < 0.9

    at_once, _ = season.mean_tangent(values, usable)

    for part in (slice(0, 1), slice(100, 118), slice(3, 500)):
        alone, _ = season.mean_tangent(values[:, part], usable[:, part])
        np.testing.assert_array_equal(at_once[part], alone)


def test_the_latest_value_and_the_calendar_have_zero_tangents():
    past, features = past_of(8, extras=1), profiles(24, forgetting=0.2, extras=("rain",))

    tangents = features.tangents(past, past.timeline.newest - np.arange(9))

    spans = features.layout.spans
    for block in ("latest", "calendar", "extras"):
        assert not tangents[:, :, spans[block]].any()
    assert not tangents[1][:, spans["day_lags"]].any()
    assert not Profiles((), lags=4).tangents(past, np.array([past.timeline.newest])).size
