"""What is known of every sensor now: where it stands, its newest forecast, and its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import fmean

from streamridge.service.fleet.tracker import NEVER, Standing
from streamridge.service.ledger.records import Issued, SensorRow
from streamridge.service.plan import HOUR, MINUTE, Plan
from streamridge.texts import counted

# After so long without a reading a sensor is stale, silent, and not forecast at all.
STALE, SILENT, LOST = HOUR, 24 * HOUR, 7 * 24 * HOUR
# So many equal readings in a row are no coincidence.
REPEATS = 50
# Sensors that are looked at without a pause: about a millisecond.
AT_ONCE = 2000

STATES = (
    "good",
    "stale",
    "silent",
    "constant",
    "zero",
    "implausible",
    "degraded",
    "rebuilt",
    "new",
)


@dataclass
class Place:
    """One sensor on the board."""

    sensor: SensorRow
    standing: Standing = field(default_factory=Standing)
    forecast: Issued | None = None
    # State and reason as they were told last.
    told: tuple[str, str] = ("new", "")


class Board:
    """All sensors, by their number.

    Parameters
    ----------
    plan
        How they are forecast.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.places: dict[int, Place] = {}
        # How many sensors were in each state when all were last looked at, and the mean of their
        # errors, each over its usual one.
        self.counts = dict.fromkeys(STATES, 0)
        self.error: float | None = None
        # The time of the newest reading of all: it is asked for too often to look at all places.
        self.newest = NEVER

    def put(self, sensor: SensorRow) -> Place:
        """Return the place of a sensor, a new one if it has none, with what is declared now."""
        place = self.places.setdefault(sensor.id, Place(sensor))
        place.sensor = sensor
        return place

    def standing(self, sensor: int, standing: Standing) -> None:
        """Note where a sensor stands."""
        self.places[sensor].standing = standing
        self.newest = max(self.newest, standing.newest)

    def forecast(self, issued: Issued) -> None:
        """Note a forecast, unless a newer one is known."""
        place = self.places[issued.sensor]
        known = place.forecast
        if known is None or (known.time, known.seq) <= (issued.time, issued.seq):
            place.forecast = issued

    @property
    def shown(self) -> Iterable[Place]:
        """Return the sensors that are not archived."""
        return (place for place in self.places.values() if place.sensor.archived is None)

    def state(self, place: Place, now: int) -> tuple[str, str]:
        """Return the state of a sensor and the reason for it, in words."""
        standing = place.standing
        age = now - standing.newest
        if standing.newest == NEVER:
            return "new", "there is no reading yet"
        if age > SILENT + self._plan.step:
            return "silent", f"no reading for {_told(age)}"
        if age > STALE + self._plan.step:
            return "stale", f"no reading for {_told(age)}"
        if standing.rebuilt:
            return "rebuilt", "its stored state was damaged, and was made again from its readings"
        if standing.failed is not None:
            return "degraded", f"its last refit failed: {standing.failed}"
        if standing.doubted:
            return "implausible", "its last reading is far from what it ever showed"
        if standing.equal >= REPEATS:
            name = "zero" if standing.value == 0 else "constant"
            return name, f"{standing.equal} equal readings in a row"
        if not standing.fitted:
            return "new", "it has too few readings for a model yet"
        return "good", ""

    def changes(self, now: int) -> Iterator[list[tuple[Place, str, str]]]:
        """Look at all sensors, some at a time; yield those whose state is another than was told."""
        places, counts, ratios = list(self.shown), Counter[str](), list[float]()
        for start in range(0, len(places), AT_ONCE):
            found = []
            for place in places[start : start + AT_ONCE]:
                state = self.state(place, now)
                counts[state[0]] += 1
                if state[0] != place.told[0]:
                    found.append((place, *state))
                place.told = state
                ratio = place.standing.scores.ratio if place.standing.fitted else None
                if ratio is not None:
                    ratios.append(ratio)
            yield found
        self.counts = {state: counts[state] for state in STATES}
        self.error = fmean(ratios) if ratios else None


def _told(age: int) -> str:
    """Return a length of time in words: in minutes up to two hours."""
    return counted(age // MINUTE, "minute") if age < 2 * HOUR else counted(age // HOUR, "hour")
