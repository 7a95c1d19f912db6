"""Errors: their texts, and the sensors that they are about."""

import pytest

from streamridge.errors import (
    InvalidInputError,
    MissingExtraError,
    NotPositiveDefiniteError,
    StateError,
    about,
)

ERRORS = (
    InvalidInputError("lags must be positive, got 0."),
    StateError("the file must be whole, got a part."),
    MissingExtraError("optuna must be installed."),
    NotPositiveDefiniteError("K", 1.0, "regularization", 1e-14, 0.0),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_begins_with_the_first_sensor_it_is_about_and_keeps_its_type(error):
    text = str(error)

    with pytest.raises(type(error)) as caught, about("A2"), about("A1"), about(None):
        raise error

    assert caught.value is error
    assert str(error) == f"A1: {text}"
    assert error.reason == text


def test_an_error_about_no_sensor_stays_as_it_is():
    with pytest.raises(InvalidInputError, match=r"^lags must be positive$"), about(None):
        raise InvalidInputError("lags must be positive")


def test_an_error_of_another_library_stays_as_it_is():
    with pytest.raises(ValueError, match=r"^other$"), about("A1"):
        raise ValueError("other")
