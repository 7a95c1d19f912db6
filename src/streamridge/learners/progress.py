"""All that changes in a learner, as one value, and as a plain mapping of arrays and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Generic

import numpy as np

from streamridge.arrays import Matrix, Vector, require_count, require_finite, require_number
from streamridge.errors import InvalidInputError, StateError
from streamridge.learners.lazy_descent import LazyDescent
from streamridge.learners.rows import Rows, stack, unstack
from streamridge.models.base import FitT, Model
from streamridge.samples import Inputs, Samples

State = Mapping[str, Matrix | float]

# The parts of a progress that are rows.
ROWS = ("window", "waiting", "late", "overdue", "admitted")


@dataclass(frozen=True)
class Tally:
    """Counts what searches for hyperparameters have cost: how many they were, fits, gradients."""

    tunings: int = 0
    fits: int = 0
    gradients: int = 0

    def after(self, fits: int, gradients: int) -> Tally:
        """Return the tally after one more search."""
        return Tally(self.tunings + 1, self.fits + fits, self.gradients + gradients)


@dataclass(frozen=True)
class Fitted(Generic[FitT]):
    """Is a fit with its training set and the hyperparameters it was made at."""

    samples: Samples
    lam: Vector
    fit: FitT


@dataclass(frozen=True)
class Progress(Generic[FitT]):
    """Is all that changes in a learner; one observation replaces it whole.

    Parameters
    ----------
    current
        The fit in force.
    descent
        Algorithm 3 on the coordinates of the hyperparameters.
    window
        Rows that fall to the current fit and whose labels are all known.
    waiting
        Rows that fall to it with labels to come, NaN until then; at first the end of the history.
    retired
        The fit before, while rows that it predicted wait for labels; else None.
    late, overdue
        What `window` and `waiting` are, for the retired fit.
    admitted
        Rows of the past that became known later; they join the next training set.
    newest
        Time of the newest row.
    earlier
        Samples before the training set that are kept for a search to look back on.
    steps
        Observations since the refit.
    refits
        Fits made so far.
    untuned
        Observations since the last search for hyperparameters.
    tally
        What searches have cost so far.
    """

    current: Fitted[FitT]
    descent: LazyDescent
    newest: float
    earlier: Samples
    window: Rows = ()
    waiting: Rows = ()
    retired: Fitted[FitT] | None = None
    late: Rows = ()
    overdue: Rows = ()
    admitted: Rows = ()
    steps: int = 0
    refits: int = 1
    untuned: int = 0
    tally: Tally = Tally()


def pack(progress: Progress[FitT]) -> dict[str, Matrix | float]:
    """Return the progress as arrays and numbers that share no memory with it."""
    state: dict[str, Matrix | float] = {
        name: getattr(progress, name) for name in ("newest", "steps", "refits", "untuned")
    }
    state |= {f"tally.{name}": count for name, count in asdict(progress.tally).items()}
    state |= {f"descent.{name}": value for name, value in progress.descent.state().items()}
    layout, horizon = progress.current.samples.inputs.layout, progress.current.samples.y.shape[1]
    state |= _pack_samples("earlier", progress.earlier)
    for name in ROWS:
        state |= _pack_samples(name, stack(getattr(progress, name), layout, horizon))
    for name, fitted in (("current", progress.current), ("retired", progress.retired)):
        if fitted is not None:
            state |= {f"{name}.lam": fitted.lam} | _pack_samples(name, fitted.samples)
            state |= {f"{name}.fit.{key}": value for key, value in fitted.fit.state().items()}
    return {name: np.copy(value) if np.ndim(value) else value for name, value in state.items()}


def unpack(state: State, like: Progress[FitT], model: Model[FitT]) -> Progress[FitT]:
    """Return the progress that was packed, of a learner that stands at `like` now."""
    try:
        steps = _count("steps", state)
        if not 0 <= steps < like.descent.update_every:
            raise StateError(
                f"state must have taken fewer than {like.descent.update_every} steps, got {steps}."
            )
        return Progress(
            current=_unpack_fitted("current", state, like, model),
            descent=_unpack_descent(state, like.descent),
            newest=require_number("newest", state["newest"]),
            earlier=_unpack_samples("earlier", state, like),
            retired=(
                _unpack_fitted("retired", state, like, model) if "retired.lam" in state else None
            ),
            **{name: unstack(_unpack_samples(name, state, like)) for name in ROWS},
            steps=steps,
            refits=require_count("refits", state["refits"]),
            untuned=_count("untuned", state),
            tally=Tally(
                **{each.name: _count(f"tally.{each.name}", state) for each in fields(Tally)}
            ),
        )
    except KeyError as missing:
        raise StateError(f"state must hold {missing}, got {sorted(state)}.") from None
    except InvalidInputError as error:
        raise StateError(f"state is damaged: {error}") from None


def _count(name: str, state: State) -> int:
    return require_count(name, state[name], least=0)


def _pack_samples(name: str, samples: Samples) -> dict[str, Matrix]:
    return {f"{name}.t": samples.t, f"{name}.x": samples.x, f"{name}.y": samples.y}


def _unpack_samples(name: str, state: State, like: Progress[FitT]) -> Samples:
    t, x = (require_finite(f"{name}.{part}", state[f"{name}.{part}"]).copy() for part in "tx")
    y = np.array(state[f"{name}.y"], dtype=np.float64)  # NaN stands for a label to come
    expected = like.current.samples
    n, p, H = t.size, expected.x.shape[1], expected.y.shape[1]
    if (t.shape, x.shape, y.shape) != ((n,), (n, p), (n, H)):
        raise StateError(
            f"state must hold rows of {p} features and {H} labels in {name!r}, "
            f"got shapes {t.shape}, {x.shape}, {y.shape}."
        )
    return Samples(Inputs(t, x, expected.inputs.layout), y)


def _unpack_fitted(
    name: str, state: State, like: Progress[FitT], model: Model[FitT]
) -> Fitted[FitT]:
    samples = _unpack_samples(name, state, like)
    require_finite(f"{name}.y", samples.y)
    lam = require_finite("lam", state[f"{name}.lam"]).copy()
    if lam.shape != like.current.lam.shape:
        raise StateError(
            f"state must hold {len(like.current.lam)} hyperparameters, got {lam.size}."
        )
    if not model.space.feasible.contains(lam):
        raise StateError(f"state must hold feasible hyperparameters, got {lam.tolist()}.")
    prefix = f"{name}.fit."
    arrays = {
        key.removeprefix(prefix): np.asarray(value)
        for key, value in state.items()
        if key.startswith(prefix)
    }
    return Fitted(samples, lam, model.resume(samples, lam, arrays))


def _unpack_descent(state: State, like: LazyDescent) -> LazyDescent:
    return like.restore({name: state[f"descent.{name}"] for name in like.state()})
