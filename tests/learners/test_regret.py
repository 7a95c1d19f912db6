import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamridge import (
    Box,
    ConstantStep,
    InvalidInputError,
    LazyDescent,
    Product,
    Simplex,
    SmoothedLeader,
    gradient_variation,
    local_regret,
    projected_gradient,
)

SET = Product((Box([-1.0, -1.0], [1.0, 1.0]), Simplex(2)))
points = arrays(float, 4, elements=st.floats(-3, 3))
gradients = arrays(float, 4, elements=st.floats(-9, 9))


def test_inside_the_set_the_projected_gradient_is_the_gradient():
    g = projected_gradient(np.array([0.0, 0.5]), np.array([0.3, -0.2]), 0.1, Box([-1, -1], [1, 1]))

    np.testing.assert_allclose(g, [0.3, -0.2])


@given(points, gradients, gradients)
def test_projected_gradients_are_no_further_apart_than_gradients(u, g, h):
    z = SET.project(u)

    apart = projected_gradient(z, g, 0.3, SET) - projected_gradient(z, h, 0.3, SET)

    assert np.linalg.norm(apart) <= np.linalg.norm(g - h) + 1e-9  # Lemma 1


@given(points, gradients)
def test_a_gradient_leans_on_its_projection(u, g):
    z = SET.project(u)

    P = projected_gradient(z, g, 0.3, SET)

    assert g @ P >= P @ P - 1e-9 * (1 + g @ g)  # Lemma 2


def run(method, costs):
    """Return the local regret of a method on a stream of costs, given by their gradients."""
    iterates, gradients = [], []
    for cost in costs:
        iterates.append(method.z)
        gradients.append(cost(method.z))
        method = method.observe(cost)
    return local_regret(iterates, gradients, 0.1, method.feasible)


def quadratic(target):
    return lambda z: 2 * (z - target)


METHODS = {
    "lazy m=1": lambda box: LazyDescent.start([0.0], box, ConstantStep(0.1), update_every=1),
    "lazy m=12": lambda box: LazyDescent.start([0.0], box, ConstantStep(0.1), update_every=12),
    "leader": lambda box: SmoothedLeader.start([0.0], box, learning_rate=0.1, window=12),
}
every_method = pytest.mark.parametrize("start", METHODS.values(), ids=METHODS)


@every_method
def test_regret_per_step_falls_on_stationary_costs(start):
    R = run(start(Box([-2.0], [2.0])), [quadratic(1.0)] * 1200)

    per_step = R / np.arange(1, len(R) + 1)
    assert per_step[-1] < per_step[599] < per_step[99]
    assert per_step[-1] < 0.05 * per_step[11]


@every_method
def test_regret_per_step_stays_bounded_on_drifting_costs(start):
    drift = [quadratic(np.sin(t / 40)) for t in range(2400)]

    R = run(start(Box([-2.0], [2.0])), drift)

    per_step = R / np.arange(1, len(R) + 1)
    assert per_step[-1] <= 1.1 * per_step[1199]
    # Theorem 1 allows O(T), and no method does better on costs that never rest.
    assert R[-1] > 1.5 * R[1199]


def test_observed_variation_bounds_what_lazy_updates_lose():
    m, T, eta, box = 12, 1200, 0.1, Box([-2.0], [2.0])
    targets = np.sin(np.arange(T) / 5)
    descent = LazyDescent.start([0.0], box, ConstantStep(eta), update_every=m)
    iterates, gradients = [], []
    for target in targets:
        iterates.append(descent.z)
        gradients.append(2 * (descent.z - target))
        descent = descent.observe(quadratic(target))

    V = gradient_variation(gradients, m).max()

    # Proposition 1, with the projected mean gradients at the moves.
    means = np.array(gradients).reshape(-1, m, 1).mean(axis=1)
    at_moves = np.array(iterates)[::m]
    P = np.array([projected_gradient(z, g, eta, box) for z, g in zip(at_moves, means, strict=True)])
    norms = np.linalg.norm(P, axis=1)
    # The print lacks the factor m before the first sum: each of the m steps adds |P|^2.
    bound = m * np.sum(norms**2) + 2 * np.sqrt(m * V) * np.sum(norms) + len(norms) * V
    assert local_regret(iterates, gradients, eta, box)[-1] <= bound


def test_variation_of_equal_gradients_is_zero_and_incomplete_windows_are_left_out():
    assert gradient_variation(np.ones((7, 2)), 3).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("iterates", "gradients", "rate", "message"),
    [
        ([[0.0]], [[0.0], [1.0]], 0.1, r"gradients must have shape \(1, 1\), got \(2, 1\)\."),
        ([[0.0, 1.0]], [[0.0, 1.0]], 0.1, r"iterates must have shape \(any, 1\), got \(1, 2\)\."),
        ([[0.0]], [[np.nan]], 0.1, "gradients must be finite, got nan"),
        ([[0.0]], [[0.0]], 0.0, r"learning_rate must be positive, got 0\.0\."),
    ],
)
def test_bad_input_is_refused(iterates, gradients, rate, message):
    with pytest.raises(InvalidInputError, match=message):
        local_regret(iterates, gradients, rate, Box([-1.0], [1.0]))


def test_no_steps_have_no_regret():
    assert local_regret(np.empty((0, 1)), np.empty((0, 1)), 0.1, Box([-1.0], [1.0])).size == 0
