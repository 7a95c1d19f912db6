"""The settings of a forecaster: checked once, frozen, and plain enough to be saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, StateError
from streamridge.forecaster.bands import require_level
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.recipes import build, describe
from streamridge.series.clock import (
    DAY,
    parse_step,
    parse_zone,
    require_local_step,
    step_name,
)
from streamridge.series.holidays import PlainHolidays, parse_holidays
from streamridge.tuners.base import Tuner

# Settings that the first saved forecasters did not have: left out where they are not given.
OPTIONAL = ("defer_refits", "sensor", "holidays")


@dataclass(frozen=True)
class Settings:
    """The settings of a forecaster; `Forecaster` says what each one means."""

    step: timedelta
    preset: Preset
    horizon: int
    level: float
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
    sensor: str | None = None
    holidays: PlainHolidays | None = None

    def __post_init__(self) -> None:
        require_local_step(parse_step(self.step), parse_zone(self.tz))
        object.__setattr__(self, "level", require_level(self.level))
        for name in ("horizon", "train_size", "update_every", "warmup", "validation_size"):
            object.__setattr__(self, name, require_count(name, getattr(self, name)))
        for name in ("tune_every", "seed"):
            object.__setattr__(self, name, require_count(name, getattr(self, name), least=0))
        for name in ("learn", "guard", "defer_refits"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        if self.horizon > self.update_every:
            raise InvalidInputError(
                f"horizon must be at most update_every ({self.update_every}), got {self.horizon}."
            )
        if self.tuner is not None:
            self._require_tuner(self.tuner)
        if self.sensor is not None and not (isinstance(self.sensor, str) and self.sensor):
            raise InvalidInputError(f"sensor must be a name, or None, got {self.sensor!r}.")
        if self.holidays is not None:
            object.__setattr__(self, "holidays", parse_holidays(self.holidays) or None)

    def _require_tuner(self, tuner: Tuner) -> None:
        if not (hasattr(tuner, "tune") and hasattr(tuner, "trials")):
            raise InvalidInputError(f"tuner must be one of streamridge.tuners, got {tuner!r}.")
        if not self.learn:
            raise InvalidInputError("learn must be True with a tuner, got False. Leave one out.")
        tuner.require_space(self.preset.model.space)

    @property
    def day(self) -> int:
        """Return the number of steps in a day."""
        return DAY // self.step

    @property
    def look_back(self) -> int:
        """Return how many rows the first fit and a search before it use at most."""
        return self.train_size + (self.validation_size if self.tuner is not None else 0)

    def described(self) -> dict[str, Any]:
        """Return the settings as plain JSON, without those that are optional and not given."""
        every = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain = {name: each for name, each in every.items() if name not in OPTIONAL or each}
        parts = {name: describe(getattr(self, name)) for name in ("preset", "tuner")}
        return plain | parts | {"step": step_name(self.step)}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Settings:
        """Return the settings that `described` gave as plain JSON.

        Equal ones are one object, and those that differ by their sensor alone share their parts.
        """
        parts = dict(described)
        sensor = parts.pop("sensor", None)
        shared = _built(json.dumps(parts, sort_keys=True))
        return shared if sensor is None else replace(shared, sensor=sensor)

    @classmethod
    def _of(cls, parts: dict[str, Any]) -> Settings:
        try:
            step = parse_step(parts.pop("step"))
            built = {name: build(parts.pop(name)) for name in ("preset", "tuner")}
            return cls(step=step, **built, **parts)
        except (KeyError, TypeError, InvalidInputError) as error:
            raise StateError(f"settings cannot be read: {error}") from None


@lru_cache(maxsize=256)  # a fleet of forecasters has few different settings
def _built(text: str) -> Settings:
    return Settings._of(json.loads(text))
