"""What both algorithms share: a model refitted every m steps on the last N samples of a stream.

Each step: predict with the fit in force, observe the label, remember both. What is done about the
hyperparameters is up to the learner: Algorithm 2 moves them (`ohl`), Algorithm 1 searches for them
(`protocols/rolling`), and here they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Generic

import numpy as np
from numpy.typing import ArrayLike

from streamridge.arrays import (
    Matrix,
    Vector,
    require_count,
    require_finite,
    require_number,
    require_shape,
)
from streamridge.errors import InvalidInputError
from streamridge.hyperparameters.feasible import Chart, Product
from streamridge.learners.lazy_descent import LazyDescent, StepRule
from streamridge.learners.progress import Fitted, Progress, State, Tally, pack, unpack
from streamridge.learners.rows import (
    Row,
    Rows,
    complete,
    known_at_the_end,
    require_history,
    stack,
    unstack,
    waiting,
)
from streamridge.models.base import FitT, Model
from streamridge.samples import Inputs, Samples, concatenate, in_order, require_width


class StreamLearner(Generic[FitT]):
    """Predicts a stream by a model that is refitted as it flows; hyperparameters stay as they are.

    Parameters
    ----------
    model
        What is fitted, at its initial hyperparameters.
    history
        Samples before the first prediction; the number of their target columns is the horizon.
        Labels later than the last sample's time are not used before they are observed. With more
        than one horizon times count steps, for labels are matched to rows by them.
    train_size
        N, the samples of a fit; fewer are used until there are as many.
    update_every
        m, the steps between refits.
    step, coordinates
        How far hyperparameters move, and in which coordinates, where a learner moves them.
    keep
        How many samples before the training set are kept too, for learners that search on them.
    """

    def __init__(
        self,
        model: Model[FitT],
        history: Samples,
        *,
        train_size: int,
        update_every: int,
        step: StepRule,
        coordinates: Callable[[Product], Chart],
        keep: int = 0,
    ) -> None:
        self._model = model
        self._train_size = require_count("train_size", train_size)
        self._update_every = require_count("update_every", update_every)
        self._keep = keep
        self._space = model.space
        self._chart = coordinates(self._space.feasible)
        require_history(history, self._update_every)
        z = self._chart.encode(self._space.values)
        descent = LazyDescent.start(
            z,
            self._chart.feasible,
            step,
            update_every=self._update_every,
            reach=self._chart.reach(z, self._space.trust),
        )
        self._layout = history.inputs.layout
        self._horizon = history.y.shape[1]
        settled, rest = known_at_the_end(history)
        newest = float(history.t[-1])
        earlier, samples = self._parted(settled)
        descent, tally = self._started(descent, settled)
        self._progress = Progress(
            self._fit(samples, descent.z),
            descent,
            newest,
            earlier=earlier,
            waiting=waiting(rest, newest),
            tally=tally,
        )

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force, by name."""
        return self._space.named(self._progress.current.lam)

    @property
    def lam(self) -> Vector:
        """Return the hyperparameters in force as one vector, shape (d,)."""
        return self._progress.current.lam.copy()

    def named(self, lam: Vector) -> dict[str, float]:
        """Return the coordinates of lam by name."""
        return self._space.named(lam)

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return which learned hyperparameters sit at their "lower" or "upper" bound."""
        return self._space.active_bounds(self._progress.current.lam)

    @property
    def refits(self) -> int:
        """Return how many fits have been made."""
        return self._progress.refits

    @property
    def tally(self) -> Tally:
        """Return what tuning has cost so far: searches, their fits, and gradients."""
        return self._progress.tally

    @property
    def skipped_moves(self) -> int:
        """Return how many moves were left out because their gradient was not finite."""
        return self._progress.descent.skipped

    @property
    def fit(self) -> FitT:
        """Return the fit in force."""
        return self._progress.current.fit

    @property
    def newest(self) -> float:
        """Return the time of the newest value."""
        return self._progress.newest

    @property
    def training(self) -> Samples:
        """Return the samples of the fit in force."""
        return self._progress.current.samples

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that `freeze` holds where they are."""
        held = self._space.learned & (self._progress.descent.reach == 0)
        return tuple(name for name, is_held in zip(self._space.names, held, strict=True) if is_held)

    def predict(self, time: float, x: ArrayLike) -> Vector:
        """Return the forecasts of the values at `time` and the steps after it, shape (H,)."""
        return self.fit.predict(self._inputs(time, x))[0]

    def predict_with_spread(self, time: float, x: ArrayLike) -> tuple[Vector, Vector]:
        """Return the forecasts, and the size of error to expect of each; shape (H,) both."""
        forecasts, spreads = self.fit.predict_with_spread(self._inputs(time, x))
        return forecasts[0], spreads[0]

    def observe(self, time: float, x: ArrayLike | None, y: float) -> None:
        """Learn from the value y at `time`, which had the features x.

        Without x the value is a label of the rows before it and makes no row of its own. After an
        error nothing has changed.
        """
        t = self._require_later(time)
        rows = () if x is None else (self._row(t, x),)
        value = require_number("y", y)
        progress = self._tuned(self._take(self._progress, t, rows, value))
        if progress.steps == self._update_every:
            progress = self._refit(progress)
        self._progress = progress

    def admit(self, samples: Samples) -> None:
        """Take samples of the past that were not known in time into the next training set."""
        if len(samples) and samples.t.max() > self._progress.newest:
            raise InvalidInputError(
                f"time must be no later than {self._progress.newest:.15g}, "
                f"got {samples.t.max():.15g}."
            )
        admitted = self._progress.admitted + unstack(samples)
        self._progress = replace(self._progress, admitted=admitted)

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name, and refit at once; other weights of a simplex give way."""
        lam = self._space.assigned(self._lam_at(self._progress.descent.z), values)
        descent = self._progress.descent.moved_to(self._chart.encode(lam))
        self._progress = self._renew(self._progress, descent)

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters where they are; one weight of a simplex holds all of them."""
        self._hold(names, reach=np.zeros(len(self._space.names)))

    def unfreeze(self, *names: str) -> None:
        """Learn hyperparameters again that were frozen."""
        z = self._chart.encode(self._space.values)
        self._hold(names, reach=self._chart.reach(z, self._space.trust))

    def pass_over(self, time: float) -> None:
        """Let a step go by that has no value, or none to learn from."""
        self._progress = replace(self._progress, newest=self._require_later(time))

    def release(self) -> None:
        """Drop what can be made again; the next window's end takes a factorization longer."""
        for fitted in (self._progress.current, self._progress.retired):
            if fitted is not None:
                fitted.fit.release()

    def postpone_refit(self) -> None:
        """Keep the fit in force for another window.

        A refit that has no factor raises at its window's end, and would at every observation after:
        catch the error, postpone, observe again.
        """
        self._progress = replace(self._progress, steps=0)

    def state(self) -> dict[str, Matrix | float]:
        """Return all that changes as arrays and numbers, for `restore`."""
        return pack(self._progress)

    def restore(self, state: State) -> None:
        """Go on from a state taken from a learner of the same model and settings, bit for bit."""
        self._progress = unpack(state, self._progress, self._model)

    def _hold(self, names: tuple[str, ...], reach: Vector) -> None:
        """Give the groups of the named hyperparameters the reach that is given for them."""
        chosen = self._space.groups_of(names)
        descent = self._progress.descent
        descent = replace(descent, reach=np.where(chosen, reach, descent.reach))
        self._progress = replace(self._progress, descent=descent)

    def _inputs(self, time: float, x: ArrayLike) -> Inputs:
        row = self._row(self._require_later(time), x)
        return Inputs(np.array([row.t]), row.x[None, :], self._layout)

    def _require_later(self, time: float) -> float:
        """Return a checked time after the newest row's."""
        t = require_number("time", time)
        newest = self._progress.newest
        if t <= newest:
            raise InvalidInputError(f"time must be later than {newest:.15g}, got {t:.15g}.")
        if self._horizon > 1 and not t.is_integer():
            raise InvalidInputError(f"time must be a whole number of steps, got {t:.15g}.")
        return t

    def _row(self, t: float, x: ArrayLike) -> Row:
        """Return a checked row with labels to come."""
        features = require_finite("x", x)
        require_shape("x", features, (None,))
        require_width(features, self._layout)
        # The caller may fill the same array with the next features.
        return Row(t, features.copy(), np.full(self._horizon, np.nan))

    def _take(self, progress: Progress[FitT], t: float, rows: Rows, value: float) -> Progress[FitT]:
        """Return the progress with its new rows, and with the label they bring to those waiting.

        A row that has missed a label for good is dropped: it is not learned from.
        """
        mine = [each.labelled(t, value) for each in progress.waiting + rows]
        retired = [each.labelled(t, value) for each in progress.overdue]
        progress = replace(
            progress,
            newest=t,
            window=progress.window + complete(mine),
            waiting=waiting(mine, t),
            late=progress.late + complete(retired),
            overdue=waiting(retired, t),
            steps=progress.steps + 1,
            untuned=progress.untuned + 1,
        )
        if progress.retired is None or progress.overdue:
            return progress
        descent = self._absorb(progress.descent, progress.retired, progress.late)
        return replace(progress, retired=None, descent=descent)

    def _refit(self, progress: Progress[FitT]) -> Progress[FitT]:
        """Return the progress after a window: what it teaches, and a new fit."""
        descent = self._absorb(progress.descent, progress.current, progress.window)
        return self._renew(progress, self._moved(descent))

    def _renew(self, progress: Progress[FitT], descent: LazyDescent) -> Progress[FitT]:
        """Return the progress with a new fit on the last N samples, at the descent's point."""
        current = progress.current
        earlier, samples = self._parted(self._known(progress))
        # Rows that still wait for labels need the fit that predicted them: it keeps its memory.
        overdue = progress.overdue + progress.waiting
        retiring = current if overdue else None
        fitted = self._fit(samples, descent.z, None if retiring else current.fit)
        return Progress(
            current=fitted,
            descent=descent,
            newest=progress.newest,
            earlier=earlier,
            retired=retiring,
            overdue=overdue,
            refits=progress.refits + 1,
            untuned=progress.untuned,
            tally=progress.tally,
        )

    def _known(self, progress: Progress[FitT]) -> Samples:
        """Return all samples that are kept and whose labels are known, in order."""
        fresh = self._stack(progress.late + progress.window)
        samples = concatenate([progress.earlier, progress.current.samples, fresh])
        if progress.admitted:
            samples = in_order(concatenate([samples, self._stack(progress.admitted)]))
        return samples

    def _parted(self, known: Samples) -> tuple[Samples, Samples]:
        """Return the samples that are kept beside a training set, and the training set."""
        samples = known[-self._train_size :]
        before = known[: len(known) - len(samples)]
        return before[len(before) - min(self._keep, len(before)) :], samples

    def _tuned(self, progress: Progress[FitT]) -> Progress[FitT]:
        """Return the progress with hyperparameters that a search has found, if one is due."""
        return progress

    def _started(self, descent: LazyDescent, known: Samples) -> tuple[LazyDescent, Tally]:
        """Return where the hyperparameters are before the first fit, and what that has cost."""
        return descent, Tally()

    def _moved(self, descent: LazyDescent) -> LazyDescent:
        """Return where the hyperparameters go at a window's end."""
        return descent

    def _absorb(self, descent: LazyDescent, fitted: Fitted[FitT], rows: Rows) -> LazyDescent:
        """Return the descent with what is learned from rows that `fitted` predicted."""
        return descent

    def _fit(self, samples: Samples, z: Vector, retired: FitT | None = None) -> Fitted[FitT]:
        lam = self._lam_at(z)
        return Fitted(samples, lam, self._model.fit(samples, lam, retired))

    def _lam_at(self, z: Vector) -> Vector:
        # Back from logarithms a bound may be missed by a rounding.
        return self._space.feasible.project(self._chart.decode(z))

    def _stack(self, rows: Rows) -> Samples:
        return stack(rows, self._layout, self._horizon)
