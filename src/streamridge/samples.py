"""The data of a model: Inputs (t, x) to predict at, and Samples (t, x, y) to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError, listed


@dataclass(frozen=True)
class Layout:
    """The blocks of columns in x, by name, with what is known of their units.

    Parameters
    ----------
    blocks
        Pairs (name, width) in column order.
    latest
        The column that holds the latest value of the series. All blocks share its unit,
        except those named below.
    own_unit
        Blocks in which every column has a unit of its own.
    unitless
        Blocks without a unit, such as coordinates of the calendar.

    Examples
    --------
    >>> layout = Layout((("lags", 20), ("calendar", 4)), unitless=("calendar",))
    >>> layout.width, layout.spans["calendar"]
    (24, slice(20, 24, None))
    """

    blocks: tuple[tuple[str, int], ...]
    latest: int = 0
    own_unit: tuple[str, ...] = ()
    unitless: tuple[str, ...] = ()

    @cached_property
    def width(self) -> int:
        """Return the number of columns of x."""
        return sum([width for _, width in self.blocks])

    @property
    def names(self) -> tuple[str, ...]:
        """Return a name for every column, such as "lags 3"; shape (p,)."""
        return tuple(
            f"{block.replace('_', ' ')} {i}"
            for block, width in self.blocks
            for i in range(1, width + 1)
        )

    @property
    def spans(self) -> dict[str, slice]:
        """Return the columns of each block, as a slice by name."""
        ends = accumulate(width for _, width in self.blocks)
        return {
            name: slice(end - width, end)
            for (name, width), end in zip(self.blocks, ends, strict=True)
        }


@lru_cache(maxsize=256)  # every forecast asks for the same few
def columns(layout: Layout, names: tuple[str, ...] | None) -> slice | tuple[int, ...]:
    """Return the columns of the named blocks (None: all), as indices if they are not adjacent.

    Examples
    --------
    >>> columns(Layout((("lags", 20), ("calendar", 4))), ("calendar",))
    slice(20, 24, None)
    """
    if names is None:
        return slice(0, layout.width)
    if not names:
        raise InvalidInputError("features must name at least one block, got none.")
    known = layout.spans
    for name in names:
        if name not in known:
            raise InvalidInputError(f"features must be among {listed(known)}, got {name!r}.")
    spans = [known[name] for name in names]
    if all(a.stop == b.start for a, b in pairwise(spans)):
        return slice(spans[0].start, spans[-1].stop)
    return tuple(column for span in spans for column in range(span.start, span.stop))


def places(layout: Layout, names: tuple[str, ...] | None) -> slice | NDArray[np.intp]:
    """Return the columns of the named blocks, as an index into a row."""
    where = columns(layout, names)
    return where if isinstance(where, slice) else np.array(where)


@dataclass(frozen=True)
class Inputs:
    """Rows to predict at: n times t, shape (n,), and their features x, shape (n, p).

    The constructor does not check its arguments; `Inputs.of` does.
    """

    t: Vector
    x: Matrix
    layout: Layout

    @classmethod
    def of(cls, t: ArrayLike, x: ArrayLike, layout: Layout | None = None) -> Inputs:
        """Return inputs from checked copies; by default, all columns are one block named "lags"."""
        times = require_finite("t", t).copy()
        features = require_finite("x", x).copy()
        require_shape("t", times, (None,))
        require_shape("x", features, (len(times), None))
        layout = layout or Layout((("lags", features.shape[1]),))
        require_width(features, layout)
        return cls(times, features, layout)

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Inputs:
        return Inputs(self.t[rows], self.x[rows], self.layout)

    def block(self, features: tuple[str, ...] | None) -> Matrix:
        """Return the columns of the named blocks; None means all columns."""
        where = columns(self.layout, features)
        return self.x[:, where if isinstance(where, slice) else list(where)]


@dataclass(frozen=True)
class Samples:
    """Inputs with their targets y, shape (n, H); column k is the value k steps later."""

    inputs: Inputs
    y: Matrix

    @classmethod
    def of(cls, t: ArrayLike, x: ArrayLike, y: ArrayLike, layout: Layout | None = None) -> Samples:
        """Return samples from checked copies; targets of shape (n,) have one horizon.

        Examples
        --------
        >>> Samples.of(t=[0, 1], x=[[1.0], [2.0]], y=[3.0, 4.0]).y.shape
        (2, 1)
        """
        inputs = Inputs.of(t, x, layout)
        targets = require_finite("y", y).copy()
        targets = targets[:, None] if targets.ndim == 1 else targets
        require_shape("y", targets, (len(inputs), None))
        return cls(inputs, targets)

    @property
    def t(self) -> Vector:
        """Return the times, shape (n,)."""
        return self.inputs.t

    @property
    def x(self) -> Matrix:
        """Return the features, shape (n, p)."""
        return self.inputs.x

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Samples:
        return Samples(self.inputs[rows], self.y[rows])


def concatenate(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all parts, one part after the other; all have the same layout."""
    t = np.concatenate([part.t for part in parts])
    x = np.concatenate([part.x for part in parts])
    y = np.concatenate([part.y for part in parts])
    return Samples(Inputs(t, x, parts[0].inputs.layout), y)


def require_width(x: Matrix, layout: Layout) -> None:
    """Raise unless the last axis of x is as long as the layout is wide.

    Examples
    --------
    >>> require_width(np.zeros(19), Layout((("lags", 20),)))
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: x must have 20 features (20 lags), got 19.
    """
    if x.shape[-1] != layout.width:
        parts = ", ".join(f"{width} {name}" for name, width in layout.blocks)
        raise InvalidInputError(
            f"x must have {layout.width} features ({parts}), got {x.shape[-1]}."
        )
