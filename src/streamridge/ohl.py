"""Algorithm 2: online hyperparameter learning, over any model with a hyper-gradient.

Each step: predict with the fit in force, observe the label, remember both. Every m steps: add up
the gradients of the window's losses, move the hyperparameters, refit on the last N samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamridge.arrays import Mask, Matrix, Vector, require_count, require_finite, require_shape
from streamridge.errors import InvalidInputError, StateError
from streamridge.feasible import Chart, Product
from streamridge.lazy_descent import AdaGradStep, LazyDescent, StepRule
from streamridge.models.base import FitT, Model
from streamridge.samples import Inputs, Layout, Samples, concatenate, require_width

State = Mapping[str, NDArray[np.float64] | float]
# Called at each window's end with the coordinates z in force and every step's gradient there.
Watcher = Callable[[Vector, Matrix], None]


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
        Rows predicted by the current fit whose labels are all known.
    waiting
        Rows predicted by the current fit with labels to come, NaN until then.
    retired
        The fit before, while rows that it predicted wait for labels; else None.
    late, overdue
        What `window` and `waiting` are, for the retired fit.
    steps
        Observations since the refit.
    refits
        Fits made so far.
    """

    current: Fitted[FitT]
    descent: LazyDescent
    window: Samples
    waiting: Samples
    retired: Fitted[FitT] | None
    late: Samples
    overdue: Samples
    steps: int
    refits: int


class OnlineLearner(Generic[FitT]):
    """Predicts a stream while its hyperparameters follow the gradient of its own errors.

    Parameters
    ----------
    model
        What is fitted; its hyperparameters are where learning starts.
    history
        Samples before the first prediction; the number of their target columns is the horizon.
    train_size
        N, the samples of a fit; fewer are used until there are as many.
    update_every
        m, the steps between moves of the hyperparameters and refits.
    step
        How far to move; `ConstantStep` is the paper's.
    coordinates
        `Chart.log` moves positive hyperparameters in logarithms, `Chart.natural` as they are.
    learn
        False keeps every hyperparameter fixed and computes no gradient.
    watch
        Called at each window's end with the coordinates and the gradient of every step.

    Notes
    -----
    Paper: Algorithm 2. With more than one horizon a row is learned from once its last label is
    known, by the gradient of the fit that predicted it.

    Examples
    --------
    >>> from streamridge.models.autoregressive import AutoregressiveRidge
    >>> y = np.sin(np.arange(60) / 3)
    >>> x = np.column_stack([y[1:-1], y[:-2]])  # the two values before each
    >>> history = Samples.of(np.arange(2, 42), x[:40], y[2:42])
    >>> learner = OnlineLearner(AutoregressiveRidge([1.0, 1.0]), history, update_every=4)
    >>> for t in range(42, 50):
    ...     forecast = learner.predict(t, x[t - 2])
    ...     learner.observe(t, x[t - 2], y[t])
    >>> learner.refits, learner.hyperparameters["penalties[0]"] < 1
    (3, True)
    """

    def __init__(
        self,
        model: Model[FitT],
        history: Samples,
        *,
        train_size: int = 2880,
        update_every: int = 96,
        step: StepRule | None = None,
        coordinates: Callable[[Product], Chart] = Chart.log,
        learn: bool = True,
        watch: Watcher | None = None,
    ) -> None:
        self._model = model
        self._train_size = require_count("train_size", train_size)
        self._update_every = require_count("update_every", update_every)
        self._watch = watch
        self._space = model.space
        self._chart = coordinates(self._space.feasible)
        self._learned = self._space.learned & learn
        _require_history(history, self._update_every)
        z = self._chart.encode(self._space.values)
        descent = LazyDescent.start(
            z,
            self._chart.feasible,
            step or AdaGradStep(),
            update_every=self._update_every,
            reach=self._chart.reach(z, self._space.trust),
        )
        none = history[:0]
        current = self._fit(history[-self._train_size :], z)
        self._progress = Progress(current, descent, none, none, None, none, none, steps=0, refits=1)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force, by name."""
        return self._space.named(self._progress.current.lam)

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return which learned hyperparameters sit at their "lower" or "upper" bound."""
        return self._space.active_bounds(self._progress.current.lam)

    @property
    def refits(self) -> int:
        """Return how many fits have been made."""
        return self._progress.refits

    @property
    def skipped_moves(self) -> int:
        """Return how many moves were left out because their gradient was not finite."""
        return self._progress.descent.skipped

    @property
    def fit(self) -> FitT:
        """Return the fit in force."""
        return self._progress.current.fit

    def predict(self, time: float, x: ArrayLike) -> Vector:
        """Return the forecasts of the values at `time` and the steps after it, shape (H,)."""
        return self._progress.current.fit.predict(self._row(time, x).inputs)[0]

    def observe(self, time: float, x: ArrayLike, y: float) -> None:
        """Learn from the value y at `time`, which had the features x.

        After an error nothing has changed.
        """
        row = self._row(time, x)
        value = float(require_finite("y", y))
        progress = self._take(self._progress, row, value)
        if progress.steps == self._update_every:
            progress = self._refit(progress)
        self._progress = progress

    def release(self) -> None:
        """Drop what can be made again; the next window's end takes a factorization longer."""
        self._progress.current.fit.release()

    def state(self) -> dict[str, NDArray[np.float64] | float]:
        """Return all that changes as arrays and numbers, for `restore`."""
        progress = self._progress
        state: dict[str, NDArray[np.float64] | float] = {
            "steps": progress.steps,
            "refits": progress.refits,
        }
        state |= {f"descent.{name}": value for name, value in progress.descent.state().items()}
        fits = {"current": progress.current, "retired": progress.retired}
        for name, fitted in fits.items():
            if fitted is not None:
                state |= {f"{name}.lam": fitted.lam} | _pack(name, fitted.samples)
                state |= {f"{name}.fit.{key}": value for key, value in fitted.fit.state().items()}
        for name in ("window", "waiting", "late", "overdue"):
            state |= _pack(name, getattr(progress, name))
        return state

    def restore(self, state: State) -> None:
        """Go on from a state taken from a learner of the same model and settings, bit for bit."""
        layout = self._progress.current.samples.inputs.layout
        try:
            rows = {
                name: _unpack(name, state, layout)
                for name in ("window", "waiting", "late", "overdue")
            }
            current = self._resume("current", state, layout)
            retired = self._resume("retired", state, layout) if "retired.lam" in state else None
            self._progress = Progress(
                current=current,
                descent=self._progress.descent.restore(
                    {
                        name: state[f"descent.{name}"]  # type: ignore[misc]
                        for name in self._progress.descent.state()
                    }
                ),
                retired=retired,
                steps=int(state["steps"]),
                refits=int(state["refits"]),
                **rows,
            )
        except KeyError as missing:
            raise StateError(f"state must hold {missing}, got {sorted(state)}.") from None

    def _row(self, time: float, x: ArrayLike) -> Samples:
        """Return a checked row with labels to come."""
        progress = self._progress
        t = require_finite("time", time).reshape(1)
        features = require_finite("x", x)
        require_shape("x", features, (None,))
        require_width(features, progress.current.samples.inputs.layout)
        newest = _newest(progress)
        if t[0] <= newest:
            raise InvalidInputError(f"time must be later than {newest:g}, got {t[0]:g}.")
        inputs = Inputs(t, features[None, :], progress.current.samples.inputs.layout)
        return Samples(inputs, np.full((1, progress.window.y.shape[1]), np.nan))

    def _take(self, progress: Progress[FitT], row: Samples, value: float) -> Progress[FitT]:
        """Return the progress with one more row, and with the label it brings to those waiting."""
        t = float(row.t[0])
        waiting = _label(concatenate([progress.waiting, row]), t, value)
        overdue = _label(progress.overdue, t, value)
        complete, waiting = _split(waiting, t)
        complete_late, overdue = _split(overdue, t)
        progress = replace(
            progress,
            window=concatenate([progress.window, complete]),
            waiting=waiting,
            late=concatenate([progress.late, complete_late]),
            overdue=overdue,
            steps=progress.steps + 1,
        )
        if progress.retired is None or len(overdue):
            return progress
        descent = self._absorb(progress.descent, progress.retired, progress.late)
        return replace(progress, retired=None, descent=descent)

    def _refit(self, progress: Progress[FitT]) -> Progress[FitT]:
        """Return the progress after a window: gradient, move, new fit; lines 3 to 8."""
        current = progress.current
        descent = self._absorb(progress.descent, current, progress.window).move()
        samples = concatenate([current.samples, progress.late, progress.window])
        # Rows that still wait for labels need the fit that predicted them: it keeps its memory.
        retiring = current if len(progress.waiting) else None
        fitted = self._fit(
            samples[-self._train_size :], descent.z, None if retiring else current.fit
        )
        none = samples[:0]
        return Progress(
            current=fitted,
            descent=descent,
            window=none,
            waiting=none,
            retired=retiring,
            late=none,
            overdue=progress.waiting,
            steps=0,
            refits=progress.refits + 1,
        )

    def _absorb(self, descent: LazyDescent, fitted: Fitted[FitT], window: Samples) -> LazyDescent:
        """Return the descent with the gradients of rows that `fitted` made; lines 13 and 14."""
        if not self._learned.any() or not len(window):
            return descent
        if self._watch is None:
            g = self._in_coordinates(fitted.lam, fitted.fit.window_gradient(window))
        else:
            each = self._in_coordinates(fitted.lam, fitted.fit.step_gradients(window))
            self._watch(descent.z, each)
            g = each.sum(axis=0)
        return descent.add(g, len(window))

    def _in_coordinates(self, lam: Vector, g: Matrix) -> Matrix:
        return self._chart.pull_back(lam, g) * self._learned

    def _fit(self, samples: Samples, z: Vector, retired: FitT | None = None) -> Fitted[FitT]:
        # Back from logarithms a bound may be missed by a rounding.
        lam = self._space.feasible.project(self._chart.decode(z))
        fit = self._model.fit(samples, lam, retired)
        if not self._learned.any():
            fit.release()
        return Fitted(samples, lam, fit)

    def _resume(self, name: str, state: State, layout: Layout) -> Fitted[FitT]:
        samples = _unpack(name, state, layout)
        lam = np.array(state[f"{name}.lam"], dtype=np.float64)
        if lam.shape != self._space.values.shape:
            raise StateError(
                f"state must hold {len(self._space.names)} hyperparameters, got {lam.shape}."
            )
        prefix = f"{name}.fit."
        arrays = {
            key.removeprefix(prefix): np.asarray(value)
            for key, value in state.items()
            if key.startswith(prefix)
        }
        return Fitted(samples, lam, self._model.resume(samples, lam, arrays))


def _require_history(history: Samples, update_every: int) -> None:
    if not len(history):
        raise InvalidInputError("history must hold at least one sample, got none.")
    if not (np.diff(history.t) > 0).all():
        raise InvalidInputError("history must have increasing times.")
    horizon = history.y.shape[1]
    if horizon > update_every:
        raise InvalidInputError(
            f"update_every must be at least the horizon {horizon}, got {update_every}."
        )


def _newest(progress: Progress[FitT]) -> float:
    """Return the time of the newest row of all."""
    rows = (progress.current.samples, progress.overdue, progress.window, progress.waiting)
    return max(float(part.t[-1]) for part in rows if len(part))


def _label(rows: Samples, t: float, value: float) -> Samples:
    """Return the rows with `value`, observed at time t, filled in where it is their label."""
    y = rows.y.copy()
    ahead = t - rows.t
    due = np.flatnonzero((ahead == np.rint(ahead)) & (ahead < y.shape[1]))
    y[due, ahead[due].astype(np.intp)] = value
    return Samples(rows.inputs, y)


def _split(rows: Samples, t: float) -> tuple[Samples, Samples]:
    """Return the rows whose labels are all known, and those that still wait for one after t.

    A row that has missed a label for good is in neither: it is not learned from.
    """
    known: Mask = np.isfinite(rows.y.sum(axis=1))
    waits = ~known & (t - rows.t < rows.y.shape[1] - 1)
    return _pick(rows, known), _pick(rows, waits)


def _pick(rows: Samples, which: Mask) -> Samples:
    return Samples(
        Inputs(rows.t[which], rows.x[which], rows.inputs.layout),
        rows.y[which],
    )


def _pack(name: str, rows: Samples) -> dict[str, NDArray[np.float64]]:
    return {f"{name}.t": rows.t, f"{name}.x": rows.x, f"{name}.y": rows.y}


def _unpack(name: str, state: State, layout: Layout) -> Samples:
    t, x, y = (np.array(state[f"{name}.{part}"], dtype=np.float64) for part in "txy")
    if t.ndim != 1 or x.shape != (len(t), layout.width) or y.shape[:1] != t.shape:
        raise StateError(
            f"state must hold rows of {layout.width} features in {name!r}, "
            f"got shapes {t.shape}, {x.shape}, {y.shape}."
        )
    return Samples(Inputs(t, x, layout), y)
