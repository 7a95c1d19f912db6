"""The corrections of one group: a function of the group's steps and of its sensors' own forecasts.

The forecasters of the sensors do not know of them, so the log of each sensor stays its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from streamridge import Neighbours
from streamridge.errors import StateError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import GroupStep, IssuedForecast
from streamridge_service.plan import NEVER, Declaration, Plan

# Forecasts of a group, by arrival number.
Forecasts = Mapping[int, IssuedForecast]


class Listening(msgspec.Struct, frozen=True):
    """Whom a sensor listens to, and how much: the strongest first."""

    # Numbers of sensors, with how far each moves forecasts as a rule, in expected errors.
    neighbours: tuple[tuple[int, float], ...] = ()
    error_ratio: float = (
        1.0  # the errors of corrected forecasts, one step ahead, over those of its own
    )


class _State(msgspec.Struct, frozen=True, array_like=True):
    members: tuple[int, ...]
    newest: int
    layer: bytes


class GroupCorrections:
    """The corrections of a group of sensors that share the length of their steps."""

    def __init__(self, step: int, layer: Neighbours) -> None:
        self._step, self._layer = step, layer
        self.members: tuple[int, ...] = ()
        self.newest = NEVER  # time of the last step

    @classmethod
    def of(cls, plan: Plan) -> GroupCorrections:
        """Return new corrections of sensors with a plan."""
        return cls(plan.step, Neighbours.of(plan.settings(Declaration())))

    @property
    def layout(self) -> tuple[int, int, float]:
        """Return the number of steps ahead, the steps of a day, and the level."""
        return self._layer.horizon, self._layer.day, self._layer.level

    def take(self, step: GroupStep, forecasts: Forecasts) -> tuple[IssuedForecast, ...]:
        """Learn from a step; return the forecasts after it that are corrected."""
        self._resize(tuple(each.sensor for each in step.members))
        if self.newest != NEVER:
            self._layer.skip((step.time - self.newest) // self._step - 1)
        self.newest = step.time
        readings = [np.nan if each.value is None else each.value for each in step.members]
        own = self._stacked([forecasts.get(each.own) for each in step.members])
        self._layer.observe(np.array(readings, dtype=np.float64), *own)
        self._layer.choose()
        following = [forecasts.get(each.following) for each in step.members]
        values, lower, upper = self._layer.corrected(*self._stacked(following))
        near = zip(values, lower[..., 0], upper[..., 0], strict=True)
        corrected = [
            issued if issued is None else _with_near(issued, *map(np.ndarray.tolist, numbers))
            for issued, numbers in zip(following, near, strict=True)
        ]
        pairs = zip(following, corrected, strict=True)
        return tuple(new for before, new in pairs if new is not None and new != before)

    def _resize(self, members: tuple[int, ...]) -> None:
        if members != self.members:
            places = {sensor: place for place, sensor in enumerate(self.members)}
            self._layer.resize([places.get(sensor, -1) for sensor in members])
            self.members = members

    def _stacked(
        self, forecasts: Sequence[IssuedForecast | None]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return near values (n, H) and the ends of their intervals (n, H, 1); NaN for none."""
        near = self._layer.horizon
        stacked = np.full((3, len(forecasts), near), np.nan)
        for place, issued in enumerate(forecasts):
            if issued is not None and len(issued.values) >= near:
                for row, numbers in enumerate((issued.values, issued.lower, issued.upper)):
                    stacked[row, place] = numbers[:near]
        values, lower, upper = stacked
        return values, lower[..., None], upper[..., None]

    def listening(self) -> dict[int, Listening]:
        """Return whom each sensor listens to."""
        ratios = self._layer.error_ratios[:, 0].tolist()
        heard = self._layer.heard(self.members)
        return {
            sensor: Listening(tuple((each, size) for each, size in one.items() if size > 0), ratio)
            for sensor, one, ratio in zip(self.members, heard, ratios, strict=True)
        }

    def to_bytes(self) -> bytes:
        """Return the state, for `from_bytes`."""
        return msgspec.msgpack.encode(_State(self.members, self.newest, self._layer.to_bytes()))

    @classmethod
    def from_bytes(cls, content: bytes, plan: Plan) -> GroupCorrections:
        """Return the corrections of a stored state; raise unless it is of such a plan."""
        try:
            state = msgspec.msgpack.decode(content, type=_State)
        except msgspec.MsgspecError as error:
            raise StateError(f"the state of the group is damaged: {error}.") from None
        group = cls(plan.step, Neighbours.from_bytes(state.layer))
        group.members, group.newest = state.members, state.newest
        if group.layout != cls.of(plan).layout or len(group._layer) != len(group.members):
            raise StateError("the state of the group belongs to other settings.")
        return group


def named_forecasts(
    ledger: Ledger, steps: Sequence[GroupStep], *, corrected: bool = False
) -> dict[int, IssuedForecast]:
    """Return the forecasts that some steps of a group name, by arrival number."""
    sensors = {each.sensor for step in steps for each in step.members}
    if not steps:
        return {}
    start, end = steps[0].time, steps[-1].time + steps[-1].step + 1
    return {
        issued.seq: issued
        for sensor in sorted(sensors)
        for issued in ledger.forecasts(sensor, start=start, end=end, corrected=corrected)
    }


def _with_near(
    issued: IssuedForecast, values: list[float], lower: list[float], upper: list[float]
) -> IssuedForecast:
    """Return a forecast with other numbers at its near steps, unless they are NaN."""
    if values[0] != values[0]:
        return issued
    near = len(values)
    return msgspec.structs.replace(
        issued,
        values=(*values, *issued.values[near:]),
        lower=(*lower, *issued.lower[near:]),
        upper=(*upper, *issued.upper[near:]),
    )
