"""The whole exception tree, and how messages show what was got.

- StreamRidgeError
    - InvalidInputError (ValueError): a value that entered the library breaks a stated constraint
    - FitError (ArithmeticError): a model cannot be fitted to these samples
        - NotPositiveDefiniteError: a ridge system has no Cholesky factor
    - StateError (ValueError): a saved state does not belong to what it is put back into
    - MissingExtraError (ImportError): an optional dependency is not installed
"""

from __future__ import annotations

from collections.abc import Iterable

# Characters of a value, and values of a list, that a message shows.
LONGEST = 60
MOST = 10


class StreamRidgeError(Exception):
    """Is the base of every error that this library raises on purpose."""


class InvalidInputError(StreamRidgeError, ValueError):
    """Says which value breaks which constraint, and what was got."""


class StateError(StreamRidgeError, ValueError):
    """Says why a saved state cannot be put back."""


class MissingExtraError(StreamRidgeError, ImportError):
    """Says which optional dependency is missing, and how to install it."""


class FitError(StreamRidgeError, ArithmeticError):
    """Says why a model cannot be fitted; learners keep the fit in force and go on."""


class NotPositiveDefiniteError(FitError):
    """Says which ridge system has no Cholesky factor, and what mends it.

    Parameters
    ----------
    system
        The matrix, in words.
    time
        Time of the last training sample.
    penalty
        Name of the hyperparameter on its diagonal.
    value
        Its value in force.
    lower_bound
        The least value that tuning may choose.
    """

    def __init__(
        self, system: str, time: float, penalty: str, value: float, lower_bound: float
    ) -> None:
        super().__init__(
            f"{system} has no Cholesky factor at t={time:.15g} ({penalty}={value}). "
            f"Raise its lower bound, now {lower_bound}."
        )


def shown(value: object) -> str:
    """Return a value as Python writes it, cut when it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def listed(names: Iterable[str]) -> str:
    """Return up to ten names, and how many more there are.

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
