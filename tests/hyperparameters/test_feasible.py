import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamridge import Box, Chart, InvalidInputError, Product, Simplex
from streamridge.hyperparameters.feasible import chart_of
from tests.oracles import central_difference, project_simplex_by_bisection

vectors = arrays(float, st.integers(1, 8), elements=st.floats(-1e3, 1e3))


@given(vectors)
def test_simplex_projection_is_the_nearest_point(u):
    p = Simplex(len(u)).project(u)

    assert p.min() >= 0
    assert np.isclose(p.sum(), 1.0)
    # p is nearest iff no vertex e_i lies on u's side of p: <u - p, e_i - p> <= 0.
    assert np.all((u - p) - (u - p) @ p <= 1e-9 * (1 + np.abs(u).max()))


@given(vectors)
def test_simplex_projection_equals_bisection(u):
    np.testing.assert_allclose(
        Simplex(len(u)).project(u), project_simplex_by_bisection(u), atol=1e-9
    )


@given(arrays(float, 5, elements=st.floats(-1e300, 1e300)))
def test_simplex_projection_survives_any_finite_point(u):
    p = Simplex(len(u)).project(u)

    assert p.min() >= 0
    assert abs(p.sum() - 1) <= 1e-12


@given(vectors, st.floats(-5, 0), st.floats(0, 5))
def test_box_projection_is_the_nearest_point(u, low, high):
    box = Box(np.full(len(u), low), np.full(len(u), high))

    p = box.project(u)

    assert box.contains(p)
    # Nearest iff no corner lies on u's side of p, coordinate by coordinate.
    for corner in (box.low, box.high):
        assert np.all((u - p) * (corner - p) <= 1e-12)


def test_a_product_projects_part_by_part():
    product = Product((Box([0.0], [1.0]), Simplex(2), Box([-1.0], [0.0])))

    p = product.project(np.array([5.0, 3.0, 0.0, -9.0]))

    np.testing.assert_allclose(p, [1.0, 1.0, 0.0, -1.0])
    assert product.size == 4
    assert product.contains(p)
    assert not product.contains(p + 0.1)


def test_lower_and_upper_active_bounds_are_distinguished():
    product = Product((Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]), Simplex(3)))

    sides = product.active(np.array([0.0, 0.5, 1.0, 0.0, 0.4, 0.6]))

    assert sides.tolist() == [-1, 0, 1, -1, 0, 0]


def test_a_point_just_outside_is_outside():
    assert not Box([0.0], [1.0]).contains(np.array([1.0001]))
    assert not Simplex(2).contains(np.array([0.5, 0.5001]))


@given(st.floats(1e-9, 1e9), st.floats(1.001, 1e6))
def test_a_bound_reached_in_logarithms_counts_as_reached(low, ratio):
    box = Product((Box([low], [low * ratio]),))
    chart = Chart.log(box)

    for side, bound in ((-1, np.log(low)), (1, np.log(low * ratio))):
        lam = box.project(chart.decode(np.array([bound])))
        assert box.active(lam).tolist() == [side]


def test_log_coordinates_apply_to_positive_boxes_only():
    product = Product((Box([1e-3], [1e3]), Simplex(2), Box([-1.0], [1.0])))

    chart = Chart.log(product)

    assert chart.logged.tolist() == [True, False, False, False]
    np.testing.assert_allclose(chart.feasible.parts[0].low, np.log(1e-3))


@pytest.mark.parametrize("coordinates", [Chart.natural, Chart.log])
def test_coordinates_are_inverted_exactly_and_transform_gradients(coordinates):
    chart = coordinates(Product((Box([1e-3, 1e-3], [1e3, 1e3]), Simplex(2))))
    lam = np.array([0.02, 5.0, 0.3, 0.7])

    def loss(values):
        return values[0] ** 2 * values[1] + np.sin(values[2]) + values[3] ** 3

    z = chart.encode(lam)
    np.testing.assert_allclose(chart.decode(z), lam, rtol=1e-14)
    in_lam = np.array([2 * lam[0] * lam[1], lam[0] ** 2, np.cos(lam[2]), 3 * lam[3] ** 2])
    in_z = central_difference(lambda moved: loss(chart.decode(moved)), z)
    np.testing.assert_allclose(chart.pull_back(lam, in_lam), in_z, rtol=1e-6)


@pytest.mark.parametrize(
    ("coordinates", "widths"),
    [
        ("natural", [0.9, np.inf, 1.0, 1.0, 2.0]),
        ("log", [np.log(10), np.inf, 1.0, 1.0, 2.0]),
    ],
)
def test_widths_are_interval_lengths_and_infinite_for_constants(coordinates, widths):
    product = Product((Box([0.1, 3.0], [1.0, 3.0]), Simplex(2), Box([-1.0], [1.0])))

    chart = chart_of(coordinates, product)

    np.testing.assert_allclose(chart.widths, widths)


def test_an_empty_set_has_no_widths():
    assert chart_of("log", Product(())).widths.shape == (0,)


def test_a_chart_is_selected_by_name():
    product = Product((Box([0.1], [1.0]), Simplex(2)))

    assert chart_of("log", product).logged.tolist() == [True, False, False]
    assert chart_of("natural", product).logged.tolist() == [False, False, False]
    with pytest.raises(
        InvalidInputError, match=r"^coordinates must be 'log' or 'natural', got 'polar'\.$"
    ):
        chart_of("polar", product)


def test_a_box_copies_its_bounds():
    low = np.array([0.0])
    box = Box(low, [1.0])

    low[:] = 0.9

    assert box.low.tolist() == [0.0]


def test_a_box_refuses_reversed_bounds():
    with pytest.raises(InvalidInputError, match=r"low must not exceed high, got 2\.0 > 1\.0\."):
        Box([0.0, 2.0], [1.0, 1.0])


def test_a_box_refuses_bounds_of_different_length():
    with pytest.raises(InvalidInputError, match=r"high must have shape \(1,\), got \(2,\)\."):
        Box([0.0], [1.0, 2.0])


def test_a_simplex_refuses_no_dimension():
    with pytest.raises(InvalidInputError, match="size must be a whole number of at least 1, got 0"):
        Simplex(0)


def test_only_weights_have_a_tangent_plane():
    product = Product((Box([0.0], [1.0]), Simplex(2), Box([-1.0], [0.0])))

    assert product.tangent(np.array([5.0, 3.0, 1.0, 7.0])).tolist() == [5.0, 1.0, -1.0, 7.0]
