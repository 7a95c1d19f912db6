import numpy as np
import pytest

from streamridge.models.conjugate import conjugate_gradients


class Products:
    """Is a symmetric positive definite matrix that counts its products."""

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

    # The condition number of 10 stands between residual and solution.
    np.testing.assert_allclose(x, np.linalg.solve(A.A, b), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("tolerance", [0.5, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("guessed", [False, True])
def test_the_residual_is_within_the_tolerance(tolerance, guessed, rng):
    A = Products(rng, 60)
    b = rng.normal(size=60)
    start = 10 * rng.normal(size=60) if guessed else np.zeros(60)

    x = conjugate_gradients(A, b, start, tolerance)

    # The residual is carried along, which costs it a few roundings of the first one.
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


def test_a_guess_that_is_good_enough_comes_back(rng):
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


def test_nothing_on_the_right_is_solved_by_nothing_without_a_product(rng):
    A = Products(rng, 20)

    x = conjugate_gradients(A, np.zeros(20), rng.normal(size=20), 1e-6)

    np.testing.assert_array_equal(x, 0.0)
    assert A.count == 0


def test_columns_are_solved_side_by_side_as_they_are_alone(rng):
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


def test_a_column_of_zeros_is_not_touched_by_its_guess(rng):
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


def test_what_is_not_solved_within_the_limit_is_given_up(rng):
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
