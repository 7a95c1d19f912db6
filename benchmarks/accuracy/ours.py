"""Our own methods: the default forecaster, self-tuned and fixed, and others beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from accuracy.rivals import Figures, errors
from accuracy.streams import Stream
from streamridge import Forecaster, replay
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.sizes import NAMED
from streamridge.metrics import coverage
from streamridge.series.lengths import Length, default_seasons


def own_figures(stream: Stream, forecaster: Forecaster) -> Figures:
    """Return how good a forecaster and its bands are on a stream, and what it cost."""
    run = replay(forecaster, stream.series, warmup=stream.warmup)
    return {
        **errors(stream.actual, run.value[:, 0]),
        "coverage": coverage(stream.actual, run.lower[:, 0], run.upper[:, 0]),
        "seconds": run.seconds,
    }


def default(stream: Stream, *, learn: bool) -> Forecaster:
    """Return the default forecaster for a stream."""
    return Forecaster(stream.series.clock.step, learn=learn)


def paper(stream: Stream, *, learn: bool) -> Forecaster:
    """Return the paper's forecaster, whose first fit is at the end of the warm-up."""
    return Forecaster.paper(
        stream.series.clock.step, train_size=stream.size, warmup=stream.warmup, learn=learn
    )


def off(stream: Stream, *, learn: bool) -> Forecaster:
    """Return the default forecaster from a start that is far off."""
    step = stream.series.clock.step
    return Forecaster(step, learn=learn, preset=off_preset(step))


def off_preset(step: Length) -> Preset:
    """Return the default preset with a ridge constant a hundred times too small."""
    preset = NAMED["default"].preset(default_seasons(step), step)
    model: Any = preset.model  # a standardized ridge model
    far = replace(model.model, regularization=model.model.regularization / 100)
    return replace(preset, model=replace(model, model=far))


OURS: dict[str, Callable[[Stream], Forecaster]] = {
    "ohl": partial(default, learn=True),
    "fixed": partial(default, learn=False),
    "paper ohl": partial(paper, learn=True),
    "paper fixed": partial(paper, learn=False),
    "off ohl": partial(off, learn=True),
    "off fixed": partial(off, learn=False),
}
