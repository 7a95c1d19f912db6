"""A learner's progress as a plain mapping of arrays and numbers, and back."""

from __future__ import annotations

import numpy as np

from streamridge.arrays import Matrix, require_count, require_finite, require_number, require_shape
from streamridge.errors import InvalidInputError, StateError
from streamridge.learners.base import Policy, State
from streamridge.learners.fitted import Fitted, times_of
from streamridge.learners.frame import Frame, Progress
from streamridge.learners.record import Record
from streamridge.learners.state import part
from streamridge.models.base import FitT


def pack(progress: Progress[FitT]) -> dict[str, Matrix | float]:
    """Return the progress as arrays and numbers that share no memory with it."""
    state: dict[str, Matrix | float] = {
        name: getattr(progress, name) for name in ("newest", "steps", "refits")
    }
    state |= {f"policy.{name}": value for name, value in progress.policy.state().items()}
    state |= {f"record.{name}": value for name, value in progress.record.state().items()}
    for name, fitted in (("current", progress.current), ("retired", progress.retired)):
        if fitted is not None:
            state |= pack_fit(name, fitted)
    return {name: np.copy(value) if np.ndim(value) else value for name, value in state.items()}


def pack_fit(name: str, fitted: Fitted[FitT]) -> dict[str, Matrix | float]:
    """Return a fit as arrays and numbers, each under its name."""
    parts = {f"{name}.{key}": getattr(fitted, key) for key in ("lam", "runs", "since")}
    return parts | {f"{name}.fit.{key}": value for key, value in fitted.numbers.items()}


def unpack(state: State, frame: Frame[FitT], policy: Policy, record: Record) -> Progress[FitT]:
    """Return the progress that was packed, for a learner with these parts.

    Its fits are at rest: whether their numbers suit the rows shows when they are woken.
    """
    try:
        return _unpacked(state, frame, policy, record)
    except KeyError as missing:
        raise StateError(f"state must hold {missing}, got {sorted(state)}.") from None
    except InvalidInputError as error:
        raise StateError(f"state is damaged: {error}") from None


def _unpacked(state: State, frame: Frame[FitT], policy: Policy, record: Record) -> Progress[FitT]:
    steps = require_count("steps", state["steps"], least=0)
    if steps >= frame.update_every and not frame.deferred:
        raise StateError(
            f"state must have fewer than {frame.update_every} steps since its refit, got {steps}."
        )
    record = record.restore(
        {key: np.asarray(value) for key, value in part(state, "record").items()}
    )
    current = unpack_fit("current", state, frame, record)
    return Progress(
        record=current.record,
        current=current,
        policy=policy.restore(part(state, "policy")),
        newest=require_number("newest", state["newest"]),
        retired=_retired(state, frame, record),
        steps=steps,
        refits=require_count("refits", state["refits"]),
    )


def _retired(state: State, frame: Frame[FitT], record: Record) -> Fitted[FitT] | None:
    if "retired.lam" not in state:
        return None
    retired = unpack_fit("retired", state, frame, record)
    retired.refits_ago = 1
    return retired


def unpack_fit(name: str, state: State, frame: Frame[FitT], record: Record) -> Fitted[FitT]:
    """Return the fit that was packed under a name, at rest."""
    runs = require_finite("runs", state[f"{name}.runs"])
    require_shape("runs", runs, (None, 2))
    lam = require_finite("lam", state[f"{name}.lam"]).copy()
    feasible = frame.model.space.feasible
    if lam.shape != (feasible.size,):
        raise StateError(f"state must hold {feasible.size} hyperparameters, got {lam.size}.")
    if not feasible.contains(lam):
        raise StateError(f"state must hold feasible hyperparameters, got {lam.tolist()}.")
    numbers = {key: np.array(value) for key, value in part(state, f"{name}.fit").items()}
    since = require_number("since", state[f"{name}.since"])
    return Fitted(frame.model, record.under(lam), times_of(runs), lam, since, numbers)
