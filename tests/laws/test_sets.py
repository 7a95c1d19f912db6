"""Laws that every set of hyperparameters must pass for searches and charts."""

import numpy as np
import pytest

from streamridge import Box, Simplex

SETS = {
    "one interval": Box([0.1], [9.0]),
    "intervals": Box([1e-3, 1.0, 2.0], [1e3, 2.0, 2.5]),
    "interval from zero": Box([0.0, 1.0], [4.0, 2.0]),
    "constant": Box([2.0, 3.0], [2.0, 3.0]),
    "one weight": Simplex(1),
    "weights": Simplex(4),
}

every_set = pytest.mark.parametrize("feasible", SETS.values(), ids=SETS)
spacings = pytest.mark.parametrize("spacing", ["log", "uniform"])


@every_set
@spacings
def test_samples_lie_in_the_set_and_repeat_with_their_generator(feasible, spacing):
    one, other = (np.random.default_rng(3) for _ in range(2))

    drawn = [feasible.sample(one, spacing) for _ in range(200)]

    assert all(feasible.contains(point) for point in drawn)
    np.testing.assert_array_equal(drawn, [feasible.sample(other, spacing) for _ in range(200)])


@every_set
@spacings
def test_samples_are_spread_over_the_set(feasible, spacing):
    rng = np.random.default_rng(3)

    spread = np.ptp([feasible.sample(rng, spacing) for _ in range(300)], axis=0)

    free = feasible.widths if feasible.size > 1 or not feasible.is_tied else np.zeros(1)
    assert (spread >= 0.5 * free).all()


@every_set
@pytest.mark.parametrize("points", [2, 3, 5])
def test_a_grid_lies_in_the_set_and_reaches_its_ends(feasible, points):
    grid = np.array(feasible.grid(points))

    assert all(feasible.contains(point) for point in grid)
    assert len({tuple(point) for point in grid}) == len(grid)
    reached = np.ptp(grid, axis=0)
    alone = feasible.is_tied and feasible.size == 1
    np.testing.assert_allclose(reached, 0.0 if alone else feasible.widths)


@every_set
def test_draws_and_points_convert_to_each_other(feasible, rng):
    low, high = feasible.draws
    for _ in range(50):
        point = feasible.from_draws(rng.uniform(low, high))

        assert feasible.contains(point)
        again = feasible.from_draws(feasible.to_draws(point))
        np.testing.assert_allclose(again, point, rtol=1e-6)


@every_set
def test_a_step_along_the_tangent_ends_at_the_same_point_as_the_full_step(feasible, rng):
    for _ in range(50):
        point, g = feasible.project(rng.normal(size=feasible.size)), rng.normal(size=feasible.size)

        whole, along = (feasible.project(point - each) for each in (g, feasible.tangent(g)))

        np.testing.assert_allclose(along, whole, atol=1e-12)


@every_set
def test_held_coordinates_are_fixed_and_free_ones_keep_their_bounds(feasible, rng):
    point = feasible.project(rng.normal(size=feasible.size))
    held = np.arange(feasible.size) == 0

    part = feasible.holding(point, held)

    assert part.contains(point)
    for _ in range(20):
        drawn = part.sample(rng, "uniform")
        assert feasible.contains(drawn)
        np.testing.assert_allclose(drawn[0], point[0])
    free = np.where(held, 0.0, feasible.widths)
    np.testing.assert_array_equal(part.widths, 0.0 if feasible.is_tied else free)


@every_set
def test_holding_nothing_changes_nothing(feasible, rng):
    point = feasible.project(rng.normal(size=feasible.size))

    part = feasible.holding(point, np.zeros(feasible.size, dtype=bool))

    np.testing.assert_array_equal(part.widths, feasible.widths)


@every_set
def test_given_coordinates_stay_and_the_others_are_adjusted(feasible, rng):
    point = feasible.project(rng.normal(size=feasible.size))
    given = np.arange(feasible.size) == 0
    wanted = point.copy()

    completed = feasible.completed(wanted, given)

    assert feasible.contains(completed)
    assert completed[0] == point[0]


@every_set
def test_logarithms_of_points_are_the_points_of_the_logarithmic_set(feasible, rng):
    logarithmic = feasible.logarithmic()
    if logarithmic is None:
        drawn = np.array([feasible.draws[0], feasible.grid(2)[0]])
        assert drawn.min() <= 0  # only sets that reach zero have none
        return

    for _ in range(20):
        assert logarithmic.contains(np.log(feasible.sample(rng, "log")))


@every_set
def test_limits_are_words(feasible):
    assert "between" in feasible.limits or "at the constant" in feasible.limits
