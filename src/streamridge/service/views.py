"""What is known, as JSON: for the page, for scripts and for dashboards."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec

from streamridge.service.board import LOST, Place
from streamridge.service.fleet.making import limits_of, steps_of
from streamridge.service.fleet.messages import Told
from streamridge.service.fleet.tracker import NEVER
from streamridge.service.intake import is_within
from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import Event, Issued, Kind, SensorRow
from streamridge.service.plan import HOUR, SECOND, Declaration, Plan, Rule

if TYPE_CHECKING:
    from streamridge.service.service import Service

VERSION = version("streamridge")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 24 * HOUR


def iso(time: int | None) -> str | None:
    """Return a time as text, in UTC.

    Examples
    --------
    >>> iso(1_700_000_100_000_000), iso(NEVER)
    ('2023-11-14T22:15:00Z', None)
    """
    if time is None or time == NEVER:
        return None
    return (EPOCH + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")


def summary(service: Service) -> dict[str, Any]:
    """Return the one line of truth, and how many sensors are in which state."""
    now, newest, plan = service.now, service.board.newest, service.plan
    total = sum(1 for _ in service.board.shown)
    step = service.last_step
    jumped = service.clock.jumped // SECOND
    return {
        "state": service.state,
        "reasons": service.reasons,
        "now": iso(now),
        "version": VERSION,
        "step_seconds": plan.step // SECOND,
        "horizon": plan.horizon,
        "level": plan.level,
        "sensors": service.board.counts,
        "total": total,
        "newest": iso(newest),
        "newest_age_seconds": None if newest == NEVER else (now - newest) / SECOND,
        "last_step": step and {"time": iso(step[0]), "received": step[1], "expected": total},
        "refused_last_hour": service.refused_last_hour,
        "days_left": service.days_left,
        "clock_warning": f"The clock jumped by {jumped} seconds." if jumped else None,
        "zone": "UTC",
        "error": {"now": service.board.error},
    }


def item(service: Service, place: Place) -> dict[str, Any]:
    """Return a sensor as lists show it."""
    declared, standing = service.intake.declared(place.sensor), place.standing
    state, reason = service.board.state(place, service.now)
    scores = standing.scores
    return {
        "id": place.sensor.name,
        "label": declared.label,
        "group": declared.group,
        "state": state,
        "reason": reason,
        "newest": iso(standing.newest),
        "value": standing.value,
        "unit": declared.unit,
        "zone": declared.zone or "UTC",
        "position": declared.position,
        "error": scores.error,
        "error_ratio": scores.ratio,
        "outside": scores.outside if scores.count else None,
        "trend": scores.direction,
        "forecast": place.forecast and first_step(place.forecast),
    }


def first_step(issued: Issued) -> dict[str, Any] | None:
    """Return the first step of a forecast; None if there is none."""
    if not issued.values:
        return None
    return {
        "time": iso(issued.time),
        "value": issued.values[0],
        "lower": issued.lower[0],
        "upper": issued.upper[0],
        "source": issued.source,
    }


def steps(issued: Issued, plan: Plan) -> list[dict[str, Any]]:
    """Return the steps of a forecast, each with its lead."""
    numbers = zip(issued.values, issued.lower, issued.upper, strict=True)
    return [
        {
            "time": iso(issued.time + lead * plan.step),
            "lead": lead + 1,
            "value": value,
            "lower": lower,
            "upper": upper,
        }
        for lead, (value, lower, upper) in enumerate(numbers)
    ]


def forecast(service: Service, place: Place, told: Told) -> dict[str, Any]:
    """Return the forecast of a sensor from now on; "none" with a reason if there is none."""
    return issued_forecast(service, place, told.forecast, _why_none(service, place))


def newest_forecast(service: Service, place: Place) -> dict[str, Any]:
    """Return the forecast of a sensor that was issued last; "none" with a reason if none was."""
    return issued_forecast(service, place, place.forecast, _why_none(service, place))


def _why_none(service: Service, place: Place) -> str | None:
    """Return why a sensor is not forecast; None if nothing speaks against it."""
    if place.standing.newest == NEVER:
        return "there is no reading yet"
    if service.now - place.standing.newest > LOST:
        return "there was no reading for more than seven days"
    return None


def issued_forecast(
    service: Service, place: Place, issued: Issued | None, reason: str | None = None
) -> dict[str, Any]:
    """Return a forecast as it was issued; with a reason, that there is none."""
    if issued is None or not issued.values or reason is not None:
        return {
            "sensor": place.sensor.name,
            "seq": 0 if issued is None else issued.seq,
            "source": "none",
            "reason": reason or "none was issued",
            "items": [],
        }
    return {
        "sensor": place.sensor.name,
        "seq": issued.seq,
        "source": issued.source,
        "reason": None,
        "items": steps(issued, service.plan),
    }


def detail(service: Service, place: Place, told: Told, cuts: list[tuple[int, str]]) -> Any:
    """Return all that is known of one sensor."""
    tuning = msgspec.json.decode(told.tuning)
    refits = [until for until, kind in cuts if kind in ("refit", "start", "reset")]
    last = refits[-1] if refits else None
    every = service.plan.settings(service.intake.declared(place.sensor)).update_every
    return {
        **item(service, place),
        "declared": msgspec.to_builtins(service.intake.declared(place.sensor)),
        "archived": iso(place.sensor.archived),
        "fit": {
            "at": iso(last),
            "next": iso(None if last is None else last + every * service.plan.step),
            "seq": place.forecast.fit if place.forecast else 0,
        },
        "experts": tuning["experts"],
        "hyperparameters": tuning["values"],
        "frozen": tuning["frozen"],
        "at_bound": tuning["at_bound"],
    }


def history(
    ledger: Ledger,
    sensor: SensorRow,
    plan: Plan,
    declared: Declaration,
    span: tuple[int, int],
    lead: int,
) -> list[dict[str, Any]]:
    """Return actual values beside the forecasts made of them so many steps ahead."""
    start, end = span
    entries = ledger.entries(sensor.id, start=start, end=end)
    arrived = [each for each in entries if each.kind != Kind.HELD]
    times, values = steps_of(arrived, plan, declared.rule or plan.rule)
    actual = dict(zip(times.astype("int64").tolist(), values.tolist(), strict=True))
    ahead = (lead - 1) * plan.step
    issued = ledger.forecasts(sensor.id, start=start - ahead, end=end - ahead)
    made = {each.time + ahead: each for each in issued if len(each.values) >= lead}
    first = (start + plan.step - 1) // plan.step * plan.step
    known = [time for time in (*actual, *made)]
    if not known:
        return []
    return [
        _compared(time, actual.get(time), made.get(time), lead, declared)
        for time in range(max(first, min(known)), min(end, max(known) + 1), plan.step)
    ]


def _compared(
    time: int, value: float | None, made: Issued | None, lead: int, declared: Declaration
) -> dict[str, Any]:
    missing = value is None or value != value
    at = lead - 1
    status = "good" if is_within(value, declared.bounds) else "implausible"
    return {
        "time": iso(time),
        "actual": None if missing else value,
        "status": "missing" if missing else status,
        "forecast": made.values[at] if made else None,
        "lower": made.lower[at] if made else None,
        "upper": made.upper[at] if made else None,
        "source": made.source if made else None,
        "issued_at_seq": made.seq if made else None,
    }


def gaps(
    ledger: Ledger, rules: Mapping[int, Rule | None], plan: Plan, span: tuple[int, int]
) -> dict[int, list[int]]:
    """Return how many steps of each hour of a span have a reading, by sensor.

    Parameters
    ----------
    ledger, plan
        Where readings are, and how steps are made of them.
    rules
        How readings of a step combine, by sensor.
    span
        The first moment, and the one after the last.
    """
    start, end = span
    counts = {}
    for sensor, rule in rules.items():
        hours = [0] * ((end - start) // HOUR)
        arrived = [
            entry
            for entry in ledger.entries(sensor, start=start, end=end)
            if entry.value is not None and entry.kind != Kind.HELD
        ]
        for step in {plan.step_of(entry.time, rule) for entry in arrived}:
            if 0 <= (at := (step - start) // HOUR) < len(hours):
                hours[at] += 1
        counts[sensor] = hours
    return counts


def tuning(service: Service, place: Place, told: Told, path: list[tuple[int, bytes]]) -> Any:
    """Return where the hyperparameters have been, with their limits."""
    settings = service.plan.settings(service.intake.declared(place.sensor))
    space, current = settings.model.space, msgspec.json.decode(told.tuning)
    items = [{"time": iso(until), **msgspec.json.decode(body)} for until, body in path]
    last = path[-1][0] if path else None
    every = settings.update_every * service.plan.step
    return {
        "sensor": place.sensor.name,
        "names": list(space.names),
        "limits": limits_of(settings),
        "learned": [n for n, on in zip(space.names, space.learned.tolist(), strict=True) if on],
        "weights": [n for group in space.groups if group.kind == "weight" for n in group.names],
        "items": [{**each, "kind": "refit"} for each in items],
        "last": iso(last),
        "next": iso(None if last is None else last + every),
        "at_bound": current["at_bound"],
        "frozen": current["frozen"],
        "values": current["values"],
        "experts": current["experts"],
    }


def event_item(service: Service, event: Event) -> dict[str, Any]:
    """Return an event as people read it."""
    place = None if event.sensor is None else service.board.places.get(event.sensor)
    return {
        "id": event.id,
        "time": iso(event.at),
        "kind": event.kind,
        "sensor": place.sensor.name if place else None,
        "reason": event.reason,
    }
