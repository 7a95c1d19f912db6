"""All exceptions of the library, and how messages show a wrong value.

- StreamRidgeError
    - InvalidInputError (ValueError): a value from the user breaks a constraint
    - FitError (ArithmeticError): a model cannot be fitted to these samples
        - NotPositiveDefiniteError: a ridge system has no Cholesky factor
    - StateError (ValueError): a saved state does not fit the object that should continue from it
    - MissingExtraError (ImportError): an optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Iterable

from streamridge.texts import visible

# The most characters of a value, and the most values of a list, that a message shows.
LONGEST = 60
MOST = 10


class StreamRidgeError(Exception):
    """The base of every error that this library raises on purpose.

    Where it is about one sensor, its text begins with the sensor's name: see `about`. Whatever
    names hold, a terminal can show the text: see `visible`.
    """

    sensor: str | None = None

    @property
    def reason(self) -> str:
        """Return the text without the name of a sensor."""
        return visible(super().__str__())

    def __str__(self) -> str:
        return self.reason if self.sensor is None else f"{visible(self.sensor)}: {self.reason}"


class InvalidInputError(StreamRidgeError, ValueError):
    """An error that names a value, the constraint it breaks, and what was given."""


class StateError(StreamRidgeError, ValueError):
    """An error that says why a saved state cannot be restored."""


class MissingExtraError(StreamRidgeError, ImportError):
    """An error that names a missing optional dependency, and how to install it."""


class FitError(StreamRidgeError, ArithmeticError):
    """An error that says why a model cannot be fitted; learners keep the fit in force."""


class NotPositiveDefiniteError(FitError):
    """An error that names a ridge system without a Cholesky factor, and the remedy.

    Parameters
    ----------
    system
        The matrix, in words.
    time
        Time of the last training sample.
    penalty
        Name of the hyperparameter on the diagonal of the matrix.
    value
        Its current value.
    lower_bound
        The smallest value that tuning may choose.
    """

    def __init__(
        self, system: str, time: float, penalty: str, value: float, lower_bound: float
    ) -> None:
        super().__init__(
            f"{system} has no Cholesky factor at t={time:.15g} ({penalty}={value}). "
            f"Raise its lower bound, now {lower_bound}."
        )


class about:  # noqa: N801 - it reads as a word of a sentence
    """A `with` block whose errors begin with a sensor's name; the first name stays.

    Written out, for every step passes several.

    Examples
    --------
    >>> with about("ramp-7"):
    ...     raise InvalidInputError("value must be a number, got 'x'.")
    Traceback (most recent call last):
        ...
    streamridge.errors.InvalidInputError: ramp-7: value must be a number, got 'x'.
    """

    __slots__ = ("_sensor",)

    def __init__(self, sensor: str | None) -> None:
        self._sensor = sensor

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StreamRidgeError):
            error.sensor = error.sensor or self._sensor


def shown(value: object) -> str:
    """Return a value as Python writes it, cut off after 60 characters."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def listed(names: Iterable[str]) -> str:
    """Return the first ten names as text, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed("abcdefghijkl")
    "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j' and 2 more"
    """
    every = [shown(name) for name in names]
    more = f" and {len(every) - MOST} more" if len(every) > MOST else ""
    return (", ".join(every[:MOST]) or "none") + more
