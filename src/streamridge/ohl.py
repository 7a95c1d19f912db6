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

from streamridge.arrays import Matrix, Vector, require_count, require_finite, require_shape
from streamridge.errors import InvalidInputError, StateError
from streamridge.feasible import Chart, Product
from streamridge.lazy_descent import AdaGradStep, LazyDescent, StepRule
from streamridge.models.base import FitT, Model
from streamridge.samples import Inputs, Samples, concatenate, require_width

State = Mapping[str, NDArray[np.float64] | float]
# Called at each window's end with the coordinates z in force and every step's gradient there.
Watcher = Callable[[Vector, Matrix], None]


@dataclass(frozen=True)
class Row:
    """Is one step that was predicted: its input and its H labels, NaN until they are known."""

    t: float
    x: Vector
    y: Vector

    @property
    def is_complete(self) -> bool:
        """Tell whether every label is known."""
        return not np.isnan(self.y).any()

    def labelled(self, t: float, value: float) -> Row:
        """Return the row with the value observed at time t, where that is one of its labels."""
        ahead = t - self.t
        if not ahead.is_integer() or ahead >= len(self.y):
            return self
        y = self.y.copy()
        y[int(ahead)] = value
        return Row(self.t, self.x, y)

    def waits(self, t: float) -> bool:
        """Tell whether labels are missing that can still come after time t."""
        return not self.is_complete and t - self.t < len(self.y) - 1


Rows = tuple[Row, ...]


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
    newest
        Time of the newest row.
    steps
        Observations since the refit.
    refits
        Fits made so far.
    """

    current: Fitted[FitT]
    descent: LazyDescent
    newest: float
    window: Rows = ()
    waiting: Rows = ()
    retired: Fitted[FitT] | None = None
    late: Rows = ()
    overdue: Rows = ()
    steps: int = 0
    refits: int = 1


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
        self._layout = history.inputs.layout
        self._horizon = history.y.shape[1]
        current = self._fit(history[-self._train_size :], z)
        self._progress = Progress(current, descent, newest=float(history.t[-1]))

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
        row = self._row(time, x)
        inputs = Inputs(np.array([row.t]), row.x[None, :], self._layout)
        return self._progress.current.fit.predict(inputs)[0]

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
            name: getattr(progress, name) for name in ("newest", "steps", "refits")
        }
        state |= {f"descent.{name}": value for name, value in progress.descent.state().items()}
        fits = {"current": progress.current, "retired": progress.retired}
        for name, fitted in fits.items():
            if fitted is not None:
                state |= {f"{name}.lam": fitted.lam} | _pack(name, fitted.samples)
                state |= {f"{name}.fit.{key}": value for key, value in fitted.fit.state().items()}
        for name in ("window", "waiting", "late", "overdue"):
            state |= _pack(name, self._stack(getattr(progress, name)))
        return state

    def restore(self, state: State) -> None:
        """Go on from a state taken from a learner of the same model and settings, bit for bit."""
        fresh = self._progress.descent
        try:
            descent = fresh.restore({name: state[f"descent.{name}"] for name in fresh.state()})
            self._progress = Progress(
                current=self._resume("current", state),
                descent=descent,
                newest=float(state["newest"]),
                window=self._unstack("window", state),
                waiting=self._unstack("waiting", state),
                retired=self._resume("retired", state) if "retired.lam" in state else None,
                late=self._unstack("late", state),
                overdue=self._unstack("overdue", state),
                steps=int(state["steps"]),
                refits=int(state["refits"]),
            )
        except KeyError as missing:
            raise StateError(f"state must hold {missing}, got {sorted(state)}.") from None

    def _row(self, time: float, x: ArrayLike) -> Row:
        """Return a checked row with labels to come."""
        t = float(require_finite("time", time))
        features = require_finite("x", x)
        require_shape("x", features, (None,))
        require_width(features, self._layout)
        if t <= self._progress.newest:
            raise InvalidInputError(
                f"time must be later than {self._progress.newest:g}, got {t:g}."
            )
        return Row(t, features, np.full(self._horizon, np.nan))

    def _take(self, progress: Progress[FitT], row: Row, value: float) -> Progress[FitT]:
        """Return the progress with one more row, and with the label it brings to those waiting.

        A row that has missed a label for good is dropped: it is not learned from.
        """
        t = row.t
        waiting = [each.labelled(t, value) for each in (*progress.waiting, row)]
        overdue = [each.labelled(t, value) for each in progress.overdue]
        progress = replace(
            progress,
            newest=t,
            window=(*progress.window, *(each for each in waiting if each.is_complete)),
            waiting=tuple(each for each in waiting if each.waits(t)),
            late=(*progress.late, *(each for each in overdue if each.is_complete)),
            overdue=tuple(each for each in overdue if each.waits(t)),
            steps=progress.steps + 1,
        )
        if progress.retired is None or progress.overdue:
            return progress
        descent = self._absorb(progress.descent, progress.retired, progress.late)
        return replace(progress, retired=None, descent=descent)

    def _refit(self, progress: Progress[FitT]) -> Progress[FitT]:
        """Return the progress after a window: gradient, move, new fit; lines 3 to 8."""
        current = progress.current
        descent = self._absorb(progress.descent, current, progress.window).move()
        fresh = self._stack(progress.late + progress.window)
        samples = concatenate([current.samples, fresh])[-self._train_size :]
        # Rows that still wait for labels need the fit that predicted them: it keeps its memory.
        retiring = current if progress.waiting else None
        fitted = self._fit(samples, descent.z, None if retiring else current.fit)
        return Progress(
            current=fitted,
            descent=descent,
            newest=progress.newest,
            retired=retiring,
            overdue=progress.waiting,
            refits=progress.refits + 1,
        )

    def _absorb(self, descent: LazyDescent, fitted: Fitted[FitT], rows: Rows) -> LazyDescent:
        """Return the descent with the gradients of rows that `fitted` made; lines 13 and 14."""
        if not self._learned.any() or not rows:
            return descent
        window = self._stack(rows)
        if self._watch is None:
            g = self._in_coordinates(fitted.lam, fitted.fit.window_gradient(window))
        else:
            each = self._in_coordinates(fitted.lam, fitted.fit.step_gradients(window))
            self._watch(descent.z, each)
            g = each.sum(axis=0)
        return descent.add(g, len(rows))

    def _in_coordinates(self, lam: Vector, g: Matrix) -> Matrix:
        return self._chart.pull_back(lam, g) * self._learned

    def _fit(self, samples: Samples, z: Vector, retired: FitT | None = None) -> Fitted[FitT]:
        # Back from logarithms a bound may be missed by a rounding.
        lam = self._space.feasible.project(self._chart.decode(z))
        return Fitted(samples, lam, self._model.fit(samples, lam, retired))

    def _resume(self, name: str, state: State) -> Fitted[FitT]:
        samples = self._unpack(name, state)
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

    def _stack(self, rows: Rows) -> Samples:
        t = np.array([row.t for row in rows], dtype=np.float64)
        x = np.array([row.x for row in rows]).reshape(len(rows), self._layout.width)
        y = np.array([row.y for row in rows]).reshape(len(rows), self._horizon)
        return Samples(Inputs(t, x, self._layout), y)

    def _unstack(self, name: str, state: State) -> Rows:
        samples = self._unpack(name, state)
        columns = samples.t.tolist(), samples.x, samples.y
        return tuple(Row(t, x, y) for t, x, y in zip(*columns, strict=True))

    def _unpack(self, name: str, state: State) -> Samples:
        t, x, y = (np.array(state[f"{name}.{part}"], dtype=np.float64) for part in "txy")
        n, p, H = len(t), self._layout.width, self._horizon
        if (t.shape, x.shape, y.shape) != ((n,), (n, p), (n, H)):
            raise StateError(
                f"state must hold rows of {p} features and {H} labels in {name!r}, "
                f"got shapes {t.shape}, {x.shape}, {y.shape}."
            )
        return Samples(Inputs(t, x, self._layout), y)


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


def _pack(name: str, rows: Samples) -> dict[str, NDArray[np.float64]]:
    return {f"{name}.t": rows.t, f"{name}.x": rows.x, f"{name}.y": rows.y}
