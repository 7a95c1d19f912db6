"""Simulated sensors in every state, as the JSON of the service."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

# A Tuesday morning, when readings change from step to step: no test depends on the time of day.
BEGIN = datetime(2026, 11, 17, 7, 40, 40, tzinfo=UTC).timestamp()
STEP = 900
DAY = 86_400
WEEK = 7 * DAY
LEVEL = 0.9
ZONE = "Europe/Amsterdam"
UNIT = "veh/15min"
STATES = (
    "good", "stale", "silent", "constant", "zero", "implausible", "degraded", "rebuilt", "new",
)  # fmt: skip
# Road, its first position, its direction, and the kilometres at which it has sensors.
ROADS = (
    ("A2", (52.30, 4.95), (-0.0085, 0.004), (31.2, 33.0, 35.1, 37.4, 39.9, 42.3, 44.8, 47.1, 49.5)),
    ("A10", (52.335, 4.80), (0.0035, 0.011), (2.1, 4.0, 6.2, 8.8, 11.3, 13.9, 16.0, 18.4, 20.7)),
    ("A9", (52.29, 4.78), (0.004, 0.0145), (1.5, 3.7, 5.9, 8.0, 10.6, 13.1, 15.4, 17.2)),
    ("N201", (52.24, 4.83), (0.0015, 0.0125), (20.4, 22.7, 25.0, 27.6, 30.1, 32.8)),
    ("S100", (52.368, 4.885), (0.003, 0.0042), (0.4, 1.2, 2.0, 2.9, 3.7, 4.6, 5.5, 6.1)),
)
PLANNED = {
    "A2-35.1": ("good", ""),
    "A10-11.3": ("implausible", "the last reading is far outside the sensor's usual range"),
    "A10-20.7": ("constant", "52 equal readings in a row"),
    "A9-1.5": ("degraded", "the last refit failed: K + regularization * I has no Cholesky factor"),
    "A9-13.1": ("rebuilt", "the stored state was damaged and was rebuilt from the readings"),
    "A9-17.2": ("silent", "no reading for 31 hours"),
    "S100-0.4": ("zero", "104 equal readings in a row"),
    "S100-4.6": ("new", "there are too few readings for a model yet"),
    "S100-5.5": ("new", "there are too few readings for a model yet"),
    "S100-6.1": ("new", "there are too few readings for a model yet"),
}
# A failed line: every sensor of this road has been silent for this many hours.
DEAD_ROAD, DEAD_HOURS = "N201", 3
RATIOS = {"A2-35.1": 2.31, "A10-6.2": 1.84, "A9-1.5": 1.72, "S100-2.9": 1.46, "A2-47.1": 1.31}
SCALES = tuple(f"drifting.inverse_scales[{i}]" for i in range(30))
PLAIN = ("drifting.rate", "regularization", "day_forgetting", "week_forgetting")
WEIGHTS = ("weight.drifting", "weight.linear")
LIMITS = {
    "drifting.rate": [1e-6, 1e-2],
    "regularization": [1e-3, 1e2],
    "day_forgetting": [0.01, 2.0],
    "week_forgetting": [0.01, 2.0],
    **{name: [1e-6, 1e2] for name in SCALES},
    **{name: [0.0, 1.0] for name in WEIGHTS},
}


def iso(seconds: float) -> str:
    """Return a time in the format of the service."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass
class Sensor:
    """A simulated sensor."""

    name: str
    label: str
    group: str | None
    position: list[float] | None
    state: str = "good"
    reason: str = ""
    ratio: float = 1.0
    level: float = 200.0
    silent_for: float = 0.0
    created: float = 0.0
    holes: set[int] = field(default_factory=set)

    def measured(self, at: int, newest: float) -> float | None:
        """Return the reading of a step, or None if there is none."""
        if at > newest - self.silent_for or at < self.created or at // STEP in self.holes:
            return None
        if self.state == "zero" and at > newest - 26 * 3600:
            return 0.0
        if self.state == "constant" and at > newest - 52 * STEP:
            return 96.0
        noise = sum(_draw(self.name, at // STEP - i) * 0.75**i for i in range(6))
        return round(max(0.0, self.course(at) * (1 + 0.055 * noise)))

    def course(self, at: float) -> float:
        """Return the typical daily profile, which is lower on weekends."""
        local = at + 3600
        hour = (local % DAY) / 3600
        weekend = datetime.fromtimestamp(local, UTC).weekday() >= 5
        rush = _bump(hour, 8.0, 1.6) * (0.35 if weekend else 1.0)
        home = _bump(hour, 17.2, 2.1) * (0.7 if weekend else 1.1)
        return self.level * (0.08 + 0.55 * _bump(hour, 13.5, 5.0) + 0.75 * rush + 0.8 * home)

    def forecast(self, at: int, newest: float) -> dict[str, Any]:
        """Return the forecast of a step, issued one step ahead."""
        before = self.measured(at - STEP, newest)
        typical = self.course(at)
        drift = 0.0 if before is None else 0.7 * (before - self.course(at - STEP))
        value = max(0.0, typical + drift + 0.03 * self.ratio * typical * _draw(self.name + "f", at))
        half = 4 + 0.11 * math.sqrt(self.ratio) * typical * (1.0 if before is not None else 1.9)
        source = (
            "model" if before is not None and self.state not in ("new", "degraded") else "seasonal"
        )
        return {
            "value": round(value, 3),
            "lower": round(max(0.0, value - half), 3),
            "upper": round(value + half, 3),
            "source": source,
        }


def _bump(hour: float, middle: float, width: float) -> float:
    return math.exp(-(((hour - middle) / width) ** 2))


@lru_cache(maxsize=200_000)
def _draw(name: str, step: int) -> float:
    return random.Random(f"{name} {step}").gauss(0, 1)


def make_sensors(newest: float) -> list[Sensor]:
    """Return forty sensors on five roads; one road is silent, others have single problems."""
    sensors = []
    for road, (lat, lon), (north, east), kilometres in ROADS:
        for i, km in enumerate(kilometres):
            name = f"{road}-{km}"
            state, reason = PLANNED.get(name, ("good", ""))
            bend = 0.006 * math.sin(1.1 * i)
            sensor = Sensor(
                name,
                f"{road} km {km}",
                road,
                [round(lat + north * i + bend * east * 60, 5), round(lon + east * i - bend, 5)],
                state,
                reason,
                RATIOS.get(name, round(0.78 + 0.4 * random.Random(name).random(), 2)),
                level=120 + 420 * random.Random(name + "level").random(),
            )
            _trouble(sensor, newest)
            sensors.append(sensor)
    return sensors


def _trouble(sensor: Sensor, newest: float) -> None:
    """Give a sensor the gaps that belong to its state."""
    last = int(newest) // STEP
    if sensor.group == DEAD_ROAD:
        sensor.state, sensor.reason = "stale", f"no reading for {60 * DEAD_HOURS} minutes"
        sensor.silent_for = DEAD_HOURS * 3600
    if sensor.state == "silent":
        sensor.silent_for = 31 * 3600
    if sensor.state == "new":
        hours = {"S100-4.6": 12, "S100-5.5": 24, "S100-6.1": 47}[sensor.name]
        sensor.created = newest - hours * 3600
    if sensor.name == "A2-35.1":
        sensor.holes = set(range(last - 58, last - 49)) | {last - 20}
    elif random.Random(sensor.name + "holes").random() < 0.3:
        start = last - random.Random(sensor.name + "start").randrange(10, 180)
        sensor.holes = set(range(start, start + 7))


class Roads:
    """The answers for all requests of the page, at a time that can be advanced."""

    def __init__(self, sensors: list[Sensor] | None = None, *, step: float = STEP) -> None:
        self.step = step
        self._began = time.monotonic()
        self.newest = (BEGIN - 40) // STEP * STEP
        self.sensors = make_sensors(self.newest) if sensors is None else sensors
        self.clock_warning: str | None = None
        self.state, self.reasons = "degraded", ["6 sensors of N201 are stale", "1 refit failed"]
        self.events = [
            _event(1, 3300, "retuned", "A2-31.2", "refitted; the hyperparameters were updated"),
            _event(2, 3100, "retuned", "A10-2.1", "refitted; the hyperparameters were updated"),
            _event(3, 2900, "retuned", "A10-4.0", "refitted; the hyperparameters were updated"),
            _event(
                4,
                2800,
                "refused",
                None,
                "14 rows: sr-no-offset, time must have an offset, got 2026-11-17T05:15",
            ),
            _event(5, 2500, "rebuilt", "A9-13.1", PLANNED["A9-13.1"][1]),
            _event(6, 2100, "implausible", "A10-11.3", PLANNED["A10-11.3"][1]),
            _event(7, 1500, "degraded", "A9-1.5", PLANNED["A9-1.5"][1]),
            _event(8, 900, "good", "A2-49.5", ""),
            _event(9, 420, "constant", "A10-20.7", PLANNED["A10-20.7"][1]),
            _event(10, 240, "retuned", "A2-44.8", "refitted; the hyperparameters were updated"),
        ]

    def now(self) -> float:
        """Return the time of the service: it passes from `BEGIN` on."""
        return BEGIN + time.monotonic() - self._began

    def named(self, name: str) -> Sensor | None:
        """Return a sensor by name."""
        return next((each for each in self.sensors if each.name == name), None)

    def summary(self) -> dict[str, Any]:
        """Return the state of the service and the counts by state."""
        counts = {state: sum(each.state == state for each in self.sensors) for state in STATES}
        heard = [each.measured(int(self.newest), self.newest) is not None for each in self.sensors]
        now = self.now()
        return {
            "state": self.state,
            "reasons": self.reasons,
            "now": iso(now),
            "version": "0.2.0",
            "step_seconds": self.step,
            "horizon": 4,
            "level": LEVEL,
            "sensors": counts,
            "total": len(self.sensors),
            "newest": iso(self.newest) if self.sensors else None,
            "newest_age_seconds": round(now - self.newest, 1) if self.sensors else None,
            "last_step": {
                "time": iso(self.newest),
                "received": sum(heard),
                "expected": len(self.sensors),
            },
            "refused_last_hour": 14,
            "days_left": 812.0,
            "memory": {"held": 812_000_000, "limit": 8_000_000_000},
            "clock_warning": self.clock_warning,
            "zone": ZONE,
            "error": {"now": 0.93},
        }

    def item(self, sensor: Sensor) -> dict[str, Any]:
        """Return a sensor as a row of the list."""
        at = int(self.newest - sensor.silent_for)
        at -= at % STEP
        while sensor.measured(at, self.newest) is None and at > self.newest - WEEK:
            at -= STEP
        share = min(0.6, round(0.1 * sensor.ratio**1.6, 3))
        young = sensor.state in ("new", "silent")
        return {
            "id": sensor.name,
            "label": sensor.label,
            "state": sensor.state,
            "reason": sensor.reason or None,
            "step_seconds": self.step,
            "newest": iso(at),
            "value": sensor.measured(at, self.newest),
            "unit": UNIT,
            "zone": ZONE,
            "position": sensor.position,
            "group": sensor.group,
            "error": None if young else round(0.05 * sensor.level * sensor.ratio, 2),
            "error_ratio": None if young else sensor.ratio,
            "outside": None if young else share,
            "trend": "up" if sensor.ratio > 1.25 else "down" if sensor.ratio < 0.85 else "flat",
            "forecast": {
                "time": iso(self.newest + STEP),
                **sensor.forecast(int(self.newest) + STEP, self.newest),
            },
        }

    def listed(self, state: str, query: str, start: int, limit: int) -> dict[str, Any]:
        """Return a page of the list, worst first."""
        rows = [self.item(each) for each in self.sensors if state in ("", each.state)]
        wanted = query.casefold()
        rows = [row for row in rows if wanted in f"{row['id']} {row['label']}".casefold()]
        rows.sort(key=lambda row: -(row["error_ratio"] or 0))
        rest = start + limit < len(rows)
        return {
            "items": rows[start : start + limit],
            "cursor": str(start + limit) if rest else None,
            "total": len(rows),
        }

    def detail(self, sensor: Sensor) -> dict[str, Any]:
        """Return the details of one sensor."""
        path = self.tuning(sensor)
        last = path["items"][-1] if path["items"] else {"values": {}, "experts": {}}
        return {
            **self.item(sensor),
            "declared": {"label": sensor.label, "zone": ZONE, "unit": UNIT},
            "neighbours": self.neighbours(sensor),
            "fit": {"at": path["last"], "next": path["next"], "seq": 4_711},
            "experts": last["experts"],
            "hyperparameters": last["values"],
            "frozen": path["frozen"],
            "at_bound": path["at_bound"],
        }

    def neighbours(self, sensor: Sensor) -> dict[str, Any] | None:
        """Return whom a sensor of a group listens to: the next two of the group."""
        if sensor.group is None:
            return None
        others = [each for each in self.sensors if each.group == sensor.group and each != sensor]
        strengths = zip(others, (0.31, 0.12), strict=False)
        items = [{"sensor": each.name, "strength": size} for each, size in strengths]
        return {"items": items, "error_ratio": 0.94}

    def history(self, sensor: Sensor, start: float, end: float) -> dict[str, Any]:
        """Return measured values with their forecasts."""
        first = math.ceil(start / STEP) * STEP
        steps = range(int(first), math.ceil(min(end, self.newest + 1)), STEP)
        rows = [self._past(sensor, at) for at in steps if at >= sensor.created]
        return {"sensor": sensor.name, "lead": 1, "step_seconds": self.step, "items": rows}

    def _past(self, sensor: Sensor, at: int) -> dict[str, Any]:
        forecast = sensor.forecast(at, self.newest)
        actual = sensor.measured(at, self.newest)
        odd = sensor.state == "implausible" and (self.newest - at) // STEP in (0, 9, 10, 31)
        return {
            "time": iso(at),
            "actual": 9214.0 if odd else actual,
            "status": "implausible" if odd else "missing" if actual is None else "good",
            "forecast": forecast["value"],
            "lower": forecast["lower"],
            "upper": forecast["upper"],
            "source": forecast["source"],
            "issued_at_seq": at // STEP,
        }

    def forecasts(self, sensor: Sensor) -> dict[str, Any]:
        """Return the next four forecasts."""
        items = []
        for lead in range(1, 5):
            at = int(self.newest) + lead * STEP
            made = sensor.forecast(at, self.newest)
            wider = (made["upper"] - made["value"]) * (1 + 0.18 * (lead - 1))
            items.append(
                {
                    "time": iso(at),
                    "lead": lead,
                    "value": made["value"],
                    "lower": max(0.0, made["value"] - wider),
                    "upper": made["value"] + wider,
                }
            )
        source = sensor.forecast(int(self.newest) + STEP, self.newest)["source"]
        return {
            "sensor": sensor.name,
            "seq": int(self.newest) // STEP,
            "source": source,
            "items": items,
            "reason": None if source == "model" else sensor.reason or "there is no model yet",
        }

    def gaps(self, state: str, start: int, limit: int, first: float, hours: int) -> dict[str, Any]:
        """Return the number of readings in each hour, one row per sensor."""
        rows = [each for each in self.sensors if state in ("", each.state)]
        page = rows[start : start + limit]
        items = [
            {
                "id": each.name,
                "label": each.label,
                "group": each.group,
                "step_seconds": self.step,
                "hours": [self._received(each, first + i * 3600) for i in range(hours)],
            }
            for each in page
        ]
        more = start + limit < len(rows)
        return {
            "items": items,
            "from": iso(first),
            "hours": hours,
            "cursor": str(start + limit) if more else None,
            "total": len(rows),
        }

    def _received(self, sensor: Sensor, hour: float) -> int | None:
        if hour + 3600 <= sensor.created:
            return None
        steps = range(int(hour), int(hour) + 3600, STEP)
        return sum(sensor.measured(at, self.newest) is not None for at in steps)

    def tuning(self, sensor: Sensor) -> dict[str, Any]:
        """Return the path of the hyperparameters over thirty days."""
        names = [*WEIGHTS, PLAIN[0], *SCALES, *PLAIN[1:]]
        known = {"sensor": sensor.name, "names": names, "limits": LIMITS, "weights": list(WEIGHTS)}
        if sensor.state == "new":
            return {
                **known, "learned": names, "items": [], "last": None, "next": None,
                "at_bound": {}, "frozen": [],
            }  # fmt: skip
        last = self.newest - 5.4 * 3600
        items = [self._refit(sensor, i, last - (29 - i) * DAY) for i in range(30)]
        bound = {"week_forgetting": "lower"} if sensor.ratio > 1.4 else {}
        return {
            **known,
            "learned": [name for name in names if name != "drifting.rate"],
            "items": items,
            "last": iso(last),
            "next": iso(last + DAY),
            "at_bound": bound,
            "frozen": ["drifting.rate"],
        }

    def _refit(self, sensor: Sensor, i: int, at: float) -> dict[str, Any]:
        walk = [sum(_draw(f"{sensor.name}{k}", j) for j in range(i + 1)) for k in range(8)]
        share = 1 / (1 + math.exp(-0.12 * walk[0] - 0.03 * i))
        at_limit = sensor.ratio > 1.4
        values = {
            "weight.drifting": share,
            "weight.linear": 1 - share,
            "drifting.rate": 3e-4,
            "regularization": min(100.0, 2.0 * math.exp(0.13 * walk[1])),
            "day_forgetting": min(2.0, 0.1 * math.exp(0.09 * walk[2])),
            "week_forgetting": max(0.01, 0.1 * math.exp(-0.1 * i)) if at_limit else 0.1,
        }
        for k, name in enumerate(SCALES):
            turn = 0.08 * _draw(f"{sensor.name}s{k}", 0) * i + 0.1 * walk[3 + k % 5] * 0.4
            values[name] = 0.2 * math.exp(-0.13 * (k % 16) + turn)
        model = min(0.97, 0.55 + 0.012 * i + 0.02 * _draw(sensor.name + "e", i))
        week = (1 - model) * 0.55
        day = (1 - model) * 0.3
        experts = {
            "model": model, "start": 0.0, "week": week, "day": day, "last": 1 - model - week - day,
        }  # fmt: skip
        return {"time": iso(at), "kind": "refit", "values": values, "experts": experts}


def _event(number: int, ago: float, kind: str, sensor: str | None, reason: str) -> dict[str, Any]:
    return {
        "id": number,
        "time": iso(BEGIN - ago),
        "kind": kind,
        "sensor": sensor,
        "reason": reason,
    }
