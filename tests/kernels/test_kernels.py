"""Claims of single kernels beyond the laws: closed forms, structure, construction."""

import numpy as np
import pytest

from streamridge import (
    ARD,
    Drifting,
    Inputs,
    InvalidInputError,
    Layout,
    Linear,
    Matern,
    Mixture,
    Periodic,
    SquaredExponential,
)
from streamridge.kernels.base import Weights
from streamridge.kernels.drifting import FreeLags, TabledLags, ToeplitzLags, time_lags
from tests import oracles
from tests.support.samples import make_samples


@pytest.fixture
def rows(rng):
    return make_samples(rng, 12).inputs


def test_periodic_is_equation_7(rows):
    K, _ = oracles.periodic([7.3, 0.8], rows.t, rows.t)

    np.testing.assert_allclose(Periodic(7.3, 0.8)(rows, rows), K, rtol=1e-12)


def test_squared_exponential_is_equation_8(rows):
    D = np.linalg.norm(rows.x[:, None] - rows.x, axis=2)

    K = SquaredExponential(0.3)(rows, rows)

    np.testing.assert_allclose(K, np.exp(-0.3 * D**2), rtol=1e-12)


def test_ard_is_equation_9_with_its_square(rows):
    nu = np.array([0.1, 0.2, 0.3, 0.4, 0.5])

    np.testing.assert_allclose(ARD(nu)(rows, rows), oracles.ard(nu, rows.x, rows.x)[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("order", "formula"),
    [
        (0.5, lambda s: np.exp(-np.sqrt(s))),
        (1.5, lambda s: (1 + np.sqrt(3 * s)) * np.exp(-np.sqrt(3 * s))),
        (2.5, lambda s: (1 + np.sqrt(5 * s) + 5 * s / 3) * np.exp(-np.sqrt(5 * s))),
    ],
)
def test_matern_is_its_closed_form(order, formula, rows):
    s = 0.3 * np.linalg.norm(rows.x[:, None] - rows.x, axis=2) ** 2

    np.testing.assert_allclose(Matern(0.3, order=order)(rows, rows), formula(s), rtol=1e-10)


def test_isotropic_matern_is_matern_with_equal_scales(rows):
    np.testing.assert_array_equal(Matern(0.3)(rows, rows), Matern([0.3] * 5)(rows, rows))


def test_linear_is_the_inner_product_of_its_block(rows):
    K = Linear(("calendar",))(rows, rows)

    np.testing.assert_allclose(K, rows.x[:, 3:] @ rows.x[:, 3:].T)


def test_drifting_multiplies_by_the_exponential_of_the_age(rows):
    K = Drifting(Linear(), rate=1e-3)(rows, rows)

    age = np.abs(rows.t[:, None] - rows.t)
    np.testing.assert_allclose(K, Linear()(rows, rows) * np.exp(-1e-3 * age), rtol=1e-12)


def test_mixture_is_the_weighted_sum_of_its_parts(rows):
    parts = [Periodic(7.3), Matern(0.3), Linear()]

    K = Mixture(parts, weights=[0.2, 0.7, 0.1])(rows, rows)

    expected = sum(w * part(rows, rows) for w, part in zip([0.2, 0.7, 0.1], parts, strict=True))
    np.testing.assert_allclose(K, expected, rtol=1e-12)


def test_plus_builds_flat_mixtures_with_equal_weights():
    mixture = Periodic(96.0) + (SquaredExponential() + Linear()) + Linear()

    assert [type(part) for part in mixture.kernels] == [
        Periodic,
        SquaredExponential,
        Linear,
        Linear,
    ]
    np.testing.assert_allclose(mixture.weights, 0.25)


def test_plus_keeps_the_proportions_of_explicit_weights():
    mixture = Mixture([Linear(), Periodic(96.0)], weights=[0.9, 0.1]) + Linear()

    np.testing.assert_allclose(mixture.weights, [0.6, 0.2 / 3, 1 / 3])


def test_hyperparameters_are_named_by_their_kernel():
    mixture = Linear() + Periodic(96.0) + Linear() + ARD([1.0, 2.0])

    assert mixture.space.names == (
        "weight.linear1",
        "weight.periodic",
        "weight.linear2",
        "weight.ard",
        "periodic.period",
        "periodic.inverse_scale",
        "ard.inverse_scales[0]",
        "ard.inverse_scales[1]",
    )


def test_nested_drifting_kernels_have_distinct_names():
    kernel = Drifting(Drifting(Linear(), rate=1e-3), rate=1e-4)

    assert kernel.space.named(kernel.values) == {"rate": 1e-4, "drifting.rate": 1e-3}


def test_a_single_weight_is_not_at_a_bound():
    mixture = Mixture([Linear()])

    assert mixture.space.active_bounds(mixture.values) == {}


def test_the_period_is_constant_unless_bounds_are_given():
    assert Periodic(96.0).space.learned.tolist() == [False, True]
    assert Periodic(96.0, period_bounds=(90, 100)).space.learned.tolist() == [True, True]


def test_duplicate_rows_have_distance_zero_and_a_finite_gradient():
    twice = Inputs.of([0.0, 1.0, 2.0], [[1e3, 2.0], [1e3, 2.0], [1e3, 2.0]])
    kernel = Matern([0.7, 0.3])

    evaluation = kernel.evaluate(kernel.embed(twice), kernel.embed(twice))

    np.testing.assert_array_equal(evaluation.value, np.ones((3, 3)))
    ones = np.ones((3, 1))
    np.testing.assert_array_equal(evaluation.inner(Weights(ones, ones))[1], [0.0, 0.0])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_units_give_finite_kernels(scale, rng):
    x = scale * rng.normal(size=(9, 2))
    inputs = Inputs.of(np.arange(9.0), x)

    K = (Matern([0.5, 0.5]) + ARD([0.5, 0.5]))(inputs, inputs)

    assert np.isfinite(K).all()
    np.testing.assert_allclose(K, np.eye(9) if scale > 1 else np.ones((9, 9)), atol=1e-6)


@pytest.mark.parametrize(
    ("t", "other", "kind"),
    [
        (np.arange(5.0), np.arange(9.0), ToeplitzLags),
        (0.25 * np.arange(5.0) + 3, 0.25 * np.arange(2.0), ToeplitzLags),
        (np.arange(5.0), np.array([0.0, 1, 2, 7, 8]), TabledLags),
        (np.array([0.0, 1.5, 7.25]), np.array([0.5, 1.0]), FreeLags),
        (np.array([0.0, 1.001, 2.0]), np.array([0.0, 1.0]), FreeLags),
        (np.empty(0), np.arange(3.0), FreeLags),
        (np.array([0.0, 1.0, 1e9]), np.array([5.0, 1e6, 2e6]), FreeLags),
        (np.array([4.0]), np.arange(9.0), FreeLags),
    ],
)
def test_time_lags_take_the_most_compact_form(t, other, kind, rng):
    lags = time_lags(t, other)

    assert isinstance(lags, kind)
    np.testing.assert_allclose(lags.expand(lags.distinct), t[:, None] - other)
    left, right = rng.normal(size=(len(t), 2)), rng.normal(size=(len(other), 2))
    values = rng.normal(size=lags.distinct.shape)
    for factor in (None, rng.normal(size=(len(t), len(other)))):
        W = Weights(left, right, factor)
        # `collect` is the transpose of `expand`.
        np.testing.assert_allclose(
            (lags.collect(W) * values).sum(), (W.dense * lags.expand(values)).sum()
        )


def test_the_phase_keeps_its_digits_at_large_times():
    late = np.array([1.5e9, 1.5e9 + 7.5, 1.5e9 + 96])
    inputs = Inputs.of(late, np.empty((3, 0)))
    early = Inputs.of(late - 1.5e9, np.empty((3, 0)))

    np.testing.assert_allclose(
        Periodic(96.0)(inputs, inputs), Periodic(96.0)(early, early), rtol=1e-12
    )


def test_a_regular_grid_needs_one_evaluation_per_distinct_lag():
    assert time_lags(np.arange(100.0), np.arange(300.0)).distinct.size == 399


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Periodic(-96.0), r"period must be positive, got -96\.0\."),
        (lambda: Periodic(96.0, 0.0), r"inverse_scale must be positive, got 0\.0\."),
        (
            lambda: Periodic(96.0, period_bounds=(192, 48)),
            r"period_bounds must run from low to high, got \(192\.0, 48\.0\)\.",
        ),
        (
            lambda: Periodic(20.0, period_bounds=(48, 192)),
            r"period must lie within its bounds \(48\.0, 192\.0\), got 20\.0\.",
        ),
        (lambda: ARD([1.0, -2.0]), r"inverse_scales must be positive, got -2\.0\."),
        (lambda: ARD([1.0, np.nan]), r"inverse_scales must be finite, got nan at index 1\."),
        (lambda: ARD([1.0, 1e9]), r"inverse_scales must lie within its bounds"),
        (lambda: Matern(1.0, order=2.0), r"order must be 0\.5, 1\.5 or 2\.5, got 2\.0\."),
        (lambda: SquaredExponential("wide"), "inverse_scale must be a number, got 'wide'"),
        (lambda: Drifting(Linear(), rate=1.0), r"rate must lie within its bounds"),
        (lambda: Periodic([96.0, 5.0]), r"period must be one number, got \[96\.0, 5\.0\]"),
        (lambda: Periodic("96"), "period must be a number, got '96'"),
        (
            lambda: Periodic(96.0, period_bounds=(1, 2, 300)),
            r"period_bounds must be a pair \(low, high\), got \(1, 2, 300\)",
        ),
        (lambda: Mixture([Linear(), 2]), "kernels must hold kernels only, got 2"),
        (lambda: Mixture([]), r"kernels must hold at least one kernel, got none\."),
        (
            lambda: Mixture([Linear()], weights=[0.5]),
            r"weights must be >= 0 and sum to 1, got \[0\.5\]\.",
        ),
        (
            lambda: Mixture([Linear(), Linear()], weights=[1.0]),
            r"weights must have one entry per kernel \(2\), got \[1\.\]\.",
        ),
    ],
)
def test_a_kernel_refuses_bad_hyperparameters(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()


def test_a_kernel_refuses_the_wrong_number_of_features(rows):
    with pytest.raises(InvalidInputError, match="x must have 3 features, one per inverse scale"):
        ARD([1.0, 1.0, 1.0])(rows, rows)


def test_a_kernel_refuses_an_unknown_block(rows):
    with pytest.raises(InvalidInputError, match="features must be among 'lags', 'calendar', got"):
        Linear(("weather",))(rows, rows)


def test_a_kernel_refuses_to_read_nothing(rows):
    with pytest.raises(InvalidInputError, match="features must name at least one block, got none"):
        Linear(())(rows, rows)


def test_plus_keeps_fixed_weights_fixed():
    fixed = Mixture([Linear(), Periodic(96.0)], learn_weights=False)

    assert not (fixed + Linear()).learn_weights
    assert not (Linear() + fixed).learn_weights


def test_blocks_that_are_not_adjacent_are_read_together():
    layout = Layout((("a", 1), ("b", 2), ("c", 1)))
    inputs = Inputs.of([0.0], [[1.0, 2.0, 3.0, 4.0]], layout)

    np.testing.assert_array_equal(inputs.block(("a", "c")), [[1.0, 4.0]])


def test_adding_an_object_that_is_not_a_kernel_raises_a_type_error():
    with pytest.raises(TypeError, match="unsupported operand"):
        Linear() + 1.0
