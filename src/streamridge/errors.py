"""The whole exception tree.

- StreamRidgeError
    - InvalidInputError (ValueError): a value that entered the library breaks a stated constraint
    - NotPositiveDefiniteError (ArithmeticError): a ridge system has no Cholesky factor
    - StateError (ValueError): a saved state does not belong to what it is put back into
"""

from __future__ import annotations


class StreamRidgeError(Exception):
    """Is the base of every error that this library raises on purpose."""


class InvalidInputError(StreamRidgeError, ValueError):
    """Says which value breaks which constraint, and what was got."""


class StateError(StreamRidgeError, ValueError):
    """Says why a saved state cannot be put back."""


class NotPositiveDefiniteError(StreamRidgeError, ArithmeticError):
    """Says which ridge system has no Cholesky factor, and what mends it.

    Parameters
    ----------
    time
        Time of the last training sample.
    regularization
        The ridge constant in force.
    lower_bound
        The least ridge constant that tuning may choose.
    precision
        Name of the number format of the factorization.
    """

    def __init__(
        self, time: float, regularization: float, lower_bound: float, precision: str
    ) -> None:
        super().__init__(
            f"K + regularization * I has no Cholesky factor in {precision} at t={time:g} "
            f"(regularization={regularization:g}). "
            f"Raise its lower bound, now {lower_bound:g}."
        )
