"""Laws that every kernel must pass."""

import numpy as np
import pytest

from streamridge import (
    ARD,
    Drifting,
    Inputs,
    InvalidInputError,
    Linear,
    Matern,
    Mixture,
    Periodic,
    Remembering,
    SquaredExponential,
)
from streamridge.kernels.base import Arena, Heap, Slopes, Weights
from tests.oracles import central_difference
from tests.support.samples import make_samples

SCALES = [0.3, 0.05, 0.7, 0.2, 0.4]

KERNELS = {
    "periodic": Periodic(period=7.3, inverse_scale=0.8, period_bounds=(5, 9)),
    "squared exponential": SquaredExponential(inverse_scale=0.2),
    "ard": ARD(SCALES),
    "ard on a block": ARD([0.3, 0.9], features=("calendar",)),
    "matern 1/2": Matern(SCALES, order=0.5),
    "matern 3/2": Matern(SCALES, order=1.5),
    "matern 5/2": Matern(SCALES, order=2.5),
    "matern 1/2 isotropic": Matern(0.3, order=0.5),
    "matern 5/2 isotropic": Matern(0.3, order=2.5),
    "linear": Linear(),
    "linear on a block": Linear(("lags",)),
    "drifting": Drifting(ARD(SCALES), rate=0.01, rate_bounds=(1e-4, 0.1)),
    "remembering": Remembering(
        ARD(SCALES), rates=(0.01, 0.002), shares=(0.3, 0.7), rates_bounds=(1e-4, 0.1)
    ),
    "three memories of three": Remembering(
        Remembering(Linear() + Matern(0.2, order=1.5), rates=(0.01, 0.003)),
        rates=(0.01, 0.003, 0.0005),
        shares=(0.2, 0.5, 0.3),
    ),
    "mixture": Mixture(
        [Periodic(period=7.3, period_bounds=(5, 9)), Matern(SCALES), Linear(("lags",))],
        weights=[0.5, 0.3, 0.2],
    ),
    "nested": Drifting(
        Periodic(period=7.3) + Drifting(Linear() + Matern(0.2, order=1.5), rate=0.003),
        rate=0.002,
    ),
}

# Regular grids, grids with gaps and times without a grid use different code.
TIMES = {
    "regular": np.arange(30.0),
    "half steps": 0.5 * np.arange(30.0),
    "gaps": np.concatenate([np.arange(11.0), np.arange(40.0, 59.0)]),
    "irregular": np.cumsum(np.linspace(0.3, 1.9, 30)),
}

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
all_times = pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)


def make_inputs(rng, times):
    rows = make_samples(rng, len(times)).inputs
    return Inputs(times, rows.x, rows.layout)


@every_kernel
@all_times
def test_gram_matrix_is_symmetric_and_positive_semidefinite(kernel, times, rng):
    inputs = make_inputs(rng, times)

    K = kernel(inputs, inputs)

    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * len(K) * np.abs(K).max()


def any_inputs(rng):
    """Return at most thirty rows of any scale, some of them equal, at any kind of times."""
    times = rng.choice(list(TIMES.values()))[: rng.integers(1, 31)]
    rows = make_inputs(rng, times)
    x = rows.x * 10 ** rng.uniform(-3, 3)
    return Inputs(times, x[rng.integers(0, len(x), len(x))], rows.layout)


@every_kernel
@pytest.mark.parametrize("cases", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_any_gram_matrix_is_semidefinite_and_well_conditioned_with_a_ridge(
    kernel, cases, rng, record_property
):
    record_property("row", "C4")
    record_property("cases", cases)
    for _ in range(cases):
        inputs = any_inputs(rng)

        K = kernel(inputs, inputs)

        size = np.trace(K)  # N where the diagonal is one
        rounding = 4 * len(K) * np.finfo(float).eps * size
        assert np.abs(K - K.T).max() <= rounding
        assert np.linalg.eigvalsh(K)[0] >= -rounding
        regularization = size / len(K) * 10 ** rng.uniform(-6, 1)
        values = np.linalg.eigvalsh(K + regularization * np.eye(len(K)))
        # Rounding is less than a millionth of the smallest regularization.
        assert values[-1] / values[0] <= (1 + size / regularization) * (1 + 1e-6)


@every_kernel
@all_times
def test_gradient_dot_is_the_derivative_of_the_value(kernel, times, rng):
    a, b = make_inputs(rng, times)[::2], make_inputs(rng, times)
    v = rng.normal(size=len(b))

    columns = kernel.gradient_dot(a, b, v)

    assert columns.shape == (len(a), len(kernel.values))
    differences = _differences(kernel, lambda moved: moved(a, b) @ v)
    # An entry near zero is the difference of large ones: compare with the column's size.
    np.testing.assert_allclose(columns, differences, rtol=1e-6, atol=1e-8 * len(b))


@every_kernel
@all_times
def test_inner_contracts_value_and_gradient(kernel, times, rng):
    a, b = make_inputs(rng, times)[::2], make_inputs(rng, times)
    evaluation = kernel.evaluate(kernel.embed(a), kernel.embed(b))
    left, right = rng.normal(size=(len(a), 2)), rng.normal(size=(len(b), 2))
    factor = rng.uniform(size=(len(a), len(b)))

    for weights in (Weights(left, right), Weights(left, right, factor)):
        in_value, in_gradient = evaluation.inner(weights)

        W = left @ right.T if weights.factor is None else (left @ right.T) * factor
        # A row of W at a time turns the contraction into products that the law above checks.
        by_rows = [kernel.gradient_dot(a[i : i + 1], b, W[i])[0] for i in range(len(a))]
        np.testing.assert_allclose(in_value, (W * kernel(a, b)).sum(), rtol=1e-10)
        np.testing.assert_allclose(in_gradient, np.sum(by_rows, axis=0), rtol=1e-9, atol=1e-11)


@every_kernel
@all_times
def test_tangent_dot_is_the_derivative_of_the_value_as_rows_move(kernel, times, rng):
    a, b = make_inputs(rng, times)[::2], make_inputs(rng, times)
    da, db = make_inputs(rng, times)[::2], make_inputs(rng, times)
    v, factor = rng.normal(size=len(b)), rng.uniform(size=(len(a), len(b)))

    def value(moved):
        return kernel(along(a, da, moved), along(b, db, moved))

    evaluation = kernel.evaluate(kernel.embed(a), kernel.embed(b))
    tangents = kernel.embed_tangent(da), kernel.embed_tangent(db)
    # One-sided differences from zero with two steps, extrapolated.
    dK = (4 * (value(5e-5) - value(-5e-5)) / 1e-4 - (value(1e-4) - value(-1e-4)) / 2e-4) / 3
    for part, given in ((dK @ v, None), ((dK * factor) @ v, factor)):
        moved = evaluation.tangent_dot(v, *tangents, given)
        np.testing.assert_allclose(moved, part, rtol=1e-6, atol=1e-8 * len(b))


@every_kernel
@all_times
def test_slopes_are_the_derivatives_in_all_rows(kernel, times, rng):
    a, b = make_inputs(rng, times)[::2], make_inputs(rng, times)
    tangents = [kernel.embed_tangent(each) for each in (make_inputs(rng, times)[::2], b)]
    evaluation = kernel.evaluate(kernel.embed(a), kernel.embed(b))
    left, right = rng.normal(size=(len(a), 2)), rng.normal(size=(len(b), 2))
    factor = rng.uniform(size=(len(a), len(b)))

    for weights in (Weights(left, right), Weights(left, right, factor)):
        slopes = Slopes(*(each.zeros() for each in tangents), share=0.5)
        results = evaluation.inner(weights, slopes)

        W = left @ right.T if weights.factor is None else (left @ right.T) * factor
        da, db = tangents
        by_rows = [
            kernel.evaluate(kernel.embed(a[i : i + 1]), kernel.embed(b)).tangent_dot(
                W[i], da.rows(slice(i, i + 1)), db
            )
            for i in range(len(a))
        ]
        changed = slopes.a.dot(da) + slopes.b.dot(db)
        np.testing.assert_allclose(changed, 0.5 * np.sum(by_rows), rtol=1e-9, atol=1e-11)
        for one, other in zip(results, evaluation.inner(weights), strict=True):
            np.testing.assert_array_equal(one, other)


def along(inputs, tangent, share):
    """Return rows moved along a tangent."""
    return Inputs(inputs.t, inputs.x + share * tangent.x, inputs.layout)


@every_kernel
@all_times
def test_a_value_does_not_depend_on_other_rows(kernel, times, rng):
    a, b = make_inputs(rng, times), make_inputs(rng, times)

    together = kernel(a, b)

    alone = np.vstack([kernel(a[i : i + 1], b) for i in range(len(a))])
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-14)


@every_kernel
def test_replacing_the_values_by_themselves_changes_nothing(kernel):
    assert kernel.replace(kernel.values) == kernel


@every_kernel
def test_replace_refuses_a_wrong_number_of_values(kernel):
    with pytest.raises(InvalidInputError, match="hyperparameters must have shape"):
        kernel.replace(np.ones(len(kernel.values) + 1))


@every_kernel
def test_names_values_bounds_and_marks_agree_in_number(kernel):
    space = kernel.space

    assert len(space.names) == len(set(space.names)) == len(kernel.values)
    assert len(space.learned) == space.feasible.size == len(kernel.values)
    assert space.feasible.contains(kernel.values)


@every_kernel
def test_an_arena_in_float32_gives_the_same_to_single_precision(kernel, rng):
    a = kernel.embed(make_inputs(rng, TIMES["regular"]))
    weights = Weights(rng.normal(size=(30, 1)), rng.normal(size=(30, 1)))
    single = Weights(weights.left.astype(np.float32), weights.right.astype(np.float32))

    rounded = kernel.evaluate(a, a, Arena(np.float32))

    exact = kernel.evaluate(a, a, Heap())
    assert rounded.value.dtype == np.float32
    np.testing.assert_allclose(rounded.value, exact.value, atol=2e-6)
    np.testing.assert_allclose(
        rounded.inner(single)[1], exact.inner(weights)[1], rtol=1e-3, atol=1e-4
    )


@every_kernel
def test_write_to_and_add_to_give_multiples_of_the_value(kernel, rng):
    a = kernel.embed(make_inputs(rng, TIMES["regular"]))
    evaluation = kernel.evaluate(a, a)
    total = np.full((30, 40), np.nan)[:, :30]

    evaluation.write_to(total, 0.5)
    np.testing.assert_allclose(total, 0.5 * evaluation.value, rtol=1e-12)

    evaluation.add_to(total, 0.25)
    np.testing.assert_allclose(total, 0.75 * evaluation.value, rtol=1e-12)


def _differences(kernel, f):
    """Return central differences of a vector function of the kernel, one column each."""
    size = len(f(kernel))
    rows = central_difference(lambda values: f(kernel.replace(values)), kernel.values)
    return rows.reshape(len(kernel.values), size).T


@every_kernel
@all_times
@pytest.mark.parametrize("late", [0.0, 0.5, 40.0, -3.0], ids=["now", "soon", "later", "before"])
def test_a_weighted_sum_is_the_product_with_the_row_of_one_input(kernel, times, late, rng):
    rows, one = make_inputs(rng, times), make_inputs(rng, times)[:1]
    one = Inputs(times[-1:] + late, one.x, one.layout)
    weights = rng.normal(size=(len(rows), 3))

    weighted_sum = kernel.weighted_sum(kernel.embed(rows), weights, rows.layout)
    sums = weighted_sum(float(one.t[0]), one.x[0])

    k = kernel(one, rows)[0]
    assert sums.shape == (3,)
    # A sum may be far smaller than its parts; it is as exact as they are.
    assert (np.abs(sums - k @ weights) <= 1e-12 * (np.abs(k) @ np.abs(weights))).all()
    np.testing.assert_array_equal(weighted_sum(float(one.t[0]), one.x[0]), sums)


@every_kernel
def test_a_weighted_sum_at_a_training_row_is_as_exact(kernel, rng):
    rows = make_inputs(rng, TIMES["gaps"])
    weights = rng.normal(size=(len(rows), 1))

    weighted_sum = kernel.weighted_sum(kernel.embed(rows), weights, rows.layout)

    for i in range(len(rows)):
        k = kernel(rows[i : i + 1], rows)[0]
        error = weighted_sum(float(rows.t[i]), rows.x[i]) - k @ weights
        assert abs(error) <= 1e-12 * (np.abs(k) @ np.abs(weights))
