import numpy as np
import pytest

from streamridge.models.landmarks import drawn
from streamridge.models.preconditioners import by_factor, by_landmarks
from streamridge.models.systems import cholesky

N = 200
LAM_R = 0.3


def kernel_of(x, scale=1.0):
    return np.exp(-scale * np.abs(x[:, None] - x).astype(float))


def upper(K, lam_R=LAM_R, dtype=np.float64):
    """Return the upper triangle of K + lam_R I, with NaN below it."""
    A = (K + lam_R * np.eye(len(K))).astype(dtype)
    A[np.tril_indices(len(K), -1)] = np.nan
    return A


@pytest.fixture(name="K")
def smooth_kernel(rng):
    return kernel_of(np.sort(rng.uniform(0, 10, size=N)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 3])
def test_a_factor_preconditions_by_the_inverse_of_its_matrix(dtype, columns, K, rng):
    R = rng.normal(size=(N, columns))

    X = by_factor(cholesky(upper(K, dtype=dtype)))(R)

    assert X.dtype == np.float64
    exact = np.linalg.solve(K + LAM_R * np.eye(N), R)
    np.testing.assert_allclose(X, exact, atol=1e3 * np.finfo(dtype).eps * np.abs(exact).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 3])
def test_landmarks_precondition_by_the_inverse_of_nystroems_matrix(dtype, columns, K, rng):
    Z = np.sort(drawn(np.arange(float(N)), 40))
    R = rng.normal(size=(N, columns))

    X = by_landmarks(upper(K, dtype=dtype), LAM_R, Z)(R)

    P = K[:, Z] @ np.linalg.solve(K[np.ix_(Z, Z)], K[Z]) + LAM_R * np.eye(N)
    exact = np.linalg.solve(P, R)
    assert X.dtype == np.float64
    np.testing.assert_allclose(X, exact, atol=1e4 * np.finfo(dtype).eps * np.abs(exact).max())


def test_with_every_row_a_landmark_it_is_the_inverse_of_the_matrix(K, rng):
    R = rng.normal(size=(N, 1))

    X = by_landmarks(upper(K), LAM_R, np.arange(N))(R)

    np.testing.assert_allclose(X, np.linalg.solve(K + LAM_R * np.eye(N), R), rtol=1e-6)


def test_the_matrix_is_left_alone(K):
    A = upper(K)
    before = A.copy()

    by_landmarks(A, LAM_R, np.arange(0, N, 5))

    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_landmarks_that_are_duplicates_of_each_other_do_no_harm(dtype, rng):
    x = np.repeat(np.sort(rng.uniform(0, 10, size=N // 4)), 4)
    K = kernel_of(x)
    R = rng.normal(size=(N, 1))

    X = by_landmarks(upper(K, dtype=dtype), LAM_R, np.arange(N))(R)

    exact = np.linalg.solve(K + LAM_R * np.eye(N), R)
    np.testing.assert_allclose(X, exact, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize(("lam_R", "near"), [(0.3, True), (0.2, True), (0.1, False), (1e-6, False)])
def test_landmarks_that_explain_too_little_are_no_preconditioner(lam_R, near, rng):
    # Rows that have nothing in common: 40 of 200 landmarks leave 0.8 of the diagonal unexplained.
    K = 0.5 * np.eye(N)

    found = by_landmarks(upper(K, lam_R), lam_R, np.arange(40))

    assert (found is not None) == near


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_has_none(entry, K):
    K[7, 7] = entry

    with np.errstate(invalid="ignore"):
        assert by_landmarks(upper(K), LAM_R, np.arange(0, N, 7)) is None


def test_a_matrix_that_is_not_positive_has_none():
    assert by_landmarks(upper(-np.eye(N)), LAM_R, np.arange(0, N, 5)) is None
