"""Methods by the names that commands and comparisons use: ways of tuning, and yardsticks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from streamridge.errors import InvalidInputError, listed
from streamridge.forecaster.presets import Preset, rate_free
from streamridge.forecaster.settings import Settings
from streamridge.tuners.base import Tuner
from streamridge.tuners.bayesian import Bayesian
from streamridge.tuners.grid import Grid
from streamridge.tuners.hoag import HOAG
from streamridge.tuners.random_search import RandomSearch

# Forecasts without a model: the last reading, and the one of a week ago.
YARDSTICKS = ("last", "week")
# In the order in which they are shown.
METHODS = ("ohl", "ohl+", "hoag", "random", "grid", "bayes", "fixed", *YARDSTICKS)


def parse_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Return the named methods, each once; a text may name several, separated by commas.

    Examples
    --------
    >>> parse_methods(["ohl,fixed", "random"])
    ('ohl', 'fixed', 'random')
    """
    return parse_names(names, METHODS)


def parse_names(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the named methods, each once; raise if one of them is not known."""
    every = names if isinstance(names, Iterable) else [names]
    asked = [
        part.strip().lower() for name in every for part in str(name).split(",") if part.strip()
    ]
    for name in asked:
        if name not in known:
            raise InvalidInputError(f"method must be one of {listed(known)}, got {name!r}.")
    if not asked:
        raise InvalidInputError(f"method must be one of {listed(known)}, got none.")
    return tuple(dict.fromkeys(asked))


def needs_model(method: str) -> bool:
    """Return whether a method forecasts by a model, as all do but the yardsticks.

    A second run of a method may be told apart by a number.

    Examples
    --------
    >>> needs_model("ohl"), needs_model("mine"), needs_model("last"), needs_model("week (2)")
    (True, True, False, False)
    """
    return method.partition(" (")[0] not in YARDSTICKS


def tuned_by(method: str, settings: Settings) -> Settings:
    """Return the settings with another method of tuning; a yardstick tunes nothing."""
    (known,) = parse_methods([method])
    if known == "week" and not settings.seasons:
        raise InvalidInputError(
            f"method must be {listed(METHODS[:-1])} for a series without seasons, got 'week'. "
            "Or say its seasons with --seasons (seasons= in Python)."
        )
    tuner = _tuner(known, settings.preset)
    tuned = replace(settings, learn=known != "fixed" and needs_model(known), tuner=tuner)
    if known != "ohl+":
        return tuned
    return replace(tuned, preset=rate_free(settings.preset), start="search")


def starting_at(hyperparameters: Mapping[str, float], settings: Settings) -> Settings:
    """Return the settings with other initial hyperparameters, by name.

    Examples
    --------
    >>> from streamridge.forecaster.forecaster import Forecaster
    >>> off = starting_at({"regularization": 0.01}, Forecaster().settings)
    >>> Forecaster.of(off).hyperparameters["regularization"]
    0.01
    """
    if not hyperparameters:
        return settings
    preset = settings.preset
    space = preset.joint.space
    lam = space.assigned(space.values, hyperparameters)
    return replace(settings, preset=preset.starting_at(lam))


def method_of(settings: Settings) -> str:
    """Return the name of the method of tuning."""
    if not settings.learn:
        return "fixed"
    if settings.tuner is None:
        return "ohl+" if settings.start == "search" else "ohl"
    names = {HOAG: "hoag", RandomSearch: "random", Grid: "grid", Bayesian: "bayes"}
    return names.get(type(settings.tuner), type(settings.tuner).__name__.lower())


def _tuner(method: str, preset: Preset) -> Tuner | None:
    if method == "hoag":
        return HOAG(coordinates=preset.coordinates)
    if method == "random":
        return RandomSearch()
    if method == "bayes":
        return Bayesian()
    if method == "grid":
        # Cycles are left out: a period has so many local minima that three points say nothing.
        groups = preset.model.space.groups
        return Grid(over=tuple(group.name for group in groups if group.kind != "period"))
    return None
