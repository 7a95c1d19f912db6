"""Our own methods: the default forecaster, self-tuned and fixed, and others beside it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from accuracy.rivals import Figures, errors
from accuracy.streams import Stream
from streamridge import Forecaster, replay
from streamridge.forecaster.methods import starting_at
from streamridge.metrics import coverage


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
    """Return the default forecaster from a ridge constant a hundred times too small."""
    usual = default(stream, learn=learn)
    start = {"regularization": usual.hyperparameters["regularization"] / 100}
    return Forecaster.from_settings(starting_at(start, usual.settings))


OURS: dict[str, Callable[[Stream], Forecaster]] = {
    "ohl": partial(default, learn=True),
    "fixed": partial(default, learn=False),
    "paper ohl": partial(paper, learn=True),
    "paper fixed": partial(paper, learn=False),
    "off ohl": partial(off, learn=True),
    "off fixed": partial(off, learn=False),
}
