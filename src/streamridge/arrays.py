"""Array types, and the checks of values that enter the library."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.errors import InvalidInputError, shown

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
# An array in the precision of a factorization: float64 or float32.
Block: TypeAlias = NDArray[Any]

Value = TypeVar("Value")


class SameContent:
    """A base of dataclasses that hold arrays: equality compares the content and returns one bool.

    NaN equals NaN, and fields with `compare=False` do not count.
    """

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _same(getattr(self, part.name), getattr(other, part.name))
            for part in fields(self)  # type: ignore[arg-type]
            if part.compare
        )


def _same(one: Any, other: Any) -> bool:
    """Return whether two field values are equal; NaN equals NaN."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        exact = one.dtype.kind not in "fM"  # whole numbers and flags have no NaN
        return np.array_equal(one, other, equal_nan=not exact)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(one is other or one == other or (one != one and other != other))


def require_finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as a float64 array; raise if one of them is not a finite number.

    Examples
    --------
    >>> require_finite("y", [1, 2.5])
    array([1. , 2.5])
    >>> require_finite("y", [1.0, float("nan")])
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: y must be finite, got nan at index 1.
    """
    try:
        raw = np.asarray(values)
    except ValueError:  # rows of different length
        raise InvalidInputError(
            f"{name} must be rows of equal length, got {shown(values)}."
        ) from None
    # Text, dates, booleans and None must not silently turn into numbers.
    if raw.dtype.kind not in "iuf" or np.ma.is_masked(values):
        what = "numbers" if raw.ndim else "a number"
        raise InvalidInputError(f"{name} must be {what}, got {shown(values)}.")
    array = raw.astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        index = np.argwhere(~finite)[0]
        where = f" at index {', '.join(map(str, index))}" if index.size else ""
        raise InvalidInputError(f"{name} must be finite, got {array[tuple(index)]}{where}.")
    return array


def require_number(name: str, value: ArrayLike) -> float:
    """Return `value` as a float; raise unless it is one finite number.

    Examples
    --------
    >>> require_number("y", [1.0])
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: y must be one number, got [1.0].
    """
    if type(value) is float and isfinite(value):  # the usual case
        return value
    array = require_finite(name, value)
    if array.ndim:
        raise InvalidInputError(f"{name} must be one number, got {shown(value)}.")
    return float(array)


def require_shape(name: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Raise unless `array` has this shape; None allows any length.

    Examples
    --------
    >>> require_shape("y", np.zeros(3), (4,))
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: y must have shape (4,), got (3,).
    """
    fits = len(array.shape) == len(shape) and all(
        want is None or want == got for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        wanted += "," if len(shape) == 1 else ""
        raise InvalidInputError(f"{name} must have shape ({wanted}), got {array.shape}.")


def require_positive(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return `values` as a float64 array; raise if one of them is not above zero.

    Examples
    --------
    >>> require_positive("period", -96)
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: period must be positive, got -96.0.
    """
    array = require_finite(name, values)
    if not (array > 0).all():
        raise InvalidInputError(f"{name} must be positive, got {array[array <= 0].flat[0]}.")
    return array


def require_count(name: str, value: ArrayLike, *, least: int = 1, most: int | None = None) -> int:
    """Return `value`; raise unless it is a whole number of at least `least`, and at most `most`.

    Examples
    --------
    >>> require_count("update_every", 0)
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: update_every must be a whole number of at least 1, got 0.
    """
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in "iu" or number < least:
        beyond = f" and below {2**64:.0e}" if isinstance(value, int) and value > least else ""
        raise InvalidInputError(
            f"{name} must be a whole number of at least {least}{beyond}, got {shown(value)}."
        )
    if most is not None and number > most:
        raise InvalidInputError(f"{name} must be at most {most}, got {shown(value)}.")
    return int(number)


def require_one_of(name: str, value: object, allowed: Collection[object]) -> None:
    """Raise unless a value is one of the allowed values.

    Examples
    --------
    >>> require_one_of("gap", "fill", ("error", "skip"))
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: gap must be one of error, skip, got 'fill'.
    """
    if not any(value is each or value == each for each in allowed):
        words = ", ".join(map(str, allowed))
        raise InvalidInputError(f"{name} must be one of {words}, got {shown(value)}.")


def require_flag(name: str, value: object) -> bool:
    """Return a flag; raise unless it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInputError(f"{name} must be True or False, got {shown(value)}.")
    return bool(value)


def joined(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Return the states of several parts in one mapping of arrays, each under its prefix.

    Examples
    --------
    >>> joined({"a": {"x": 1.0}})
    {'a.x': array(1.)}
    """
    return {
        f"{part}.{name}": np.asarray(value)
        for part, state in parts.items()
        for name, value in state.items()
    }


def stacked(
    values: Collection[Any], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[Any]]:
    """Return the named fields of some values, one array per field, in these shapes.

    Examples
    --------
    >>> stacked([1 + 2j, 3j], {"real": (2, 1)})
    {'real': array([[1.],
           [0.]])}
    """
    return {
        name: np.array([getattr(each, name) for each in values]).reshape(shape)
        for name, shape in shapes.items()
    }


def part(state: Mapping[str, Value], name: str) -> dict[str, Value]:
    """Return the state of one part, without its prefix.

    Examples
    --------
    >>> part({"a.x": 1.0, "b.x": 2.0}, "a")
    {'x': 1.0}
    """
    prefix = f"{name}."
    return {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
