import numpy as np
import pytest

from streamridge.models.conjugate_gradients import by_landmarks, conjugate_gradients
from streamridge.models.landmarks import drawn
from streamridge.models.systems import by_factor, cholesky

N = 200
LAM_R = 0.3


class Products:
    """A symmetric positive definite matrix that counts its products."""

    def __init__(self, rng, n, *, spread=10.0):
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        self.A = (Q * np.geomspace(1.0, spread, n)) @ Q.T
        self.count = 0

    def __call__(self, x):
        self.count += 1
        return self.A @ x


@pytest.mark.parametrize("n", [1, 2, 30])
def test_a_tight_tolerance_gives_the_solution(n, rng):
    A = Products(rng, n)
    b = rng.normal(size=n)

    x = conjugate_gradients(A, b, np.zeros(n), 1e-13)

    # The condition number is 10, so the solution is less exact than the residual.
    np.testing.assert_allclose(x, np.linalg.solve(A.A, b), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("tolerance", [0.5, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("guessed", [False, True])
def test_the_residual_is_within_the_tolerance(tolerance, guessed, rng):
    A = Products(rng, 60)
    b = rng.normal(size=60)
    start = 10 * rng.normal(size=60) if guessed else np.zeros(60)

    x = conjugate_gradients(A, b, start, tolerance)

    # The residual is updated, not recomputed, which adds a few rounding errors.
    assert np.linalg.norm(A.A @ x - b) <= tolerance * np.linalg.norm(b) * (1 + 1e-4)


def test_a_looser_tolerance_takes_fewer_products(rng):
    A = Products(rng, 60)
    b = rng.normal(size=60)

    counts = []
    for tolerance in (1e-8, 1e-4, 1e-2):
        A.count = 0
        conjugate_gradients(A, b, np.zeros(60), tolerance)
        counts.append(A.count)

    assert counts[0] > counts[1] > counts[2] > 1


def test_as_many_products_as_distinct_eigenvalues_solve_the_system(rng):
    A = Products(rng, 40)
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    A.A = (Q * np.repeat([1.0, 5.0, 9.0, 20.0], 10)) @ Q.T
    b = rng.normal(size=40)

    x = conjugate_gradients(A, b, np.zeros(40), 1e-10)

    assert A.count == 1 + 4  # the residual of the guess, and one per eigenvalue
    np.testing.assert_allclose(x, np.linalg.solve(A.A, b), rtol=1e-9)


def test_a_good_first_guess_takes_fewer_products(rng):
    A = Products(rng, 60)
    b = rng.normal(size=60)
    conjugate_gradients(A, b, np.zeros(60), 1e-6)
    cold, A.count = A.count, 0

    conjugate_gradients(A, b, np.linalg.solve(A.A, b) * (1 + 1e-4), 1e-6)

    assert A.count < cold / 2


def test_a_sufficient_guess_is_returned_unchanged(rng):
    A = Products(rng, 20)
    b = rng.normal(size=20)
    guess = np.linalg.solve(A.A, b)

    x = conjugate_gradients(A, b, guess, 1e-6)

    np.testing.assert_array_equal(x, guess)
    assert x is not guess
    assert A.count == 1


def test_there_are_no_more_iterations_than_unknowns(rng):
    A = Products(rng, 25, spread=1e14)

    conjugate_gradients(A, rng.normal(size=25), np.zeros(25), 1e-15)

    assert A.count == 1 + 25


def test_arguments_are_not_written_to(rng):
    A = Products(rng, 20)
    b, start = rng.normal(size=20), rng.normal(size=20)
    b.flags.writeable = start.flags.writeable = False

    x = conjugate_gradients(A, b, start, 1e-6)

    assert not np.shares_memory(x, start)


def test_a_right_hand_side_of_zero_is_solved_without_a_product(rng):
    A = Products(rng, 20)

    x = conjugate_gradients(A, np.zeros(20), rng.normal(size=20), 1e-6)

    np.testing.assert_array_equal(x, 0.0)
    assert A.count == 0


def test_columns_solved_together_equal_columns_solved_alone(rng):
    A = Products(rng, 50)
    B = rng.normal(size=(50, 3)) * [1.0, 1e-6, 0.0]

    X = conjugate_gradients(A, B, None, 1e-6)

    together, A.count = A.count, 0
    alone = []
    for b in B.T:
        before = A.count
        alone.append((conjugate_gradients(A, b, None, 1e-6), A.count - before))
    np.testing.assert_allclose(X, np.column_stack([x for x, _ in alone]), rtol=1e-9)
    assert together == max(count for _, count in alone)


def test_a_column_of_zeros_ignores_its_guess(rng):
    A = Products(rng, 30)
    B = np.column_stack([rng.normal(size=30), np.zeros(30)])

    X = conjugate_gradients(A, B, rng.normal(size=(30, 2)), 1e-8)

    np.testing.assert_array_equal(X[:, 1], 0.0)


def test_a_guess_of_zero_costs_no_product(rng):
    A = Products(rng, 30)
    b = rng.normal(size=30)
    without = conjugate_gradients(A, b, None, 1e-8)
    count, A.count = A.count, 0

    with_zeros = conjugate_gradients(A, b, np.zeros(30), 1e-8)

    assert A.count == count + 1
    np.testing.assert_array_equal(without, with_zeros)


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("spread", [10.0, 1e6])
def test_a_preconditioner_gives_the_same_solution_in_fewer_products(columns, spread, rng):
    A = Products(rng, 80, spread=spread)
    B = rng.normal(size=(80, columns))
    conjugate_gradients(A, B, None, 1e-12)
    plain, A.count = A.count, 0
    disturbed = A.A + 1e-3 * np.diag(rng.uniform(size=80))

    X = conjugate_gradients(A, B, None, 1e-12, lambda R: np.linalg.solve(disturbed, R))

    expected = np.linalg.solve(A.A, B)
    np.testing.assert_allclose(X, expected, atol=1e-11 * spread * np.abs(expected).max())
    assert A.count <= 6 < plain


def test_the_matrix_itself_as_preconditioner_takes_one_product(rng):
    A = Products(rng, 40, spread=1e5)
    b = rng.normal(size=40)

    x = conjugate_gradients(A, b, None, 1e-8, lambda r: np.linalg.solve(A.A, r))

    assert A.count == 1
    np.testing.assert_allclose(A.A @ x, b, atol=1e-8)


def test_columns_not_solved_within_the_limit_become_nan(rng):
    A = Products(rng, 40)
    b = rng.normal(size=40)
    conjugate_gradients(A, b, None, 1e-8)
    needed, A.count = A.count, 0

    assert np.isfinite(conjugate_gradients(A, b, None, 1e-8, limit=needed)).all()
    assert np.isnan(conjugate_gradients(A, b, None, 1e-8, limit=needed - 1)).all()


def test_a_matrix_that_is_not_finite_is_never_solved(rng):
    with np.errstate(invalid="ignore"):
        x = conjugate_gradients(lambda x: np.inf * x, rng.normal(size=5), None, 1e-2)

    assert np.isnan(x).all()


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


def test_a_preconditioner_with_every_row_as_landmark_is_the_exact_inverse(K, rng):
    R = rng.normal(size=(N, 1))

    X = by_landmarks(upper(K), LAM_R, np.arange(N))(R)

    np.testing.assert_allclose(X, np.linalg.solve(K + LAM_R * np.eye(N), R), rtol=1e-6)


def test_building_a_preconditioner_does_not_change_the_matrix(K):
    A = upper(K)
    before = A.copy()

    by_landmarks(A, LAM_R, np.arange(0, N, 5))

    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_duplicate_landmarks_do_not_break_the_preconditioner(dtype, rng):
    x = np.repeat(np.sort(rng.uniform(0, 10, size=N // 4)), 4)
    K = kernel_of(x)
    R = rng.normal(size=(N, 1))

    X = by_landmarks(upper(K, dtype=dtype), LAM_R, np.arange(N))(R)

    exact = np.linalg.solve(K + LAM_R * np.eye(N), R)
    np.testing.assert_allclose(X, exact, atol=1e-3 * np.abs(exact).max())


@pytest.mark.parametrize(("lam_R", "near"), [(0.3, True), (0.2, True), (0.1, False), (1e-6, False)])
def test_landmarks_that_explain_too_little_give_no_preconditioner(lam_R, near, rng):
    # Rows that have nothing in common: 40 of 200 landmarks leave 0.8 of the diagonal unexplained.
    K = 0.5 * np.eye(N)

    found = by_landmarks(upper(K, lam_R), lam_R, np.arange(40))

    assert (found is not None) == near


@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_has_no_preconditioner(entry, K):
    K[7, 7] = entry

    with np.errstate(invalid="ignore"):
        assert by_landmarks(upper(K), LAM_R, np.arange(0, N, 7)) is None


def test_a_matrix_that_is_not_positive_has_no_preconditioner():
    assert by_landmarks(upper(-np.eye(N)), LAM_R, np.arange(0, N, 5)) is None
