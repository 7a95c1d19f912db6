from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamridge import (
    AdaGradStep,
    AgreementStep,
    Box,
    ConstantStep,
    DiscountedStep,
    InvalidInputError,
    LazyDescent,
    Simplex,
)
from streamridge.learners.regret import SmoothedLeader

SQUARE = Box([-2.0, -2.0], [2.0, 2.0])


def test_three_steps_worked_by_hand():
    descent = LazyDescent.start([0.0], Box([-1.0], [1.0]), ConstantStep(0.5), update_every=2)

    first = descent.observe(lambda z: np.array([1.0]))
    second = first.observe(lambda z: np.array([2.0]))
    third = second.observe(lambda z: np.array([-9.0]))
    fourth = third.observe(lambda z: np.array([-9.0]))

    # z_1 = z_0, z_2 = 0 - 0.5 * (1 + 2) / 2 = -0.75, z_4 = min(-0.75 + 4.5, 1).
    assert [s.z[0] for s in (first, second, third, fourth)] == [0.0, -0.75, -0.75, 1.0]
    assert [s.moves for s in (first, second, third, fourth)] == [0, 1, 1, 2]


def test_constant_steps_reach_the_minimum_inside_and_on_the_boundary():
    for target, reached in (([0.5, -1.0], [0.5, -1.0]), ([9.0, 0.0], [2.0, 0.0])):
        descent = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(0.2), update_every=5)
        for _ in range(300):
            descent = descent.observe(lambda z, target=target: 2 * (z - target))

        np.testing.assert_allclose(descent.z, reached, atol=1e-6)


def test_adagrad_reaches_the_minimum_of_badly_scaled_costs():
    scales = np.array([1e-6, 1e6])
    descent = LazyDescent.start([1.9, 1.9], SQUARE, AdaGradStep(0.5), update_every=4)

    for _ in range(4 * 400):
        descent = descent.observe(lambda z: 2 * scales * (z - [0.5, -1.0]))

    np.testing.assert_allclose(descent.z, [0.5, -1.0], atol=1e-6)


def test_a_non_convex_cost_reaches_a_stationary_point():
    descent = LazyDescent.start([0.1], Box([-2.0], [2.0]), ConstantStep(0.05), update_every=3)

    for _ in range(600):
        descent = descent.observe(lambda z: 4 * z**3 - 4 * z)  # (z^2 - 1)^2 has minima at +-1

    np.testing.assert_allclose(descent.z, 1.0, atol=1e-6)


def test_weights_on_a_simplex_go_to_the_cheapest_vertex():
    descent = LazyDescent.start([0.5, 0.3, 0.2], Simplex(3), ConstantStep(0.05), update_every=2)

    for _ in range(100):
        descent = descent.observe(lambda z: np.array([3.0, 1.0, 2.0]))

    np.testing.assert_allclose(descent.z, [0.0, 1.0, 0.0])


@pytest.mark.parametrize("rule", [AdaGradStep(0.1), DiscountedStep(), AgreementStep()])
def test_weights_whose_gradients_have_one_sign_part_all_the_same(rule):
    descent = LazyDescent.start([0.5, 0.5], Simplex(2), rule, update_every=1)

    for _ in range(3):
        descent = descent.observe(lambda z: np.array([2.0, 1.0]))

    assert descent.z[1] > 0.6


def test_no_coordinate_moves_beyond_its_reach():
    descent = LazyDescent.start(
        [0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=1, reach=[0.1, np.inf]
    )

    descent = descent.observe(lambda z: np.array([-1.5, -1.5]))

    assert descent.z.tolist() == [0.1, 1.5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_is_skipped_and_counted(bad):
    descent = LazyDescent.start([0.3, 0.3], SQUARE, AdaGradStep(), update_every=1)

    after = descent.observe(lambda z: np.array([1.0, bad]))

    assert after.skipped == 1
    assert after.z.tolist() == [0.3, 0.3]
    assert after.observe(lambda z: np.ones(2)).moves == 1


@given(arrays(float, (6, 3), elements=st.floats(-1e150, 1e150)))
def test_weights_stay_on_the_simplex_under_any_gradients(gradients):
    descent = LazyDescent.start([0.2, 0.3, 0.5], Simplex(3), AdaGradStep(), update_every=2)

    for g in gradients:
        descent = descent.observe(lambda z, g=g: g)

    assert descent.z.min() >= 0
    assert abs(descent.z.sum() - 1) <= 1e-12


def test_the_mean_is_over_the_gradients_seen_not_over_m():
    descent = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=8)

    moved = descent.add(np.array([3.0, -3.0]), count=3).move()

    assert moved.z.tolist() == [-1.0, 1.0]


def test_a_move_after_several_windows_is_longer_but_within_reach():
    descent = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(0.1), update_every=1, reach=0.5)
    walked = descent.add(np.array([1.0, -4.0]))

    assert walked.move().z.tolist() == [-0.1, 0.4]
    assert walked.move(2).z.tolist() == [-0.2, 0.5]


def test_a_step_that_overflows_is_skipped_and_adagrad_keeps_its_memory():
    descent = LazyDescent.start([0.3, 0.3], SQUARE, AdaGradStep(), update_every=1)
    before = descent.observe(lambda z: np.ones(2))

    after = before.observe(lambda z: np.array([1e200, 1.0]))

    assert after.skipped == 1
    assert after.memory.tolist() == before.memory.tolist() == [1.0, 1.0]


def test_a_point_that_is_set_forgets_the_gradients_of_the_one_before():
    descent = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=2)
    walked = descent.observe(lambda z: np.array([9.0, 9.0]))

    after = walked.moved_to([1.0, 1.0]).observe(lambda z: np.ones(2))

    assert after.z.tolist() == [1.0, 1.0]  # one gradient of two
    assert after.observe(lambda z: np.ones(2)).z.tolist() == [0.0, 0.0]


def test_a_point_that_is_set_keeps_what_the_step_rule_remembers():
    descent = LazyDescent.start([0.0, 0.0], SQUARE, AdaGradStep(0.5), update_every=1)

    after = descent.observe(lambda z: np.array([3.0, 0.0])).moved_to([0.0, 0.0])

    # The first gradient counts on: 0.5 * 4 / sqrt(3^2 + 4^2).
    assert after.observe(lambda z: np.array([4.0, 0.0])).z.tolist() == [-0.4, 0.0]


def test_a_point_outside_is_not_set():
    descent = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=1)

    with pytest.raises(InvalidInputError, match=r"z must lie in the feasible set, got \[3\.0"):
        descent.moved_to([3.0, 0.0])


def test_without_gradients_there_is_no_move():
    descent = LazyDescent.start([0.3, 0.3], SQUARE, ConstantStep(1.0), update_every=1)

    after = descent.move()

    assert (after.moves, after.skipped) == (0, 0)
    assert after.z.tolist() == [0.3, 0.3]


def test_reach_limits_both_directions():
    descent = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=1, reach=0.1)

    after = descent.observe(lambda z: np.array([-9.0, 9.0]))

    assert after.z.tolist() == [0.1, -0.1]


def test_a_skipped_move_forgets_its_gradients():
    descent = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=1)

    after = descent.observe(lambda z: np.array([np.nan, 1.0]))

    assert after.observe(lambda z: np.ones(2)).z.tolist() == [-1.0, -1.0]


def test_a_state_can_be_saved_and_restored():
    fresh = LazyDescent.start([0.0, 0.0], SQUARE, AdaGradStep(), update_every=3)
    run = fresh
    for _ in range(4):
        run = run.observe(lambda z: z - 1.0)

    resumed = fresh.restore(run.state())

    for _ in range(5):
        run, resumed = (each.observe(lambda z: z - 1.0) for each in (run, resumed))
    np.testing.assert_array_equal(run.z, resumed.z)
    assert run.moves == resumed.moves == 3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ConstantStep(0.0), r"learning_rate must be positive, got 0\.0\."),
        (lambda: ConstantStep([0.1, 0.2]), r"learning_rate must be one number, got \[0\.1, 0\.2\]"),
        (
            lambda: LazyDescent.start(
                [0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=1
            ).observe(lambda z: 1.0),
            r"gradient must have shape \(2,\), got \(\)",
        ),
        (
            lambda: SmoothedLeader.start([0.0, 0.0], SQUARE, learning_rate=0.1, window=1).observe(
                lambda z: np.ones(3)
            ),
            r"gradient must have shape \(2,\), got \(3,\)",
        ),
        (lambda: AdaGradStep(-1.0), r"learning_rate must be positive, got -1\.0\."),
        (
            lambda: LazyDescent.start([9.0, 0.0], SQUARE, ConstantStep(1.0), update_every=1),
            r"z must lie in the feasible set, got \[9\.0, 0\.0\]\.",
        ),
        (
            lambda: LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(1.0), update_every=0),
            "update_every must be a whole number of at least 1, got 0",
        ),
        (
            lambda: SmoothedLeader.start([9.0, 0.0], SQUARE, learning_rate=0.1, window=3),
            "z must lie in the feasible set",
        ),
        (
            lambda: SmoothedLeader.start([0.0, 0.0], SQUARE, learning_rate=0.1, window=0),
            "window must be a whole number",
        ),
    ],
)
def test_bad_settings_are_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


def test_the_smoothed_leader_stops_at_a_small_projected_gradient():
    leader = SmoothedLeader.start([0.0, 0.0], SQUARE, learning_rate=0.2, window=4, tolerance=0.04)

    for target in np.linspace(-1, 1, 12):
        leader = leader.observe(lambda z, target=target: 2 * (z - target))
        g = np.mean([cost(leader.z) for cost in leader.costs], axis=0) * len(leader.costs) / 4
        step = leader.z - SQUARE.project(leader.z - 0.2 * g)
        assert np.linalg.norm(step) / 0.2 <= 0.04 / 4
    assert len(leader.costs) == 4


def test_the_smoothed_leader_divides_by_its_window_from_the_first_cost_on():
    leader = SmoothedLeader.start([0.0, 0.0], SQUARE, learning_rate=0.2, window=4, tolerance=2.0)

    # |gradient| is 2, its share of four is 0.5, and that is within 2 / 4.
    assert leader.observe(lambda z: np.array([2.0, 0.0])).moves == 0


@pytest.mark.parametrize(
    ("rate", "gradient", "message"),
    [
        (1.0, lambda z: 2 * (z - 1.0), "learning_rate must let the mean of 1 costs settle"),
        (0.1, lambda z: np.sign(z - 0.33), "learning_rate must let the mean of 1 costs settle"),
        (0.1, lambda z: z * np.nan, "gradient must be finite, got nan"),
    ],
)
def test_a_smoothed_leader_that_would_circle_for_ever_is_stopped(rate, gradient, message):
    leader = SmoothedLeader.start([0.0], Box([-5.0], [5.0]), learning_rate=rate, window=1)

    with pytest.raises(InvalidInputError, match=message):
        leader.observe(gradient)


def circling(z, t):
    """Return the gradient of a cost whose minimum goes round and round."""
    return 2 * (z - [np.sin(t / 3), np.cos(t / 3)])


def test_lazy_updates_need_m_times_fewer_refits_than_the_leader():
    m, T = 24, 240
    lazy = LazyDescent.start([0.0, 0.0], SQUARE, ConstantStep(0.1), update_every=m)
    leader = SmoothedLeader.start([0.0, 0.0], SQUARE, learning_rate=0.1, window=m, tolerance=0.05)

    for t in range(T):
        cost = partial(circling, t=t)
        lazy, leader = lazy.observe(cost), leader.observe(cost)

    assert lazy.moves == T // m
    assert leader.moves >= m * lazy.moves
    assert leader.gradients >= m * T / 2


def test_each_window_undoes_a_share_of_the_distance_from_the_usual_point():
    descent = LazyDescent.start(
        [1.6, -0.8], SQUARE, ConstantStep(0.5), update_every=1, usual=[0.0, 0.0], pull=0.25
    )

    once = descent.add(np.zeros(2)).move()
    thrice = descent.add(np.zeros(2)).move(windows=3)
    pushed = descent.add(np.array([0.0, 1.0])).move()

    np.testing.assert_allclose(once.z, [1.2, -0.6], rtol=1e-14)
    np.testing.assert_allclose(thrice.z, [1.6 * 0.75**3, -0.8 * 0.75**3], rtol=1e-14)
    np.testing.assert_allclose(pushed.z, [1.2, -1.1], rtol=1e-14)


def test_the_start_is_the_usual_point_unless_another_is_given():
    descent = LazyDescent.start([0.5, 0.5], SQUARE, ConstantStep(0.5), update_every=1, pull=0.25)

    stayed = descent.add(np.zeros(2)).move()
    returned = descent.moved_to([1.5, 0.5]).add(np.zeros(2)).move()

    np.testing.assert_array_equal(stayed.z, [0.5, 0.5])
    np.testing.assert_allclose(returned.z, [1.25, 0.5], rtol=1e-14)


def test_a_coordinate_that_matters_stays_near_its_minimum_and_a_flat_one_returns():
    descent = LazyDescent.start(
        [0.0, 1.0], SQUARE, AgreementStep(), update_every=1, usual=[0.0, 0.0], pull=0.03
    )

    for _ in range(150):
        descent = descent.observe(lambda z: np.array([z[0] - 1.0, 0.0]))

    np.testing.assert_allclose(descent.z, [1.0, 0.0], atol=0.1)


def test_a_held_coordinate_and_a_window_without_gradients_are_not_pulled():
    held = LazyDescent.start(
        [1.0, 1.0], SQUARE, AgreementStep(), update_every=1, reach=[0.0, np.inf], usual=[0.0, 0.0],
        pull=0.5,
    )  # fmt: skip

    moved, silent = held.add(np.zeros(2)).move(), held.move()

    np.testing.assert_array_equal(moved.z, [1.0, 0.5])
    np.testing.assert_array_equal(silent.z, [1.0, 1.0])


@pytest.mark.parametrize("pull", [-0.1, 1.0])
def test_a_pull_beyond_the_usual_point_is_refused(pull):
    with pytest.raises(
        InvalidInputError, match=rf"pull must be at least 0 and below 1, got {pull}"
    ):
        LazyDescent.start([0.0], Box([-1.0], [1.0]), ConstantStep(0.5), update_every=1, pull=pull)


def test_a_usual_point_outside_the_set_is_refused():
    with pytest.raises(InvalidInputError, match=r"must lie in the feasible set, got \[2\.0\]"):
        LazyDescent.start([0.0], Box([-1.0], [1.0]), ConstantStep(0.5), update_every=1, usual=[2.0])
