"""Whether what was stored is what is made again: to the last bit, or but for rounding."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from streamridge.files.checkpoint import decoded
from streamridge.service.ledger.records import Issued

# On another processor, or with other numerical libraries, numbers are the same but for this share.
ROUNDING = 1e-9


def nearly_equal(one: bytes, other: bytes) -> bool:
    """Return whether two texts of JSON say the same, but for the rounding of their numbers.

    Examples
    --------
    >>> nearly_equal(b'{"rate": 1.0}', b'{"rate": 1.0000000000001}')
    True
    """
    if one == other:
        return True
    return _near(msgspec.json.decode(one), msgspec.json.decode(other))


def nearly_equal_states(one: bytes, other: bytes) -> bool:
    """Return whether two states of a forecaster are the same, but for the rounding of numbers."""
    if one == other:
        return True
    (header, arrays), (other_header, others) = decoded(one, "state"), decoded(other, "state")
    if arrays.keys() != others.keys() or not _near(header, other_header):
        return False
    return all(_near_arrays(arrays[name], others[name]) for name in arrays)


def nearly_equal_forecasts(one: Issued, other: Issued) -> bool:
    """Return whether two forecasts are the same, but for the rounding of numbers."""
    plain, others = (
        (each.seq, each.sensor, each.time, each.fit, each.source) for each in (one, other)
    )
    numbers = ([*each.values, *each.lower, *each.upper] for each in (one, other))
    return plain == others and _near_arrays(*map(np.array, numbers))


def _near(one: Any, other: Any) -> bool:
    """Return whether two plain values are the same, but for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_near, one, other))
    if _is_number(one) and _is_number(other):
        return abs(one - other) <= ROUNDING * max(abs(one), abs(other), ROUNDING)
    return bool(one == other)


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _near_arrays(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Return whether two arrays are the same, but for a rounding on the scale of their numbers."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    scale = np.abs(one[np.isfinite(one)]).max(initial=0.0)
    return bool(np.allclose(one, other, rtol=ROUNDING, atol=ROUNDING * scale, equal_nan=True))
