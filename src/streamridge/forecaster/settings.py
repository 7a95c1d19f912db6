"""The settings of a forecaster, checks of its arguments, and the history it starts with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from streamridge.arrays import Matrix, Vector, require_count, require_flag, require_number
from streamridge.errors import InvalidInputError, StateError, listed, option, shown
from streamridge.features.seasonal_columns import SeasonalColumns
from streamridge.files.reading import read_one_series
from streamridge.files.reading_options import OPTION_NAMES, ReadingOptions
from streamridge.forecaster.forecast import Level, Levels, one_or_all, require_levels
from streamridge.forecaster.plausibility import BoundPair, Limits, require_bounds
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.saving import build_shared, describe
from streamridge.forecaster.sizes import (
    affordable,
    default_patience,
    default_tune_every,
    default_update_every,
    default_warmup,
    size_of,
)
from streamridge.learners.workspace import Workspace
from streamridge.models.base import Model
from streamridge.series.clock import require_local_step
from streamridge.series.holidays import PlainHolidays, parse_holidays
from streamridge.series.lengths import (
    DAY,
    UNITS,
    Length,
    amount,
    parse_seasons,
    parse_step,
    plain_length,
)
from streamridge.series.series import Series
from streamridge.series.zones import parse_zone
from streamridge.tuners.base import Tuner

# The start of the hyperparameters: the model's own, or the result of a search on the history.
Start = Literal["default", "search"]
STARTS = ("default", "search")

# The smallest number of steps of a season that forecasts far ahead refer to.
LEAST_SEASON = 2
# A day of steps for the memory of the ensemble: without seasons, at least, and at most.
LONG_DAY, SHORT_DAY, MOST_DAY = 96, 24, 1440


@dataclass(frozen=True)
class Settings:
    """The settings of a forecaster; see `Forecaster` for their meaning."""

    step: Length
    seasons: tuple[Length, ...]
    preset: Preset
    horizon: int
    level: Level
    tz: str | None
    train_size: int
    update_every: int
    warmup: int
    learn: bool
    guard: bool
    tuner: Tuner | None
    tune_every: int
    validation_size: int
    seed: int
    defer_refits: bool = False
    bounds: BoundPair | None = None
    sensor: str | None = None
    holidays: PlainHolidays | None = None
    start: Start = "default"

    def __post_init__(self) -> None:
        if not isinstance(self.preset, Preset):
            raise InvalidInputError(f"preset must be a Preset or None, got {shown(self.preset)}.")
        require_local_step(parse_step(self.step), parse_zone(self.tz))
        object.__setattr__(self, "seasons", parse_seasons(self.seasons, self.step))
        object.__setattr__(self, "level", one_or_all(require_levels(self.level)))
        object.__setattr__(self, "bounds", require_bounds(self.bounds))
        for name in ("horizon", "train_size", "update_every", "warmup", "validation_size"):
            object.__setattr__(self, name, require_count(name, getattr(self, name)))
        for name in ("tune_every", "seed"):
            object.__setattr__(self, name, require_count(name, getattr(self, name), least=0))
        for name in ("learn", "guard", "defer_refits"):
            object.__setattr__(self, name, require_flag(name, getattr(self, name)))
        if self.near > self.update_every:
            raise InvalidInputError(
                f"horizon must be at most update_every ({self.update_every}), got {self.horizon}."
            )
        if self.start not in STARTS:
            raise InvalidInputError(
                f"start must be one of {listed(STARTS)}, got {shown(self.start)}."
            )
        if self.tuner is not None:
            self._require_tuner(self.tuner)
        if self.sensor is not None and not (isinstance(self.sensor, str) and self.sensor.strip()):
            raise InvalidInputError(f"sensor must be a name, or None, got {shown(self.sensor)}.")
        if self.holidays is not None:
            object.__setattr__(self, "holidays", parse_holidays(self.holidays) or None)
            self._require_week()

    def _require_week(self) -> None:
        if self.holidays is not None and 7 * DAY not in self.seasons:
            raise InvalidInputError(
                "holidays must be left out where no season is a week, since they run like Sundays, "
                f"got {shown(self.holidays)}. Or add '7d' to seasons."
            )

    def _require_tuner(self, tuner: Tuner) -> None:
        if not (hasattr(tuner, "tune") and hasattr(tuner, "trials")):
            raise InvalidInputError(f"tuner must be one of streamridge.tuners, got {shown(tuner)}.")
        if not self.learn:
            raise InvalidInputError("learn must be True with a tuner, got False. Leave one out.")
        tuner.require_space(self.preset.model.space)

    @cached_property
    def model(self) -> Model[Any]:
        """Return the model with the parameters of its features among its hyperparameters.

        A search on the past uses existing rows, so it leaves these parameters constant.
        """
        return self.preset.joint if self.tuner is None else self.preset.joint_for_searches

    @cached_property
    def levels(self) -> Levels:
        """Return the levels of the bands, one or more, in the order given."""
        return require_levels(self.level)

    @cached_property
    def periods(self) -> tuple[float, ...]:
        """Return the seasons in steps, in ascending order; they may be fractions."""
        return tuple(amount(season) / amount(self.step) for season in self.seasons)

    @cached_property
    def patience(self) -> int:
        """Return the number of steps without a reading for which the model makes forecasts."""
        return default_patience(self.step, self.periods)

    @cached_property
    def limits(self) -> Limits:
        """Return the known bounds as numbers, infinite where there is none."""
        lower, upper = self.bounds or (None, None)
        return -inf if lower is None else lower, inf if upper is None else upper

    @cached_property
    def has_ensemble(self) -> bool:
        """Return whether forecasts are mixtures of several members."""
        return self.guard and self.learn

    @cached_property
    def has_baseline(self) -> bool:
        """Return whether a baseline fit shows whether tuning helps.

        A search compares its result with its start; only steps along gradients can go astray.
        """
        return self.has_ensemble and self.tuner is None

    @cached_property
    def near(self) -> int:
        """Return the number of steps ahead that the model forecasts; see `FarAhead` for others."""
        return near_steps(self.horizon, self.step, self.columns, self.update_every)

    @cached_property
    def columns(self) -> SeasonalColumns | None:
        """Return the columns of forecasts far ahead; None if the model forecasts all steps.

        Only the model uses extra columns, so it forecasts all steps if there are any.
        """
        model_alone = self.horizon == 1 or not self.guard or self.preset.features.extras
        return None if model_alone else seasonal_columns(self.seasons, self.step)

    @cached_property
    def day(self) -> int:
        """Return the steps of a day, which the memory of the ensemble is measured in."""
        return min(max(round(min(self.periods, default=LONG_DAY)), SHORT_DAY), MOST_DAY)

    @property
    def look_back(self) -> int:
        """Return the largest number of rows of the first fit and of a search before it."""
        return self.train_size + (self.validation_size if self.tuner is not None else 0)

    @property
    def kept_steps(self) -> int:
        """Return the number of steps that are remembered for the rows of the first fit."""
        return max(self.look_back, self.warmup)

    def described(self) -> dict[str, Any]:
        """Return the settings as plain JSON, without those at their default value."""
        plain = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
        parts = {name: describe(getattr(self, name)) for name in ("preset", "tuner")}
        seasons = [plain_length(season) for season in self.seasons]
        return plain | parts | {"step": plain_length(self.step), "seasons": seasons}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Settings:
        """Return the settings from the plain JSON of `described`."""
        try:
            parts = dict(described)
            step = parse_step(parts.pop("step"))
            seasons = parse_seasons(parts.pop("seasons"), step)
            preset = build_shared(parts.pop("preset"))
            tuner = build_shared(parts.pop("tuner"))
            return cls(step=step, seasons=seasons, preset=preset, tuner=tuner, **parts)
        except (KeyError, TypeError, InvalidInputError) as error:
            raise StateError(f"settings cannot be read: {error}") from None


# The model forecasts steps within this time, but at least and at most these numbers of steps.
# Farther ahead, seasonal profiles matter more than the latest readings.
NEAR, LEAST_NEAR, MOST_NEAR = 3 * UNITS["h"], 4, 12
# The longest season whose profile is a reference of forecasts far ahead, unless it is the only one.
LONGEST_REFERENCE = 60 * DAY


def near_steps(
    horizon: int, step: Length, columns: SeasonalColumns | None, update_every: int | None
) -> int:
    """Return the number of steps ahead that the model forecasts; all if there are no columns.

    A row waits for its labels until the next refit, so they are at most `update_every` steps away.
    """
    if columns is None:
        return horizon
    near = MOST_NEAR if isinstance(step, int) else round(NEAR / step)
    near = min(horizon, max(LEAST_NEAR, min(near, MOST_NEAR)))
    return near if update_every is None else min(near, update_every)


def seasonal_columns(seasons: tuple[Length, ...], step: Length) -> SeasonalColumns | None:
    """Return the columns of forecasts far ahead; None without a season of at least two steps."""
    short = [each for each in seasons if isinstance(each, int) or each <= LONGEST_REFERENCE]
    periods = [amount(each) / amount(step) for each in short or seasons[:1]]
    if not periods or periods[-1] < LEAST_SEASON:
        return None
    day = periods[0] if len(periods) > 1 and periods[0] >= LEAST_SEASON else None
    return SeasonalColumns(periods[-1], day)


# More steps ahead, or more lags, would take hours to fit; farther lags weigh nothing at the start.
MOST_AHEAD, MOST_LAGS = 20_160, 3000
# Larger readings would overflow when they are squared and summed.
LARGEST_VALUE = 1e12


def require_reading(name: str, value: float | Decimal | None) -> float:
    """Return a reading as a number; NaN if there is none."""
    if type(value) is float and abs(value) <= LARGEST_VALUE:  # as a rule
        return value
    # pandas has missing values of its own, which are not even equal to themselves.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float | np.floating) and np.isnan(value):
        return np.nan
    number = require_number(name, value)
    if abs(number) > LARGEST_VALUE:
        raise InvalidInputError(f"{name} must be at most {LARGEST_VALUE:g} in size, got {value}.")
    return number


def require_readings(name: str, values: Vector | Matrix) -> None:
    """Raise unless all readings of a history are missing, or not too large."""
    too_large = values[np.abs(values) > LARGEST_VALUE]
    if too_large.size:
        raise InvalidInputError(
            f"{name} must be at most {LARGEST_VALUE:g} in size, got {too_large[0]:g}."
        )


def require_names(extras: object) -> tuple[str, ...]:
    """Return the names of further columns; raise unless they are names, and all different."""
    if isinstance(extras, str) or not np.iterable(extras):
        raise InvalidInputError(f"extras must be a tuple of names, got {shown(extras)}.")
    names = tuple(extras)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InvalidInputError(
            f"extras must be a tuple of names, all different, got {shown(extras)}."
        )
    return names


def require_path(path: object) -> Path:
    """Return the path of a file; raise unless it is text or a path."""
    if not isinstance(path, str | PathLike):
        raise InvalidInputError(f"path must be the name of a file, got {shown(path)}.")
    return Path(path)


def require_workspace(workspace: Workspace | None) -> Workspace | None:
    """Return a workspace, or None; raise at anything else."""
    if not isinstance(workspace, Workspace | None):
        raise InvalidInputError(f"workspace must be a Workspace or None, got {shown(workspace)}.")
    return workspace


def chosen_settings(
    step: str | int | timedelta,
    *,
    seasons: Any,
    horizon: int,
    lags: int,
    model: str,
    budget: str | None,
    train_size: int | None,
    update_every: int | None,
    warmup: int | None,
    tune_every: int | None,
    validation_size: int | None,
    extras: Any,
    preset: Preset | None,
    holidays: Any,
    **others: Any,
) -> Settings:
    """Return the settings that the arguments of a `Forecaster` choose, with defaults filled in."""
    length = parse_step(step)
    lengths = parse_seasons(seasons, length)
    require_count("horizon", horizon, most=MOST_AHEAD)
    require_count("lags", lags, most=MOST_LAGS)
    size, names = size_of(model), require_names(extras)
    if preset is not None:
        _require_absent("preset", model=model, budget=budget, extras=extras)
    if budget is not None:
        _require_absent("budget", model=model, train_size=train_size, update_every=update_every)
        size = affordable(budget, length, horizon=horizon).size
    train_size = size.train_size if train_size is None else train_size
    require_count("train_size", train_size)
    has_columns = horizon > 1 and others["guard"] and not names
    columns = seasonal_columns(lengths, length) if has_columns else None
    if update_every is not None:
        require_count("update_every", update_every)
    near = near_steps(horizon, length, columns, update_every)
    if preset is None:
        preset = size.preset(
            lengths, length, lags=lags, horizon=near, extras=names, train_size=train_size
        )
    periods = tuple(amount(season) / amount(length) for season in lengths)
    if update_every is None:
        update_every = size.every * default_update_every(length, near, train_size)
    return Settings(
        step=length,
        seasons=lengths,
        preset=preset,
        horizon=horizon,
        train_size=train_size,
        update_every=update_every,
        warmup=default_warmup(length, periods) if warmup is None else warmup,
        tune_every=default_tune_every(length, train_size) if tune_every is None else tune_every,
        validation_size=train_size if validation_size is None else validation_size,
        holidays=None if holidays is None else parse_holidays(holidays),
        **others,
    )


def _require_absent(decider: str, **decided: object) -> None:
    """Raise if an argument is given that another argument decides."""
    for name, value in decided.items():
        if not (value is None or value == "default" or value == ()):
            raise InvalidInputError(
                f"{name} must be left out with a {decider}, which decides it, got {shown(value)}."
            )


# Settings of a forecaster that are reading options as well, and options of several sensors or of
# the order in which readings arrive.
_OTHERS = ("sensor", "sensors", "step", "tz", "extras", "arrival_order")
HISTORY_OPTIONS = tuple(name for name in OPTION_NAMES if name not in _OTHERS)


def read_history(
    given: Any,  # a `Series`, a frame or series of pandas, polars or pyarrow, or the path of a file
    *,
    step: Any = None,
    tz: str | None = None,
    extras: tuple[str, ...] = (),
    # The sensor to read, where there are several; otherwise its new name.
    sensor: str | None = None,
    reading: Mapping[str, Any],  # the options of `HISTORY_OPTIONS`
) -> Series:
    """Return the history of one sensor on a regular grid."""
    if isinstance(given, Series):
        _require_same("step", None if step is None else parse_step(step), given.clock.step)
        _require_same("tz", parse_zone(tz), given.clock.zone)
        if not set(extras) <= set(given.extras):
            raise InvalidInputError(
                f"series must have the extras {listed(extras)}, got {listed(given.extras)}."
            )
        tz = None if given.clock.zone is None else given.clock.zone.key
    options = ReadingOptions.of(reading, step=step, tz=tz, extras=extras)
    return read_one_series(given, options, lambda names: _chosen(names, sensor))


def _require_same(name: str, asked: object, own: object) -> None:
    """Raise if an option differs from the option of a series."""
    if asked is not None and asked != own:
        raise InvalidInputError(
            f"{name} must equal the {name} of the series, {own!s}, got {asked!s}."
        )


def _chosen(names: Sequence[str], sensor: str | None) -> str:
    """Return the sensor to read; a single one needs no name."""
    if len(names) > 1 and sensor not in names:
        raise InvalidInputError(
            f"sensor must be one of {listed(names)}, got {sensor!r}. Pass {option('sensor')}."
        )
    return names[0] if len(names) == 1 else str(sensor)
