"""A learner's progress as a plain mapping of arrays and numbers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamridge.arrays import Matrix, require_count, require_finite, require_number
from streamridge.errors import InvalidInputError, StateError
from streamridge.learners.base import Fitted, Policy, State
from streamridge.learners.frame import Frame, Progress
from streamridge.learners.rows import stack, unstack
from streamridge.learners.state import part
from streamridge.models.base import FitT
from streamridge.samples import Inputs, Samples

# The parts of a progress that are rows.
ROWS = ("window", "waiting", "late", "overdue", "admitted")


def pack(progress: Progress[FitT]) -> dict[str, Matrix | float]:
    """Return the progress as arrays and numbers that share no memory with it."""
    state: dict[str, Matrix | float] = {
        name: getattr(progress, name) for name in ("newest", "steps", "refits")
    }
    state |= {f"policy.{name}": value for name, value in progress.policy.state().items()}
    layout, horizon = progress.current.samples.inputs.layout, progress.current.samples.y.shape[1]
    state |= _pack_samples("earlier", progress.earlier)
    for name in ROWS:
        state |= _pack_samples(name, stack(getattr(progress, name), layout, horizon))
    for name, fitted in (("current", progress.current), ("retired", progress.retired)):
        if fitted is not None:
            state |= {f"{name}.lam": fitted.lam} | _pack_samples(name, fitted.samples)
            state |= {f"{name}.fit.{key}": value for key, value in fitted.fit.state().items()}
    return {name: np.copy(value) if np.ndim(value) else value for name, value in state.items()}


def unpack(state: State, frame: Frame[FitT], policy: Policy) -> Progress[FitT]:
    """Return the progress that was packed, for a learner with this frame and this policy."""
    try:
        return _unpacked(state, frame, policy)
    except KeyError as missing:
        raise StateError(f"state must hold {missing}, got {sorted(state)}.") from None
    except InvalidInputError as error:
        raise StateError(f"state is damaged: {error}") from None


def _unpacked(state: State, frame: Frame[FitT], policy: Policy) -> Progress[FitT]:
    steps = require_count("steps", state["steps"], least=0)
    if steps >= frame.update_every:
        raise StateError(
            f"state must have fewer than {frame.update_every} steps since its refit, got {steps}."
        )
    rows: dict[str, Any] = {name: unstack(_samples(name, state, frame)) for name in ROWS}
    return Progress(
        current=_fitted("current", state, frame),
        policy=policy.restore(part(state, "policy")),
        newest=require_number("newest", state["newest"]),
        earlier=_samples("earlier", state, frame),
        retired=_fitted("retired", state, frame) if "retired.lam" in state else None,
        steps=steps,
        refits=require_count("refits", state["refits"]),
        **rows,
    )


def _samples(name: str, state: State, frame: Frame[FitT]) -> Samples:
    t, x = (require_finite(key, state[key]).copy() for key in (f"{name}.t", f"{name}.x"))
    y = np.array(state[f"{name}.y"], dtype=np.float64)  # NaN is a label still to come
    n, p, H = t.size, frame.layout.width, frame.horizon
    if (t.shape, x.shape, y.shape) != ((n,), (n, p), (n, H)):
        raise StateError(
            f"state must hold rows of {p} features and {H} labels in {name!r}, "
            f"got shapes {t.shape}, {x.shape}, {y.shape}."
        )
    return Samples(Inputs(t, x, frame.layout), y)


def _fitted(name: str, state: State, frame: Frame[FitT]) -> Fitted[FitT]:
    samples = _samples(name, state, frame)
    require_finite(f"{name}.y", samples.y)
    lam = require_finite("lam", state[f"{name}.lam"]).copy()
    feasible = frame.model.space.feasible
    if lam.shape != (feasible.size,):
        raise StateError(f"state must hold {feasible.size} hyperparameters, got {lam.size}.")
    if not feasible.contains(lam):
        raise StateError(f"state must hold feasible hyperparameters, got {lam.tolist()}.")
    arrays = {key: np.asarray(value) for key, value in part(state, f"{name}.fit").items()}
    with frame.costs.spending("fitting"):
        return Fitted(samples, lam, frame.model.resume(samples, lam, arrays))


def _pack_samples(name: str, samples: Samples) -> dict[str, Matrix]:
    return {f"{name}.t": samples.t, f"{name}.x": samples.x, f"{name}.y": samples.y}
