"""One sensor, followed through its log: a forecaster, and where in the log it stands.

A tracker takes readings as they arrive. Its state is a function of the sensor's log alone: of the
readings in the order of `order.in_order`, and of the cuts at which the forecaster was refitted or
made anew. So it can be dropped at any time, and be made again from its last snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import fsum
from typing import Any, Literal

import msgspec
import numpy as np

from streamridge.errors import FitError, InvalidInputError, StreamRidgeError
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.learners.workspace import Workspace
from streamridge.service.fleet.order import Item, in_order, is_late
from streamridge.service.fleet.scores import Scores
from streamridge.service.ledger.records import Action, Cut, Entry, Issued, Kind, SensorRow, Snapshot
from streamridge.service.plan import Declaration, Plan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400_000_000
# For so long after its last reading a sensor is forecast.
FORECAST_FOR = 8 * DAY
# Before any reading.
NEVER = -(1 << 60)


class OutOfOrderError(Exception):
    """A reading belongs before one that was taken: the tracker must be made again from its log."""


class Standing(msgspec.Struct, frozen=True):
    """What is known of a sensor beside its forecaster; stored with it as JSON.

    Parameters
    ----------
    newest
        Time of the newest step that was taken.
    first
        Time of the first.
    value
        The last reading.
    equal
        How many readings in a row were equal, the last one included.
    doubted
        Whether the last reading was implausible.
    fitted
        Whether there is a model.
    failed
        Why the last refit failed, if it did.
    rebuilt
        Whether its state was damaged, and made again from its readings, since the last refit.
    scores
        How well it is forecast.
    """

    newest: int = NEVER
    first: int = NEVER
    value: float | None = None
    equal: int = 0
    doubted: bool = False
    fitted: bool = False
    failed: str | None = None
    rebuilt: bool = False
    scores: Scores = Scores()

    def after(self, time: int, value: float | None, scores: Scores, *, doubted: bool) -> Standing:
        """Return what is known after one more step."""
        first = time if self.first == NEVER else self.first
        if value is None:
            return msgspec.structs.replace(self, newest=time, first=first, doubted=False)
        equal = self.equal + 1 if value == self.value else 1
        return msgspec.structs.replace(
            self, newest=time, first=first, value=value, equal=equal, doubted=doubted, scores=scores
        )


class Ripe(msgspec.Struct, frozen=True):
    """A forecaster as it was at a cut that can be made now."""

    cut: Cut
    state: bytes
    standing: Standing


class Tracker:
    """One sensor: its forecaster, and where in its log it stands.

    Parameters
    ----------
    sensor
        The sensor as declared.
    plan
        How the service forecasts.
    """

    def __init__(self, sensor: SensorRow, plan: Plan) -> None:
        self.sensor, self.plan = sensor, plan
        self.declared = msgspec.json.decode(sensor.declared, type=Declaration)
        self.rule = self.declared.rule or plan.rule
        self.settings = plan.settings(self.declared)
        self.forecaster = Forecaster.of(self.settings)
        self.standing = Standing()
        self.seq = 0  # the last arrival number that was taken
        self.cut: Cut | None = None
        # Whether a new forecaster must be made of all readings: "start" keeps hyperparameters.
        self.anew: Literal["", "start", "reset"] = ""
        self.refused: dict[int, str] = {}  # what could not be done since the cut, and why
        self.rests = False  # its rows are not in memory
        self._open: dict[int, Entry] = {}  # readings of the newest step, by time, under a rule
        self._ripening: Ripe | None = None
        self._stagger = plan.stagger(sensor.name)

    @classmethod
    def resumed(cls, sensor: SensorRow, plan: Plan, snapshot: Snapshot) -> Tracker:
        """Return the tracker as it stood at a cut."""
        tracker = cls(sensor, plan)
        tracker.forecaster = Forecaster.from_bytes(snapshot.state)
        tracker.standing = msgspec.json.decode(snapshot.summary, type=Standing)
        tracker.cut = snapshot.cut
        tracker.seq = snapshot.cut.seq
        return tracker

    @property
    def fit(self) -> int:
        """Return the arrival number of the cut in force; zero before the first."""
        return 0 if self.cut is None else self.cut.seq

    @property
    def newest(self) -> int:
        """Return the time of the newest step that has a reading, taken or not yet combined."""
        if not self._open:
            return self.standing.newest
        return max(self.standing.newest, self.plan.step_of(max(self._open), self.rule))

    def catch_up(self, items: Iterable[Item]) -> list[Issued]:
        """Take all that arrived since the cut, in its order; return the forecasts made.

        What was asked for and could not be done is passed over, as it was then.
        """
        known = sorted(items, key=lambda item: item.seq)
        waiting = {item.seq for item in known}
        issued = []
        for item in in_order(known, self.newest, self.plan, self.rule):
            waiting.discard(item.seq)
            try:
                issued += self._taken(item, waiting)
            except StreamRidgeError as error:
                self.seq = max(self.seq, item.seq)
                self.refused[item.seq] = error.reason
        return issued

    def take(self, item: Item) -> list[Issued]:
        """Take what has just arrived, and return the forecast made of it, if any.

        Raises `OutOfOrderError`, with nothing changed, if it belongs before what was taken.
        """
        if isinstance(item, Entry) and item.kind == Kind.LIVE:
            step, newest = self.plan.step_of(item.time, self.rule), self.newest
            after_cut = self.cut is None or step > self.cut.until
            if step < newest and after_cut and not is_late(item, step, newest, self.plan):
                raise OutOfOrderError
        return self._taken(item, set())

    def _taken(self, item: Item, waiting: set[int]) -> list[Issued]:
        """Take one item; those whose numbers are `waiting` have arrived, and come after it."""
        if isinstance(item, Entry) and item.kind == Kind.LIVE and self.rule is not None:
            return self._combined(item, waiting)
        self.seq = max(self.seq, item.seq)
        if isinstance(item, Action):
            self.act(item)
            return []
        if item.kind == Kind.LIVE:
            return self._observed(item, waiting)
        if item.kind != Kind.HELD:
            self.anew = self.anew or "start"
        return []

    def _observed(self, entry: Entry, waiting: set[int]) -> list[Issued]:
        """Take the reading of a step, the next one or an earlier one."""
        step = self.plan.step_of(entry.time, self.rule)
        if step > self.standing.newest:
            self._learn(step, entry.value, waiting)
            return [self.issued(entry.seq)]
        self.forecaster.observe(stamp(step), entry.value)  # late, twice, or another value
        return []

    def _combined(self, entry: Entry, waiting: set[int]) -> list[Issued]:
        """Take a reading within a step; the first one of a later step ends the one before."""
        step, newest, issued = self.plan.step_of(entry.time, self.rule), self.newest, []
        if step > newest and self._open:
            value = combined(list(self._open.values()), self.rule)
            self._open = {}
            self._learn(newest, value, {*waiting, entry.seq})
            issued = [self.issued(entry.seq)]
        self.seq = max(self.seq, entry.seq)
        if step >= newest:  # else its step has been combined
            self._open[entry.time] = entry
        return issued

    def _learn(self, step: int, value: float | None, waiting: set[int]) -> None:
        """Learn from the reading of the next step; at times, keep the forecaster for a cut."""
        self.rests = False
        forecaster, scores = self.forecaster, self.standing.scores
        ahead = forecaster.predict() if forecaster.has_readings else None
        doubts = forecaster.counts.get("implausible", 0)
        forecaster.observe(stamp(step), value)
        doubted = forecaster.counts.get("implausible", 0) > doubts
        if ahead is not None and value is not None and not doubted and _begins(ahead, step):
            outside = not ahead.lower[0] <= value <= ahead.upper[0]
            error = float(value - ahead.value[0])
            scores = scores.after(error, outside=outside, day=max(DAY // self.plan.step, 1))
        self.standing = self.standing.after(step, value, scores, doubted=doubted)
        if self._passes_a_cut(step):
            self._ripening = self._as_now(step, waiting)

    def issued(self, seq: int) -> Issued:
        """Return the forecast of the next steps, made at an arrival number."""
        forecast = self.forecaster.predict()
        first = int(forecast.time[0].astype("M8[us]").astype(np.int64))
        if not np.isfinite(forecast.value).all():
            return Issued(seq, self.sensor.id, first, self.fit, "none", (), (), ())
        numbers = (forecast.value, forecast.lower, forecast.upper)
        values, lower, upper = (tuple(each.tolist()) for each in numbers)
        return Issued(seq, self.sensor.id, first, self.fit, forecast.source, values, lower, upper)

    def ahead_of(self, now: int) -> Issued | None:
        """Return the forecast of the steps after a moment, as if nothing came until then.

        This changes nothing; None if the next forecast is of a later moment already, or the last
        reading too long ago.
        """
        behind = (now - self.standing.newest) // self.plan.step
        too_late = now - self.standing.newest > FORECAST_FOR
        if behind < 1 or too_late or not self.forecaster.has_readings:
            return None
        copy = Tracker(self.sensor, self.plan)
        copy.cut = self.cut
        copy.forecaster = Forecaster.from_bytes(self.forecaster.to_bytes())
        copy.forecaster.observe(stamp(self.standing.newest + behind * self.plan.step), None)
        return copy.issued(self.seq)

    def _passes_a_cut(self, step: int) -> bool:
        """Return whether the forecaster is due for a refit, or to be kept, at this step."""
        every = self.settings.update_every
        last = self._ripening.cut if self._ripening is not None else self.cut
        since = self.standing.first if last is None else last.until
        now, then = step // self.plan.step, since // self.plan.step
        turn = (now + self._stagger) // every * every - self._stagger  # the latest of its own
        return turn - then >= every // 2

    def _as_now(self, step: int, waiting: set[int]) -> Ripe:
        """Return the forecaster as it is after a step, for a cut."""
        kind = "refit" if self.forecaster.has_model or self.forecaster.refit_due else "kept"
        left = tuple(sorted(each for each in waiting if each <= self.seq))
        cut = Cut(self.sensor.id, self.seq, step, kind, left)
        return Ripe(cut, self.to_bytes(), self.standing)

    def as_now(self) -> Ripe:
        """Return the forecaster as it is now, for a cut after something was asked for."""
        left = {each.seq for each in self._open.values()}
        ripe = self._as_now(self.standing.newest, left)
        return msgspec.structs.replace(ripe, cut=msgspec.structs.replace(ripe.cut, kind="kept"))

    @property
    def ripe(self) -> Ripe | None:
        """Return the cut that can be made now, if any: nothing can come before it any more."""
        ripening = self._ripening
        if ripening is None or self.newest - ripening.cut.until <= self.plan.open_for:
            return None
        return ripening

    def rest(self) -> None:
        """Give back the memory of what can be made again."""
        self.forecaster.release()
        self.rests = True

    def to_bytes(self) -> bytes:
        """Return the forecaster as bytes, which depend on the log alone: not on seconds spent."""
        return without_costs(self.forecaster).to_bytes()

    def act(self, action: Action) -> None:
        """Do what was asked for; if it cannot be done, an error says why, and nothing changes."""
        body: dict[str, Any] = msgspec.json.decode(action.body)
        match action.kind:
            case "set":
                self.forecaster.set(**body["values"])
            case "rollback":
                space = self.settings.model.space
                self.forecaster.set(**space.named(space.values))
            case "freeze":
                self.forecaster.freeze(*body["names"])
            case "unfreeze":
                self.forecaster.unfreeze(*body["names"])
            case "exclude":
                self.forecaster.exclude(body["start"], body["end"])
            case "retune":
                refit(self.forecaster)
            case "reset":
                self.anew = "reset"
            case "configure" | "plan":
                if self.forecaster.has_readings:
                    self.anew = self.anew or "start"
            case other:
                raise InvalidInputError(f"action must be one that is known, got {other!r}.")

    def tuning(self) -> dict[str, Any]:
        """Return hyperparameters, which of them stand at a bound, and the weights of experts."""
        return tuning_of(self.forecaster)


def stamp(time: int) -> datetime:
    """Return a time of the service as a moment in UTC."""
    return EPOCH + timedelta(microseconds=time)


def combined(entries: list[Entry], rule: str | None) -> float | None:
    """Return the one value of the readings of a step, whatever order they came in.

    Examples
    --------
    >>> two = [Entry(1, 1, time=5, value=2.0, received=0), Entry(2, 1, 0, 1.0, 0)]
    >>> combined(two, "last"), combined(two, "sum"), combined(two, "mean")
    (2.0, 3.0, 1.5)
    """
    read = [(entry.time, entry.value) for entry in entries if entry.value is not None]
    if not read:
        return None
    if rule == "last":
        return max(read)[1]
    total = fsum(value for _, value in read)
    return total / len(read) if rule == "mean" else total


def _begins(forecast: Forecast, step: int) -> bool:
    """Return whether a forecast begins at a step: not if there was a gap before it."""
    return bool(forecast.time[0] == np.datetime64(step, "us"))


def refit(forecaster: Forecaster, workspace: Workspace | None = None) -> None:
    """Refit, or raise; a forecaster by itself counts a failure, and goes on with its fit."""
    failures = forecaster.counts.get("failed_refits", 0)
    forecaster.refit(workspace)
    if forecaster.counts.get("failed_refits", 0) > failures:
        raise FitError("the equations could not be solved")


def without_costs(forecaster: Forecaster) -> Forecaster:
    """Return a forecaster whose seconds spent so far are forgotten: no two runs have the same."""
    costs = forecaster.costs
    costs.tuning = costs.fitting = costs.predicting = 0.0
    return forecaster


def tuning_of(forecaster: Forecaster) -> dict[str, Any]:
    """Return hyperparameters, which of them stand at a bound, and the weights of experts."""
    return {
        "values": forecaster.hyperparameters,
        "experts": forecaster.experts,
        "at_bound": forecaster.active_bounds,
        "frozen": list(forecaster.frozen),
    }
