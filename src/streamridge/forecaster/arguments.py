"""The types of the settings of a forecaster as keyword arguments, for editors and type checkers.

A test compares them with the signature of `Forecaster`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TypedDict

from streamridge.files.reading_arguments import HistoryArguments
from streamridge.forecaster.forecast import Level
from streamridge.forecaster.plausibility import BoundPair
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.settings import Start
from streamridge.forecaster.sizes import SizeName
from streamridge.series.holidays import GivenHolidays
from streamridge.tuners.base import Tuner


class SharedArguments(TypedDict, total=False):
    """The settings that several sensors can share, and no function has itself."""

    seasons: tuple[str | int | timedelta, ...] | None
    level: Level
    lags: int
    budget: str | None
    train_size: int | None
    update_every: int | None
    bounds: BoundPair | None
    learn: bool
    guard: bool
    preset: Preset | None
    tuner: Tuner | None
    tune_every: int | None
    validation_size: int | None
    seed: int
    start: Start
    defer_refits: bool
    holidays: GivenHolidays | None


class ForecasterArguments(SharedArguments, total=False):
    """All settings of a forecaster; see `Forecaster`."""

    step: str | int | timedelta | None
    tz: str | None
    model: SizeName
    horizon: int
    warmup: int | None
    extras: tuple[str, ...]
    sensor: str | None


class StartArguments(ForecasterArguments, HistoryArguments, total=False):
    """The arguments of `Forecaster.start`."""
