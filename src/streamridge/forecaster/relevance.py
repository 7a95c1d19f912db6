"""The relevance of features and neighbours for the forecasts of a sensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, html_table
from streamridge.features.base import feature_words
from streamridge.files.frames import make_frame
from streamridge.plots.axes import COLORS, drawable, new_figure

# The end of the name of a hyperparameter that scales one feature.
SCALE = ".inverse_scales["
HEIGHT_PER_ROW = 0.22


@dataclass(frozen=True)
class Relevance:
    """How much each feature of a model and each neighbour matters, in descending order.

    Parameters
    ----------
    features
        The share of each feature in the sum of all inverse scales. A feature of share zero changes
        no forecast, since rows that differ in it alone count as equal.
    neighbours
        How far each neighbour moves the forecasts as a rule, in units of their expected error.
    """

    features: Mapping[str, float]
    neighbours: Mapping[str, float] = field(default_factory=dict)

    def rows(self) -> list[tuple[str, str, float]]:
        """Return the kind, the name and the relevance of all features, then of all neighbours."""
        parts = {"feature": self.features, "neighbour": self.neighbours}
        return [(kind, *item) for kind, part in parts.items() for item in part.items()]

    def frame(self, backend: str | None = None) -> Any:
        """Return a frame with the columns "kind", "name" and "relevance"."""
        kinds, names, numbers = zip(*self.rows(), strict=True)
        columns = {"kind": list(kinds), "name": list(names), "relevance": np.array(numbers)}
        return make_frame(columns, backend)

    def plot(self) -> Any:
        """Return a figure with a bar for each feature, and for each neighbour below."""
        parts = [self.features, self.neighbours] if self.neighbours else [self.features]
        height = 1.5 * len(parts) + HEIGHT_PER_ROW * len(self.rows())
        figure: Any = new_figure(len(parts), height_per_row=height / len(parts))
        if self.neighbours:
            figure.axes[0].get_gridspec().set_height_ratios([5 + len(part) for part in parts])
            draw_bars(figure.axes[1], self.neighbours, COLORS[1])
            figure.axes[1].set(title="Neighbours", xlabel="usual move, in expected errors")
        draw_bars(figure.axes[0], self.features, COLORS[0])
        figure.axes[0].set(title="Features of the model", xlabel="share of all inverse scales")
        return figure

    def _repr_html_(self) -> str:
        rows = [[kind, name, f"{number:.3f}"] for kind, name, number in self.rows()]
        return html_table(["kind", "name", "relevance"], rows)


def draw_bars(axes: Any, sizes: Mapping[str, float], color: str) -> None:
    """Draw a horizontal bar for each name on axes of matplotlib, the first on top."""
    places = np.arange(len(sizes))
    axes.barh(places, list(sizes.values()), color=color)
    axes.set_ylim(-1, len(sizes))
    axes.set_yticks(places, list(map(drawable, sizes)))
    axes.invert_yaxis()


def relevance_of(hyperparameters: Mapping[str, float], names: Sequence[str]) -> Relevance:
    """Return the relevance of features, given hyperparameters and the names of the features.

    Examples
    --------
    >>> scales = {"ard.inverse_scales[0]": 3.0, "ard.inverse_scales[1]": 1.0}
    >>> relevance_of(scales, ["lags 1", "lags 2"]).features
    {'1 step ago': 0.75, '2 steps ago': 0.25}
    """
    scales = [value for name, value in hyperparameters.items() if SCALE in name]
    if not scales or len(scales) != len(names):
        raise InvalidInputError(
            "the model must have one inverse scale for each feature to show their relevance, got "
            f"{len(scales)} for {len(names)} features."
        )
    total = sum(scales)
    pairs = zip(feature_words(names), scales, strict=True)
    ranked = sorted(pairs, key=lambda pair: -pair[1])
    return Relevance({name: scale / total for name, scale in ranked})
