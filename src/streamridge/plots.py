"""Figures drawn from the steps of a run; each function draws on an Axes and returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from streamridge.metrics import running_rmse
from streamridge.protocols.base import Step

Runs = Mapping[str, Sequence[Step]]


def plot_forecasts(axes: Axes, runs: Runs, *, steps_a_day: int, unit: str) -> Axes:
    """Draw the actual values and the forecast of every run, against days."""
    first = next(iter(runs.values()))
    days = np.arange(len(first)) / steps_a_day
    axes.plot(days, [step.actual for step in first], color="0.25", lw=1.4, label="actual")
    for (name, steps), style in zip(runs.items(), _styles(len(runs)), strict=True):
        axes.plot(days, [step.forecast[0] for step in steps], lw=1.1, label=name, **style)
    axes.set(xlabel="days", ylabel=unit, title="one step ahead")
    axes.legend(loc="upper right", ncols=1 + len(runs), frameon=False)
    axes.margins(x=0)
    return axes


def plot_running_rmse(axes: Axes, runs: Runs, *, steps_a_day: int, unit: str) -> Axes:
    """Draw RMSE(t) of every run, against days, from the end of the first day on."""
    for (name, steps), style in zip(runs.items(), _styles(len(runs)), strict=True):
        curve = running_rmse([step.error for step in steps])[steps_a_day:]
        days = np.arange(steps_a_day, steps_a_day + len(curve)) / steps_a_day
        axes.plot(days, curve, lw=1.4, label=name, **style)
    axes.set(xlabel="days since the first forecast", ylabel=f"RMSE(t), {unit}")
    axes.legend(loc="upper right", frameon=False)
    axes.margins(x=0)
    return axes


def _styles(count: int) -> list[dict[str, Any]]:
    """Return colours that stay apart for colour-blind readers, the last one solid."""
    colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
    return [
        {"color": colors[i % len(colors)], "linestyle": "-" if i == count - 1 else "--"}
        for i in range(count)
    ]
