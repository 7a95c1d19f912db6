"""The relevance of features and neighbours for the forecasts of a sensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, html_table
from streamridge.features.words import feature_words
from streamridge.files.frames import make_frame
from streamridge.plots.axes import COLORS, new_figure

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
        """Return a figure with a bar for each feature and each neighbour."""
        rows = self.rows()
        figure = new_figure(1, height_per_row=1 + HEIGHT_PER_ROW * len(rows))
        self.draw(figure.axes[0])
        return figure

    def draw(self, axes: Any) -> Any:
        """Draw a bar for each feature and each neighbour on axes of matplotlib."""
        rows = self.rows()
        colors = [COLORS[0] if kind == "feature" else COLORS[1] for kind, *_ in rows]
        places = np.arange(len(rows))
        axes.barh(places, [each for *_, each in rows], color=colors)
        labels = [f"neighbour {name}" if kind == "neighbour" else name for kind, name, _ in rows]
        axes.set_yticks(places, labels)
        axes.invert_yaxis()
        unit = "share of all inverse scales"
        if self.neighbours:
            unit += "; of neighbours: expected errors"
        axes.set(xlabel=unit, title="Relevance for the forecast")
        return axes

    def _repr_html_(self) -> str:
        rows = [[kind, name, f"{number:.3f}"] for kind, name, number in self.rows()]
        return html_table(["kind", "name", "relevance"], rows)


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
