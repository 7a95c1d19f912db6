import numpy as np
import pytest

from streamridge import Inputs, InvalidInputError, Layout, Samples


def test_a_slice_is_a_view_with_the_same_layout():
    samples = Samples.of([0, 1, 2], np.ones((3, 2)), [1.0, 2.0, 3.0])

    part = samples[1:]

    assert len(part) == 2
    assert part.inputs.layout == samples.inputs.layout
    assert np.shares_memory(part.x, samples.x)


def test_samples_copy_their_arrays():
    x = np.ones((2, 1))
    samples = Samples.of([0, 1], x, [1.0, 2.0])

    x[:] = 9.0

    assert (samples.x == 1.0).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Samples.of([0], [[1.0]], [np.nan]), "y must be finite, got nan at index 0"),
        (lambda: Samples.of([0], [[np.inf]], [1.0]), "x must be finite, got inf at index 0, 0"),
        (lambda: Samples.of([np.nan], [[1.0]], [1.0]), "t must be finite, got nan at index 0"),
        (lambda: Samples.of([0, 1], [[1.0]], [1.0]), r"x must have shape \(2, any\), got \(1, 1\)"),
        (
            lambda: Samples.of([0], [[1.0]], [1.0, 2.0]),
            r"y must have shape \(1, any\), got \(2, 1\)",
        ),
        (lambda: Inputs.of([[0]], [[1.0]]), r"t must have shape \(any,\), got \(1, 1\)"),
        (lambda: Inputs.of([0, 1], [[1.0], [1.0, 2.0]]), "x must be rows of equal length, got "),
        (lambda: Inputs.of(["noon"], [[1.0]]), r"t must be numbers, got \['noon'\]"),
        (
            lambda: Inputs.of([0], [[1.0, 2.0]], Layout((("lags", 2), ("calendar", 1)))),
            r"x must have 3 features \(2 lags, 1 calendar\), got 2",
        ),
    ],
)
def test_bad_arrays_are_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()
