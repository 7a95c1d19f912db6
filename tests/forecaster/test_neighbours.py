from functools import partial

import numpy as np
import pytest

from streamridge.errors import InvalidInputError
from streamridge.forecaster.candidates import NEAREST, Candidates
from streamridge.forecaster.neighbours import LAGS, MOST, SOLVE_EVERY, Neighbours
from tests.support.plain_neighbours import ends_of, weights_after

DAY, HORIZON = 24, 2


def network_of(rng, sensors, steps, wave=0.0):
    """Return readings, (T, n), own forecasts and the sizes of error, (T, n, H).

    A wave passes from each sensor to the next in one step; nobody foresees it alone.
    """
    shocks = wave * rng.standard_normal(steps + sensors)
    passed = np.arange(steps)[:, None] - np.arange(sensors) + sensors
    readings = 100 + shocks[passed] + rng.standard_normal((steps, sensors))
    values = np.full((steps, sensors, HORIZON), 100.0)
    return readings, values, np.full(values.shape, np.hypot(1.0, wave))


def run(readings, values, sizes, layer=None, allowed=None):
    """Return corrected values, (T, n, H), their ends, and the layer after all steps."""
    layer = layer or new_layer(readings.shape[1])
    found = []
    for row, value, size in zip(readings, values, sizes, strict=True):
        own = value, *ends_of(value, size)
        found.append(layer.corrected(*own))
        layer.observe(row, *own)
        layer.choose(allowed)
    return *(np.array(each) for each in zip(*found, strict=True)), layer


def new_layer(sensors):
    layer = Neighbours(HORIZON, DAY, 0.9)
    layer.resize([-1] * sensors)
    return layer


def errors_over_own(readings, values, corrected, lead=0):
    """Return the RMSE of each sensor after corrections over its own, in the second half."""
    ahead = readings[lead:]
    later = len(ahead) // 2
    own, left = (ahead - each[: len(ahead), :, lead] for each in (values, corrected))
    return np.sqrt(np.square(left[later:]).mean(axis=0) / np.square(own[later:]).mean(axis=0))


class TestCorrections:
    def test_weights_equal_a_regression_over_the_whole_past(self):
        readings, values, sizes = network_of(np.random.default_rng(0), 3, 30 * SOLVE_EVERY, 2.0)
        readings[50:53, 1] = np.nan

        *_, layer = run(readings, values, sizes, allowed=lambda _: np.zeros(3, dtype=bool))

        chosen = [-1] * MOST
        expected = weights_after(len(readings), 1, chosen, readings, values, sizes, DAY)
        np.testing.assert_allclose(layer.state()["weights"][1], expected, rtol=1e-9, atol=1e-12)

    def test_weights_of_a_constant_choice_equal_the_regression(self):
        readings, values, sizes = network_of(np.random.default_rng(1), 3, 20 * SOLVE_EVERY, 2.0)
        layer, chosen = new_layer(3), [0, 2, -1, -1, -1]
        state = layer.state()
        state["chosen"][1] = chosen
        state["next_choice"] += 10**6
        layer.restore(state)

        *_, layer = run(readings, values, sizes, layer)

        expected = weights_after(len(readings), 1, chosen, readings, values, sizes, DAY)
        np.testing.assert_allclose(layer.state()["weights"][1], expected, rtol=1e-9, atol=1e-12)

    def test_a_wave_that_travels_is_foreseen_by_the_sensor_before(self):
        readings, values, sizes = network_of(np.random.default_rng(2), 4, 40 * DAY, wave=3.0)

        corrected, *_, layer = run(readings, values, sizes)

        ratios = errors_over_own(readings, values, corrected)
        assert ratios[0] == pytest.approx(1.0, abs=0.02)  # nobody is before it
        assert (ratios[1:] < 0.5).all()  # 0.44 is the best, since the sensor before has noise
        assert (errors_over_own(readings, values, corrected, 1)[2:] < 0.5).all()
        assert layer.strengths[3].max() > 0.3
        assert set(layer.chosen[0].tolist()) == {-1} or layer.strengths[0].max() < 0.1

    def test_independent_sensors_cost_nothing(self):
        readings, values, sizes = network_of(np.random.default_rng(3), 12, 60 * DAY)

        corrected, *_ = run(readings, values, sizes)

        ratios = errors_over_own(readings, values, corrected)
        assert ratios.mean() <= 1.001
        assert ratios.max() <= 1.002

    def test_no_later_value_changes_a_forecast(self):
        readings, values, sizes = network_of(np.random.default_rng(4), 4, 12 * DAY, wave=2.0)
        at = 10 * DAY
        poisoned = [each.copy() for each in (readings, values, sizes)]
        poisoned[0][at:] = 1e9
        poisoned[1][at + 1 :], poisoned[2][at + 1 :] = -1e9, 1e6

        before = run(readings, values, sizes)[:3]
        after = run(*poisoned)[:3]

        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one[: at + 1], other[: at + 1])

    def test_intervals_contain_the_value_and_keep_their_coverage(self):
        readings, values, sizes = network_of(np.random.default_rng(5), 3, 60 * DAY, wave=3.0)

        corrected, lower, upper, _ = run(readings, values, sizes)

        assert (lower[..., 0] <= corrected).all()
        assert (corrected <= upper[..., 0]).all()
        held = (lower[..., 0, 0] <= readings) & (readings <= upper[..., 0, 0])
        assert held[30 * DAY :].mean(axis=0) == pytest.approx(0.9, abs=0.04)
        width = (upper - lower)[30 * DAY :, :, 0, 0].mean(axis=0)
        assert (width[1:] < 0.55 * width[0]).all()

    def test_corrected_forecasts_stay_in_the_range_of_own_intervals(self):
        readings, values, sizes = network_of(np.random.default_rng(6), 2, 30 * DAY, wave=3.0)
        least = (values - 0.1)[..., None]
        layer, found = new_layer(2), []
        for at, row in enumerate(readings):
            upper = ends_of(values[at], sizes[at])[1]
            found.append(layer.corrected(values[at], least[at], upper))
            layer.observe(row, values[at], least[at], upper)
            layer.choose()

        corrected, lower, _ = (np.array(each) for each in zip(*found, strict=True))
        assert corrected.min() == pytest.approx(99.9)
        assert lower.min() == pytest.approx(99.9)

    def test_a_sensor_without_a_forecast_is_left_alone(self):
        readings, values, sizes = network_of(np.random.default_rng(7), 3, 12 * DAY, wave=3.0)
        values[:, 2], sizes[:, 2] = np.nan, np.nan

        corrected, lower, _, layer = run(readings, values, sizes)

        assert np.isnan(corrected[:, 2]).all()
        assert np.isnan(lower[:, 2]).all()
        assert 2 not in layer.chosen

    def test_a_missing_reading_is_no_surprise(self):
        readings, values, sizes = network_of(np.random.default_rng(8), 2, 5, wave=3.0)
        readings[3, 0] = np.nan

        *_, layer = run(readings, values, sizes)

        assert layer.state()["surprises"][3, 0] == 0
        assert layer.state()["surprises"][3, 1] != 0

    def test_a_late_reading_equals_one_in_time_for_the_next_forecast(self):
        readings, values, sizes = network_of(np.random.default_rng(9), 3, 12 * DAY, wave=3.0)
        late = readings.copy()
        late[-1, 0] = np.nan

        *_, in_time = run(readings, values, sizes)
        *_, layer = run(late, values, sizes)
        layer.add_late(0, 0, readings[-1, 0])

        own = values[0], *ends_of(values[0], sizes[0])
        for one, other in zip(in_time.corrected(*own), layer.corrected(*own), strict=True):
            np.testing.assert_array_equal(one, other)


class TestMembers:
    def test_a_saved_layer_continues_bit_for_bit(self):
        every = network_of(np.random.default_rng(10), 3, 20 * DAY, wave=2.0)
        first, second = ([each[part] for each in every] for part in (np.s_[:300], np.s_[300:]))
        *_, layer = run(*first)
        copy = Neighbours(HORIZON, DAY, 0.9)
        copy.restore({name: array.copy() for name, array in layer.state().items()})

        *found, _ = run(*second, layer)
        *again, _ = run(*second, copy)

        for one, other in zip(found, again, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_sensors_that_leave_are_forgotten_and_others_keep_theirs(self):
        readings, values, sizes = network_of(np.random.default_rng(11), 4, 20 * DAY, wave=3.0)
        *_, layer = run(readings, values, sizes)
        before = layer.state()["weights"].copy()
        assert 1 in layer.chosen[2]
        slot = layer.chosen[2].tolist().index(1)

        layer.resize([0, 2, 3])

        kept = layer.state()["weights"][1]
        assert (layer.chosen < 3).all()
        assert layer.chosen[1, slot] == -1
        assert (kept[slot * LAGS : (slot + 1) * LAGS] == 0).all()
        others = [each for each in range(len(kept)) if each // LAGS != slot]
        np.testing.assert_array_equal(kept[others], before[2][others])
        assert layer.chosen[2].tolist().count(1) == 1  # sensor 2 has moved to place 1

    def test_a_new_sensor_begins_without_neighbours(self):
        readings, values, sizes = network_of(np.random.default_rng(12), 3, 20 * DAY, wave=3.0)
        *_, layer = run(readings[:, :2], values[:, :2], sizes[:, :2])

        layer.resize([0, 1, -1])

        assert (layer.chosen[2] == -1).all()
        corrected, *_, layer = run(readings, values, sizes, layer)
        assert 1 in layer.chosen[2]
        assert errors_over_own(readings, values, corrected)[2] < 0.6

    def test_skipped_steps_leave_no_surprise(self):
        readings, values, sizes = network_of(np.random.default_rng(13), 2, 5, wave=3.0)
        *_, layer = run(readings, values, sizes)

        layer.skip(3)

        assert (layer.state()["surprises"][5:8] == 0).all()
        layer.skip(10**9)  # no longer than its memory

    def test_only_candidates_are_chosen(self):
        readings, values, sizes = network_of(np.random.default_rng(14), 3, 20 * DAY, wave=3.0)
        names = ("a", "b", "c")
        candidates = Candidates({"c": ["a"]})

        allowed = partial(lambda place: candidates.of(names[place], names))
        *_, layer = run(readings, values, sizes, allowed=allowed)

        assert (layer.chosen[:2] == -1).all()
        assert set(layer.chosen[2].tolist()) <= {-1, 0}


class TestCandidates:
    def test_all_others_or_none(self):
        assert Candidates("auto").of("a", ("a", "b")).tolist() == [False, True]
        assert Candidates("none").of("a", ("a", "b")).tolist() == [False, False]

    def test_positions_allow_the_nearest(self):
        names = tuple(f"s{place}" for place in range(NEAREST + 5))
        places = {name: (float(at), 0.0) for at, name in enumerate(names)}

        allowed = Candidates(places).of("s0", (*names, "unknown"))

        assert allowed.tolist() == [False] + [True] * NEAREST + [False] * 5

    @pytest.mark.parametrize(
        "given", ["all", {}, {"a": "b"}, {"a": (1.0, float("nan"))}, {"a": [1.0]}, 3, None]
    )
    def test_anything_else_is_refused(self, given):
        with pytest.raises(
            InvalidInputError, match=r"neighbours must be 'auto', 'none', a mapping"
        ):
            Candidates(given)


def test_the_choice_is_made_again_as_sensors_change():
    rng = np.random.default_rng(15)
    one, values, sizes = network_of(rng, 3, 20 * DAY, wave=3.0)
    other = network_of(rng, 3, 40 * DAY, wave=3.0)[0][:, ::-1]  # waves travel the other way

    *_, layer = run(one, values, sizes)
    assert 1 in layer.chosen[2]
    values, sizes = np.tile(values, (2, 1, 1)), np.tile(sizes, (2, 1, 1))
    *_, layer = run(other, values, sizes, layer)

    assert 1 in layer.chosen[0]
