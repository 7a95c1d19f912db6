"""Figures of hyperparameters over time: weights, scales of features, and the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamridge.arrays import Matrix, Vector
from streamridge.hyperparameters.groups import GroupNames
from streamridge.plots.axes import (
    INK,
    legend_above_data,
    log_axis,
    matplotlib_part,
    method_look,
    method_style,
    part_color,
    plain,
    time_axis,
)
from streamridge.series.clock import Times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Marks of a hyperparameter at a bound.
BOUND_MARKS = {
    "lower": " \N{BLACK DOWN-POINTING TRIANGLE}",
    "upper": " \N{BLACK UP-POINTING TRIANGLE}",
}
# The vertical axis of the experts' weights.
SHARE = "share of the forecast"
# Up to this many rows of a heat map have room for a label each.
LABELLED_ROWS = 40


@dataclass(frozen=True)
class NameGroups:
    """Names of hyperparameters, grouped by how they are shown.

    Parameters
    ----------
    weights
        Weights of kernels, by the mixture that they belong to.
    indexed
        Hyperparameters with a value per feature, such as inverse scales, by their group.
    others
        All other names.
    """

    weights: Mapping[str, tuple[str, ...]]
    indexed: Mapping[str, tuple[str, ...]]
    others: tuple[str, ...]

    @classmethod
    def of(cls, groups: Sequence[GroupNames]) -> NameGroups:
        """Return the names of some groups by how they are shown."""
        weights = {each.name: each.names for each in groups if each.kind == "weight"}
        rest = [each for each in groups if each.kind != "weight"]
        indexed = {each.name: each.names for each in rest if each.names != (each.name,)}
        return cls(weights, indexed, tuple(each.name for each in rest if each.name not in indexed))


def short_name(name: str) -> str:
    """Return the part of a name after its last dot.

    Examples
    --------
    >>> short_name("weight.drifting"), short_name("matern.inverse_scales[3]")
    ('drifting', 'inverse_scales[3]')
    """
    return name.rpartition(".")[2]


def feature_labels(count: int, feature_names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of features, or numbers instead if there are not as many names.

    Examples
    --------
    >>> feature_labels(2, ["lag 1", "lag 2"]), feature_labels(2, None)
    (('lag 1', 'lag 2'), ('feature 1', 'feature 2'))
    """
    if feature_names is not None and len(feature_names) == count:
        return tuple(feature_names)
    return tuple(f"feature {i + 1}" for i in range(count))


def plot_weights(axes: Axes, times: Times, weights_by_name: Mapping[str, Vector]) -> Axes:
    """Draw the weights of the kernels as stacked areas; each holds until the next refit."""
    _stack(axes, times, weights_by_name, step="post")
    axes.set(ylabel="weight of the kernel")
    return axes


def plot_trust(axes: Axes, times: Times, weights_by_name: Mapping[str, Vector]) -> Axes:
    """Draw the weights of the experts as stacked areas."""
    _stack(axes, times, weights_by_name)
    axes.set(ylabel=SHARE)
    return axes


def plot_scales(axes: Axes, times: Times, values: Matrix, labels: Sequence[str]) -> Axes:
    """Draw a heat map of inverse scales; the larger one is, the more its feature matters.

    Parameters
    ----------
    axes
        Where to draw.
    times
        (n,), of the refits.
    values
        (n, p), one column per feature.
    labels
        One per feature.
    """
    norm = matplotlib_part("colors").LogNorm()
    rows = np.arange(len(labels))
    mesh = axes.pcolormesh(times, rows, values.T, norm=norm, cmap="cividis", shading="nearest")
    every = -(-len(labels) // LABELLED_ROWS)
    axes.set_yticks(rows[::every], [plain(label) for label in labels[::every]], fontsize=8)
    axes.invert_yaxis()
    axes.set(ylabel="feature")
    time_axis(axes, times)
    axes.figure.colorbar(mesh, ax=axes, label="inverse scale (large: matters more)", pad=0.01)
    return axes


def plot_paths(
    axes: Axes, paths_by_method: Mapping[str, tuple[Times, Vector]], *, name: str
) -> Axes:
    """Draw one hyperparameter over time as each method moved it."""
    for method, (times, values) in paths_by_method.items():
        axes.plot(
            times, values, drawstyle="steps-post", label=plain(method), **method_style(method)
        )
    axes.set(ylabel=plain(name))
    log_axis(axes)
    time_axis(axes, np.concatenate([times for times, _ in paths_by_method.values()]))
    legend_above_data(axes)
    return axes


def plot_hyperparameter(
    axes: Axes,
    times: Times,
    values: Vector,
    *,
    name: str,
    bound: str | None = None,
    method: str = "ohl",
) -> Axes:
    """Draw one hyperparameter over time; mark its end if it is at a "lower" or "upper" bound."""
    color, _ = method_look(method)
    axes.plot(times, values, color=color, lw=1.5, drawstyle="steps-post", label=plain(name))
    if bound:
        mark, label = "v" if bound == "lower" else "^", f"at its {bound} bound"
        axes.plot(times[-1:], values[-1:], mark, color=INK, ms=8, clip_on=False, label=label)
        axes.legend(loc="best", frameon=False)
    axes.set(ylabel=plain(name))
    if (values > 0).all():
        log_axis(axes)
    time_axis(axes, times)
    return axes


def _stack(axes: Axes, times: Times, shares_by_name: Mapping[str, Vector], **look: Any) -> None:
    """Draw shares that sum to one as stacked areas, with their names above."""
    axes.stackplot(
        times,
        *shares_by_name.values(),
        labels=[plain(name) for name in shares_by_name],
        colors=[part_color(i) for i in range(len(shares_by_name))],
        **look,
    )
    axes.set(ylim=(0, 1))
    time_axis(axes, times)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
