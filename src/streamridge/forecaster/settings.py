"""The settings of a forecaster: checked once, frozen, and plain enough to be saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from streamridge.arrays import require_count, require_flag
from streamridge.errors import InvalidInputError, StateError, listed, shown
from streamridge.forecaster.bounds import BoundPair, require_bounds
from streamridge.forecaster.cadence import default_patience
from streamridge.forecaster.formats import upgraded_preset
from streamridge.forecaster.levels import Level, Levels, one_or_all, require_levels
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.recipes import build_shared, describe
from streamridge.models.base import Model
from streamridge.series.clock import (
    DAY,
    Length,
    amount,
    parse_step,
    parse_zone,
    plain_length,
    require_local_step,
)
from streamridge.series.holidays import PlainHolidays, parse_holidays
from streamridge.series.seasons import parse_seasons
from streamridge.tuners.base import Tuner

# Settings that the first saved forecasters did not have: left out where they are not given.
OPTIONAL = ("defer_refits", "bounds", "sensor", "holidays", "start")

# Where hyperparameters start: where the model says, or where a search on the history finds it best.
Start = Literal["default", "search"]
STARTS = ("default", "search")

# What counts as a day of steps when experts are compared: of a series without seasons, and limits.
LONG_DAY, SHORT_DAY, MOST_DAY = 96, 24, 1440


@dataclass(frozen=True)
class Settings:
    """The settings of a forecaster; `Forecaster` says what each one means."""

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
        if self.horizon > self.update_every:
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
        """Return the model together with the numbers of its features, which are tuned as one.

        A search on the past has rows that are made already: it leaves these numbers constant.
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
        """Return for how many steps without a reading the model is asked."""
        return default_patience(self.step, self.periods)

    @property
    def mixes(self) -> bool:
        """Return whether the forecast is a mixture of several experts'."""
        return self.guard and self.learn

    @property
    def has_companion(self) -> bool:
        """Return whether a small fit goes along with the model: it knows whether tuning pays.

        A search compares its result with its start; only steps along gradients can go astray.
        """
        return self.mixes and self.tuner is None

    @cached_property
    def day(self) -> int:
        """Return what counts as a day of steps when experts are compared."""
        return min(max(round(min(self.periods, default=LONG_DAY)), SHORT_DAY), MOST_DAY)

    @property
    def look_back(self) -> int:
        """Return how many rows the first fit and a search before it use at most."""
        return self.train_size + (self.validation_size if self.tuner is not None else 0)

    def described(self) -> dict[str, Any]:
        """Return the settings as plain JSON, without those that are optional and not given."""
        plain = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in OPTIONAL or getattr(self, field.name) != field.default
        }
        parts = {name: describe(getattr(self, name)) for name in ("preset", "tuner")}
        seasons = [plain_length(season) for season in self.seasons]
        return plain | parts | {"step": plain_length(self.step), "seasons": seasons}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Settings:
        """Return the settings that `described` gave as plain JSON."""
        try:
            parts = dict(described)
            step = parse_step(parts.pop("step"))
            seasons = parse_seasons(parts.pop("seasons", None), step)
            preset = build_shared(upgraded_preset(parts.pop("preset")))
            tuner = build_shared(parts.pop("tuner"))
            return cls(step=step, seasons=seasons, preset=preset, tuner=tuner, **parts)
        except (KeyError, TypeError, InvalidInputError) as error:
            raise StateError(f"settings cannot be read: {error}") from None
