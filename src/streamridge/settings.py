"""What a forecaster was made with: checked once, frozen, and plain enough to be saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from streamridge.arrays import require_count
from streamridge.errors import InvalidInputError, StateError
from streamridge.intervals import require_level
from streamridge.presets import Preset
from streamridge.storage.recipes import build, describe
from streamridge.streams.clock import (
    DAY,
    parse_step,
    parse_zone,
    require_local_step,
    step_name,
)


@dataclass(frozen=True)
class Settings:
    """Says how a forecaster works; see `Forecaster` for what each part means."""

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

    def __post_init__(self) -> None:
        require_local_step(parse_step(self.step), parse_zone(self.tz))
        object.__setattr__(self, "level", require_level(self.level))
        for name in ("horizon", "train_size", "update_every", "warmup"):
            object.__setattr__(self, name, require_count(name, getattr(self, name)))
        for name in ("learn", "guard"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        if self.horizon > self.update_every:
            raise InvalidInputError(
                f"horizon must be at most update_every, {self.update_every}, got {self.horizon}."
            )

    @property
    def day(self) -> int:
        """Return the steps of a day."""
        return DAY // self.step

    def described(self) -> dict[str, Any]:
        """Return the settings as plain JSON."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {"step": step_name(self.step), "preset": describe(self.preset)}

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Settings:
        """Return the settings that were described."""
        try:
            parts = dict(described)
            return cls(
                step=parse_step(parts.pop("step")), preset=build(parts.pop("preset")), **parts
            )
        except (KeyError, TypeError, InvalidInputError) as error:
            raise StateError(f"settings cannot be read: {error}") from None
