"""How far each expert of a run was trusted: in plain words, and as an interactive figure."""

from __future__ import annotations

import plotly.graph_objects as go

from streamridge.arrays import Vector
from streamridge.plots.tuning import SHARE
from streamridge.report.look import stacked_figure
from streamridge.runs.run import Run

# What experts are called on the page; the others are readings of a season ago.
WORDS = {
    "model": "model",
    "start": "smaller model at its start",
    "last": "last reading",
}
# Seasons with a name of their own.
NAMED_SEASONS = ("day", "week", "year")
TRUST = (
    "How much of each forecast comes from the model, from a smaller fit of it, and from readings "
    "repeated as they were: whoever has erred less of late is trusted more."
)


def expert_words(name: str) -> str:
    """Return an expert's name in plain words.

    Examples
    --------
    >>> expert_words("start"), expert_words("week"), expert_words("8h"), expert_words("12")
    ('smaller model at its start', 'a week ago', '8h ago', '12 steps ago')
    """
    if name in WORDS:
        return WORDS[name]
    if name in NAMED_SEASONS:
        return f"a {name} ago"
    return f"{name} steps ago" if name.isdecimal() else f"{name} ago"


def trust_of(run: Run) -> dict[str, Vector]:
    """Return the weights of a run's experts over time, in plain words; empty without a course."""
    path = run.expert_path
    if len(path.times) < 2:
        return {}
    return {expert_words(name): weights for name, weights in path.by_name().items()}


def trust_figure(run: Run) -> go.Figure:
    """Return a figure of the weights of a run's experts, as stacked areas."""
    return stacked_figure(run.expert_path.times, trust_of(run), title=SHARE)
