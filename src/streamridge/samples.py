"""The data of a model: Inputs (t, x) to predict at, and Samples (t, x, y) to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Matrix, Vector, require_finite, require_shape
from streamridge.errors import InvalidInputError, listed


@dataclass(frozen=True)
class Layout:
    """The blocks of columns in x, by name, and their units.

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

    def columns(self, names: tuple[str, ...] | None) -> slice | NDArray[np.intp]:
        """Return the columns of named blocks: a slice, or indices if they are not adjacent.

        None names all blocks. An unknown name raises an error.

        Examples
        --------
        >>> Layout((("lags", 20), ("calendar", 4))).columns(("calendar",))
        slice(20, 24, None)
        """
        if names is None:
            return slice(0, self.width)
        if not names:
            raise InvalidInputError("features must name at least one block, got none.")
        known, places = self.spans, list[int]()
        for name in names:
            if name not in known:
                raise InvalidInputError(f"features must be among {listed(known)}, got {name!r}.")
            places += range(known[name].start, known[name].stop)
        start = known[names[0]].start
        adjacent = range(start, start + len(places))
        return slice(start, adjacent.stop) if places == list(adjacent) else np.array(places)

    @cached_property
    def spans(self) -> dict[str, slice]:
        """Return the columns of each block, as a slice by name."""
        ends = accumulate(width for _, width in self.blocks)
        pairs = zip(self.blocks, ends, strict=True)
        return {name: slice(end - width, end) for (name, width), end in pairs}


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

    @property
    def latest(self) -> Matrix:
        """Return the latest value of the series before each row, shape (n, 1)."""
        column = self.layout.latest
        return self.x[:, column : column + 1]

    def block(self, features: tuple[str, ...] | None) -> Matrix:
        """Return the columns of the named blocks; None means all columns."""
        return self.x[:, self.layout.columns(features)]


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
        return len(self.inputs.t)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Samples:
        return Samples(self.inputs[rows], self.y[rows])


def concatenate(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all parts, one part after the other; all have the same layout."""
    t = np.concatenate([part.t for part in parts])
    x = np.concatenate([part.x for part in parts])
    y = np.concatenate([part.y for part in parts])
    return Samples(Inputs(t, x, parts[0].inputs.layout), y)


def require_width(x: Matrix, layout: Layout) -> None:
    """Raise unless the last axis of x has the width of the layout.

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
