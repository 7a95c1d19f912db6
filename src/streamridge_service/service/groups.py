"""Groups of sensors: a thread corrects their forecasts once a step of the group is complete.

A sensor's own forecast is issued with its reading. Its correction follows when the other sensors of
the group have reported the step. Each step of a group is stored with what it was computed from, so
that a restart and `verify` compute the same corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from queue import Queue
from threading import Thread
from time import monotonic

import msgspec
import structlog
from threadpoolctl import threadpool_limits

from streamridge.errors import StreamRidgeError
from streamridge_service.groups.corrections import GroupCorrections, Listening, named_forecasts
from streamridge_service.groups.open_steps import CompleteStep, OpenSteps
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import GroupResult, GroupStep, IssuedForecast, SensorRow
from streamridge_service.plan import DAY, Declaration, Plan
from streamridge_service.workers.messages import ReadingsTaken

# Larger groups are not corrected, since they would take too much memory.
MOST_MEMBERS = 1000

GroupKey = tuple[str, int]  # the name of a group, and the length of its steps
NO_GROUP: GroupKey = ("", 0)
log = structlog.get_logger("streamridge_service")


@dataclass
class _Group:
    """One group: its sensors, its open steps and its corrections."""

    plan: Plan
    members: list[int] = field(default_factory=list)
    is_new: bool = True  # whether its next step is the first
    saved: int = 0  # time of the last step whose state was stored
    listening: dict[int, Listening] = field(default_factory=dict)  # by sensor; replaced as a whole

    def __post_init__(self) -> None:
        self.corrections = GroupCorrections(self.plan)
        self.open = OpenSteps(self.plan.step)


class Groups:
    """The groups of a service. Other threads queue what happens; one thread works on it.

    `store` gets the steps of groups, and `show` the forecasts that they correct.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        is_on: bool,
        store: Callable[[GroupResult], None],
        show: Callable[[tuple[IssuedForecast, ...]], object],
    ) -> None:
        self._plan, self._is_on, self._store, self._show = plan, is_on, store, show
        self._groups: dict[GroupKey, _Group] = {}
        self._keys: dict[int, GroupKey] = {}  # by sensor
        self._queue: Queue[SensorRow | ReadingsTaken | str] = Queue()
        self._thread = Thread(target=self._run, name="groups", daemon=True)

    def restore(self, ledger: Ledger, sensors: Iterable[SensorRow]) -> None:
        """Load the groups of all sensors from the ledger. Call it before `start`."""
        for sensor in sensors:
            self._put(sensor)
        with threadpool_limits(1):  # results must not depend on the number of threads
            for (name, step), group in self._groups.items():
                try:
                    self._load(ledger, name, step, group)
                except StreamRidgeError as error:
                    log.warning("a group begins anew", group=name, reason=error.reason)
                    self._groups[name, step] = _Group(group.plan, group.members)

    def _load(self, ledger: Ledger, name: str, step: int, group: _Group) -> None:
        """Load the state of a group, and replay its steps since."""
        stored = ledger.group_state(name, step)
        if stored is None:
            return
        group.saved, state = stored
        corrections = GroupCorrections.from_bytes(state, group.plan)
        while steps := ledger.group_steps(name, step, after=corrections.newest):
            forecasts = named_forecasts(ledger, steps)
            for each in steps:
                corrections.take(each, forecasts)
        group.corrections, group.is_new = corrections, False
        group.open = OpenSteps(step, corrections.newest)
        for sensor in group.members:
            for issued in ledger.forecasts(sensor, start=corrections.newest + 1):
                group.open.add(issued, None, monotonic())
        group.listening = corrections.listening()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, sensor: SensorRow) -> None:
        """Note a new or changed sensor."""
        self._queue.put(sensor)

    def take(self, message: ReadingsTaken) -> None:
        """Note the forecasts of a worker."""
        if message.forecasts:
            self._queue.put(message)

    def check(self) -> None:
        """Let steps that have waited for too long be complete."""
        self._queue.put("check")

    def stop(self) -> None:
        """Finish what is queued, and end the thread."""
        self._queue.put("stop")
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Return how much is queued or being worked on."""
        return self._queue.unfinished_tasks

    def listening(self, sensor: int) -> Listening | None:
        """Return whom a sensor listens to; None if it is in no group."""
        group = self._groups.get(self._keys.get(sensor, NO_GROUP))
        return None if group is None else group.listening.get(sensor, Listening())

    def _run(self) -> None:
        with threadpool_limits(1):
            while (item := self._queue.get()) != "stop":
                try:
                    self._work(item)
                except Exception as error:  # the next item may succeed
                    log.exception("a group could not be corrected", error=repr(error))
                finally:
                    self._queue.task_done()

    def _work(self, item: SensorRow | ReadingsTaken | str) -> None:
        changed = set(self._groups)
        if isinstance(item, SensorRow):
            self._put(item)
        elif isinstance(item, ReadingsTaken):
            changed = self._add(item)
        for key in changed & set(self._groups):
            self._complete(key)

    def _put(self, sensor: SensorRow) -> None:
        """Move a sensor to the group that it declares."""
        declared = msgspec.json.decode(sensor.declared, type=Declaration)
        plan = self._plan.of(declared)
        key = None
        if self._is_on and declared.group is not None and sensor.archived is None:
            key = declared.group, plan.step
        before = self._keys.get(sensor.id)
        if key == before:
            return
        if before is not None:
            self._leave(sensor.id, before)
        if key is not None:
            group = self._groups.setdefault(key, _Group(msgspec.structs.replace(plan, rule=None)))
            group.members = sorted([*group.members, sensor.id])
            self._keys[sensor.id] = key
            if len(group.members) == MOST_MEMBERS + 1:
                log.warning("a group is too large to be corrected", group=key[0], most=MOST_MEMBERS)

    def _leave(self, sensor: int, key: GroupKey) -> None:
        group = self._groups[key]
        group.members.remove(sensor)
        group.open.remove(sensor)
        del self._keys[sensor]
        if not group.members:
            del self._groups[key]

    def _add(self, message: ReadingsTaken) -> set[GroupKey]:
        """Add forecasts to the open steps of their groups; return these groups."""
        changed, now = set(), monotonic()
        for issued, value in zip(message.forecasts, message.learned, strict=True):
            key = self._keys.get(issued.sensor)
            if key is not None and 1 < len(self._groups[key].members) <= MOST_MEMBERS:
                self._groups[key].open.add(issued, value, now)
                changed.add(key)
        return changed

    def _complete(self, key: GroupKey) -> None:
        """Correct the forecasts after all complete steps of a group."""
        group = self._groups[key]
        while (step := group.open.next_complete(group.members, monotonic())) is not None:
            try:
                self._correct(key, group, step)
            except Exception:
                self._groups[key] = _Group(group.plan, group.members)
                raise

    def _correct(self, key: GroupKey, group: _Group, complete: CompleteStep) -> None:
        step = GroupStep(*key, complete.time, group.is_new, complete.members)
        corrected = group.corrections.take(step, complete.forecasts)
        state = None
        if group.is_new or step.time - group.saved >= DAY:
            state, group.saved = group.corrections.to_bytes(), step.time
        group.is_new = False
        group.listening = group.corrections.listening()
        self._store(GroupResult(step, corrected, state))
        if corrected:
            self._show(corrected)
