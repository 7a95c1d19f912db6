"""A model that is refitted every m steps, at hyperparameters that a policy chooses.

It is the core of Algorithms 1 and 2. `StreamLearner` adds rows of its own; the forecaster's model
builds its rows from the sensor's readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from streamridge.arrays import (
    Matrix,
    Vector,
    part,
    require_count,
    require_finite,
    require_number,
    require_shape,
)
from streamridge.errors import FitError, StateError
from streamridge.learners.base import Costs, IssuedForecasts, Policy, State, Tally
from streamridge.learners.row_sources import RowSource
from streamridge.learners.workspace import RebuildableFit, Workspace, runs_of, times_of
from streamridge.models.base import FitT, Model
from streamridge.models.landmarks import drawn
from streamridge.samples import Samples

# A smaller fit for gradients has at least this number of rows. With 1,440 of 2,880 rows and half of
# 250 landmarks the RMSE rose by 0.4 %, with 2,880 of 5,760 rows and half of 400 by 0.2 %.
LEAST_GRADIENT_ROWS = 2000
# It learns from one of this many windows, and moves as far as after all of them. On 14 roads the
# RMSE fell by 0.1 % against every second window; with every fourth it rose by 0.2 %.
GRADIENT_WINDOWS = 3


@dataclass(frozen=True)
class Progress(Generic[FitT]):
    """Everything that changes in a refitted model; each observation replaces it as a whole."""

    current: RebuildableFit[FitT]  # the fit in force
    policy: Policy  # how hyperparameters are chosen, with everything it remembers
    newest: float  # time of the newest value
    refit_time: float  # time of the newest value when the fit in force was made
    oldest: float  # time of the oldest row that the fit and the next search need
    steps: int = 0  # observations since the last refit
    refits: int = 1  # fits made so far
    untaught: int = 0  # windows since the last gradient


class RefittedModel(Generic[FitT]):
    """A model with a fit in force, a policy for its hyperparameters, and a cadence of refits.

    It replaces its progress as a whole: if an error is raised, nothing has changed.
    """

    def __init__(
        self,
        model: Model[FitT],
        rows: RowSource,  # the rows that can be learned from
        horizon: int,  # H, the number of labels of a row
        train_size: int,  # N, the samples of a fit; fewer are used until there are N
        update_every: int,  # m, the steps between refits
        costs: Costs,
        *,
        deferred: bool = False,  # whether refits and searches wait for a call of `refit`
        # Training rows per row of the fit that gradients are computed with, if the training set is
        # large. None uses the fit in force, whose matrices must be rebuilt unless they are in
        # memory.
        gradient_share: int | None = None,
        # Memory that refits use and keep for the next refit. None allocates new memory for each
        # refit, and frees it afterwards.
        workspace: Workspace | None = None,
    ) -> None:
        self.model = model
        self.horizon = horizon
        self.train_size = require_count("train_size", train_size)
        self.update_every = require_count("update_every", update_every)
        self.costs = costs
        self.deferred = deferred
        self.gradient_share = gradient_share
        self.workspace = workspace
        self._rows = rows
        self.progress: Progress[FitT]

    def _start(self, policy: Policy, newest: float) -> None:
        """Make the first fit."""
        if policy.search_due:
            policy = policy.searched(self._rows.latest(self._wanted(policy), policy.lam))
        memory = self.workspace or Workspace()
        self.progress = self._fitted(policy, newest, 1, memory)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Return the hyperparameters in force, by name."""
        return self.named(self.progress.current.lam)

    @property
    def lam(self) -> Vector:
        """Return the hyperparameters in force as one vector, shape (d,)."""
        return self.progress.current.lam.copy()

    def named(self, lam: Vector) -> dict[str, float]:
        """Return the coordinates of lam by name."""
        return self.model.space.named(lam)

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return the learned hyperparameters at a bound, each with "lower" or "upper"."""
        return self.model.space.active_bounds(self.progress.current.lam)

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that `freeze` keeps constant."""
        space = self.model.space
        held = space.learned & self.progress.policy.held
        return tuple(name for name, is_held in zip(space.names, held, strict=True) if is_held)

    @property
    def refits(self) -> int:
        """Return how many fits have been made."""
        return self.progress.refits

    @property
    def tally(self) -> Tally:
        """Return the amount of tuning so far: searches, their fits, and gradients."""
        return self.progress.policy.tally

    @property
    def skipped_moves(self) -> int:
        """Return the number of moves that were skipped because their gradient was not finite."""
        return self.progress.policy.skipped

    @property
    def fit(self) -> FitT:
        """Return the fit in force."""
        return self._in_memory(self.progress.current)[1]

    @property
    def training(self) -> Samples:
        """Return the samples of the fit in force."""
        return self._in_memory(self.progress.current)[0]

    @property
    def newest(self) -> float:
        """Return the time of the newest value."""
        return self.progress.newest

    @property
    def refit_due(self) -> bool:
        """Return whether the window has ended, and its refit has not been made yet."""
        return self.progress.steps >= self.update_every

    def assign(self, values: Mapping[str, float]) -> None:
        """Set hyperparameters by name and refit; other weights of a simplex share the rest."""
        progress, space = self.progress, self.model.space
        policy = progress.policy.moved_to(space.assigned(progress.policy.lam, values))
        newest, memory = progress.newest, self.workspace or Workspace()
        self.progress = self._fitted(policy, newest, progress.refits + 1, memory)

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters constant; naming one weight of a simplex freezes them all."""
        chosen, progress = self.model.space.groups_of(names), self.progress
        policy = progress.policy.hold(chosen, progress.current.lam)
        self.progress = replace(progress, policy=policy)

    def unfreeze(self, *names: str) -> None:
        """Learn frozen hyperparameters again."""
        policy = self.progress.policy.free(self.model.space.groups_of(names))
        self.progress = replace(self.progress, policy=policy)

    def postpone_refit(self) -> None:
        """Keep the fit in force for another window.

        A failing refit raises a `FitError` at the end of its window, and again at every observation
        after it. So catch the error, postpone the refit, and observe again.
        """
        progress = self.progress
        untaught = progress.untaught + (progress.steps > 0)
        self.progress = replace(progress, steps=0, untaught=untaught)

    def rest(self) -> None:
        """Drop the training set and the matrices; they are rebuilt when they are needed."""
        self.progress.current.release()

    def release(self) -> None:
        """Drop everything that can be recomputed, at the cost of a factorization later."""
        self.rest()
        if self.workspace is not None:
            self.workspace.clear()

    def _skip(self, t: float, steps: int) -> None:
        """Skip steps up to time t that have no value to learn from.

        Once a window has an observation, such steps count towards its end, so a stream that is
        mostly missing is refitted as often as others. The window still ends with an observation.
        """
        progress = self.progress
        if progress.steps:
            counted = min(progress.steps + steps, self.update_every - 1)
            progress = replace(progress, steps=max(progress.steps, counted))
        self.progress = replace(progress, newest=t)

    def _observed(self, progress: Progress[FitT], t: float) -> Progress[FitT]:
        """Return the progress after a value at time t, and after a search if one is due."""
        progress = replace(
            progress, policy=progress.policy.observed(), newest=t, steps=progress.steps + 1
        )
        if self.deferred or not progress.policy.search_due:
            return progress
        return self._searched(progress)

    def _refitted(
        self, progress: Progress[FitT], memory: Workspace, issued: IssuedForecasts | None
    ) -> Progress[FitT]:
        """Return the progress after learning from its window, and a new fit.

        A smaller fit for gradients also learns from fewer windows, and moves farther after each.
        """
        policy, share = progress.policy, self.gradient_share or 1
        if progress.current.runs[:, 1].sum() < share * LEAST_GRADIENT_ROWS:
            share = 1
        untaught = progress.untaught + (progress.steps > 0)
        if untaught >= (GRADIENT_WINDOWS if share > 1 else 1):
            learned = self._learned(progress, share, memory, issued)
            policy = learned.moved(untaught if share > 1 else 1)
            untaught = 0
        fitted = self._fitted(policy, progress.newest, progress.refits + 1, memory)
        return replace(fitted, untaught=untaught)

    def _searched(self, progress: Progress[FitT]) -> Progress[FitT]:
        """Return the progress after a search."""
        policy = progress.policy
        count = self._wanted(policy) + progress.steps
        known = self._rows.latest(count, progress.current.lam)
        return replace(progress, policy=policy.searched(known))

    def _learned(
        self,
        progress: Progress[FitT],
        share: int,  # the training rows per row of the fit for the gradient
        memory: Workspace,
        issued: IssuedForecasts | None,
    ) -> Policy:
        """Return the policy after learning from the rows whose last label came after the refit.

        The fit in force was not trained on them. With several horizons, the fit before predicted
        the first H - 1 of them.
        """
        policy, rows, current = progress.policy, self._rows, progress.current
        if not policy.learns:
            return policy
        lam, trained = current.lam, times_of(current.runs)
        window = rows.between(progress.refit_time - self.horizon + 1, progress.newest, lam)
        if not len(window):
            return policy
        with self.costs.spending("tuning"):
            if share == 1:
                fit = memory.solved(current, self.model, self._in_memory(current)[0])
            else:
                trained = np.sort(trained[drawn(trained, len(trained) // share)])
                small = self.model.thinned(share, current.landmarks)
                fit = small.fit(rows.at(trained, lam), lam)
                memory.keep(None, self.model, fit)  # the next fit reuses its memory
            loss = None if issued is None else issued.loss(window.t)
            return policy.learned(fit, lam, window, rows.tangents(trained, window.t, lam), loss)

    def _fitted(
        self,
        policy: Policy,
        newest: float,  # time of the newest value
        refits: int,  # the number of fits, with this one
        memory: Workspace,
    ) -> Progress[FitT]:
        """Return the progress after a new fit to the last N rows at the policy's lam."""
        lam = policy.lam
        known = self._rows.latest(self._wanted(policy), lam)
        if not len(known):
            raise FitError("a fit needs at least one row, got none: no recent reading is usable.")
        samples, oldest = known[-self.train_size :], float(known.t[0])
        with self.costs.spending("fitting"):
            fit = self.model.fit(samples, lam, memory.spare(self.model))
        fitted = RebuildableFit(lam, runs_of(samples.t), held=(samples, fit))
        memory.keep(fitted, self.model, fit)
        return Progress(fitted, policy, newest, newest, oldest, refits=refits)

    def _wanted(self, policy: Policy) -> int:
        """Return how many samples a fit and a search need at most, with H - 1 between the two."""
        return self.train_size + policy.look_back + self.horizon - 1

    def _in_memory(self, fitted: RebuildableFit[FitT]) -> tuple[Samples, FitT]:
        """Return the training set of a fit and the fit, rebuilt if they were dropped."""
        if fitted.held is not None:
            return fitted.held
        rows = self._rows.at(times_of(fitted.runs), fitted.lam)
        return fitted.rebuild(self.model, rows)

    def _state(self) -> dict[str, Matrix | float]:
        """Return everything that changes, except the rows, as arrays and numbers."""
        progress = self.progress
        names = ("newest", "refit_time", "oldest", "steps", "refits", "untaught")
        state: dict[str, Matrix | float] = {name: getattr(progress, name) for name in names}
        state |= {f"policy.{name}": value for name, value in progress.policy.state().items()}
        state |= packed_fit("current", progress.current)
        return {name: np.copy(value) if np.ndim(value) else value for name, value in state.items()}

    def _restored(self, state: State, policy: Policy) -> Progress[FitT]:
        """Return the progress of a state; its fit is rebuilt when it is needed."""
        steps = require_count("steps", state["steps"], least=0)
        if steps >= self.update_every and not self.deferred:
            raise StateError(
                f"state must have fewer than {self.update_every} steps since its refit, got "
                f"{steps}."
            )
        return Progress(
            self._unpacked_fit("current", state),
            policy.restore(part(state, "policy")),
            require_number("newest", state["newest"]),
            require_number("refit_time", state["refit_time"]),
            require_number("oldest", state["oldest"]),
            steps,
            require_count("refits", state["refits"]),
            require_count("untaught", state["untaught"], least=0),
        )

    def _unpacked_fit(self, name: str, state: State) -> RebuildableFit[FitT]:
        """Return the fit that was packed under a name."""
        runs = require_finite("runs", state[f"{name}.runs"])
        require_shape("runs", runs, (None, 2))
        lam = require_finite("lam", state[f"{name}.lam"]).copy()
        feasible = self.model.space.feasible
        if lam.shape != (feasible.size,):
            raise StateError(f"state must hold {feasible.size} hyperparameters, got {lam.size}.")
        if not feasible.contains(lam):
            raise StateError(f"state must hold feasible hyperparameters, got {lam.tolist()}.")
        numbers = {key: np.array(value) for key, value in part(state, f"{name}.fit").items()}
        return RebuildableFit(lam, runs.copy(), numbers)


def packed_fit(name: str, fitted: RebuildableFit[Any]) -> dict[str, Matrix | float]:
    """Return a fit as arrays and numbers, each under its name."""
    parts = {f"{name}.{key}": getattr(fitted, key) for key in ("lam", "runs")}
    return parts | {f"{name}.fit.{key}": value for key, value in fitted.numbers.items()}
