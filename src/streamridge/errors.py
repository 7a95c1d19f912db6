"""The whole exception tree.

- StreamRidgeError
    - InvalidInputError (ValueError): a value that entered the library breaks a stated constraint
    - NotPositiveDefiniteError (ArithmeticError): a ridge system has no Cholesky factor
    - StateError (ValueError): a saved state does not belong to what it is put back into
    - MissingExtraError (ImportError): an optional dependency is not installed
"""

from __future__ import annotations


class StreamRidgeError(Exception):
    """Is the base of every error that this library raises on purpose."""


class InvalidInputError(StreamRidgeError, ValueError):
    """Says which value breaks which constraint, and what was got."""


class StateError(StreamRidgeError, ValueError):
    """Says why a saved state cannot be put back."""


class MissingExtraError(StreamRidgeError, ImportError):
    """Says which optional dependency is missing, and how to install it."""


class NotPositiveDefiniteError(StreamRidgeError, ArithmeticError):
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
