"""Groups of sensors: a thread corrects their forecasts once a step of the group is complete.

A sensor's own forecast is issued with its reading. Its correction follows when the other sensors of
the group have reported the step. Each step of a group is stored with what it was computed from, so
that a restart and `verify` compute the same corrections.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from functools import partial
from queue import Queue
from threading import Event, Thread
from time import monotonic
from zlib import crc32

import msgspec
import structlog
from threadpoolctl import threadpool_limits

from streamridge_service.groups.corrections import GroupCorrections, Listening, named_forecasts
from streamridge_service.groups.open_steps import CompleteStep, OpenSteps
from streamridge_service.ledger.errors import StorageAwayError
from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import GroupResult, GroupStep, IssuedForecast, SensorRow
from streamridge_service.plan import DAY, NEVER, Declaration, Plan
from streamridge_service.workers.messages import ReadingsTaken

# Larger groups are not corrected, since they would take too much memory: sensors, and sensors times
# the steps of a day.
MOST_MEMBERS, MOST_CELLS = 1000, 500_000
# Forecasts that are in memory while the steps of a group are replayed.
MOST_FORECASTS = 20_000
# Seconds between attempts to read while the storage is away.
RETRY_EVERY = 5.0

GroupKey = tuple[str, int]  # the name of a group, and the length of its steps
NO_GROUP: GroupKey = ("", 0)
log = structlog.get_logger("streamridge_service")


class _Group:
    """One group: its sensors, its open steps and its corrections."""

    def __init__(self, plan: Plan, members: Iterable[int] = (), newest: int = NEVER) -> None:
        self.plan, self.members = plan, list(members)
        self.corrections = GroupCorrections.of(plan)
        self.open = OpenSteps(plan.step, newest)
        self.is_new = True  # whether its next step is the first
        self.listening: dict[int, Listening] = {}  # by sensor; replaced as a whole

    @property
    def most(self) -> int:
        """Return the largest number of sensors that are corrected."""
        return min(MOST_MEMBERS, MOST_CELLS * self.plan.step // DAY)

    @property
    def is_corrected(self) -> bool:
        """Return whether the group is neither too small nor too large."""
        return 1 < len(self.members) <= self.most

    def begun_again(self) -> _Group:
        """Return the group without what it has learned."""
        return _Group(self.plan, self.members, self.open.newest)


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
        self._unloaded: set[GroupKey] = set()
        self._stopping = Event()
        self._queue: Queue[Callable[[], object] | None] = Queue()
        self._thread = Thread(target=self._run, name="groups", daemon=True)

    def start(self, ledger: Ledger, sensors: Iterable[SensorRow]) -> None:
        """Start the thread, which first loads the groups of all sensors from a ledger."""
        self._ledger, self._done = ledger, ledger.done_seq()
        for sensor in sensors:
            self._put(sensor)
        self._unloaded = set(self._groups)
        for key in self._groups:
            self._queue.put(partial(self._load, key))
        self._thread.start()

    def put(self, sensor: SensorRow) -> None:
        """Note a new or changed sensor."""
        self._queue.put(partial(self._put, sensor))

    def take(self, message: ReadingsTaken) -> None:
        """Note the forecasts of a worker."""
        if message.forecasts:
            self._queue.put(partial(self._take, message))

    def check(self) -> None:
        """Let steps that have waited for too long be complete."""
        self._queue.put(lambda: self._complete(list(self._groups)))

    def begin_again(self, key: GroupKey) -> None:
        """Let a group begin again, since a step of it was not stored."""
        self._queue.put(partial(self._begin_again, key, "a step was not stored"))

    def stop(self) -> None:
        """Finish what is queued, unless groups are still being loaded, and end the thread."""
        self._stopping.set()
        self._queue.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Return how much is queued or being worked on."""
        return self._queue.unfinished_tasks

    def listening(self, sensor: int) -> Listening | None:
        """Return whom a sensor listens to; None if its forecasts are not corrected."""
        group = self._groups.get(self._keys.get(sensor, NO_GROUP))
        if group is None or not group.is_corrected:
            return None
        return group.listening.get(sensor, Listening())

    def _run(self) -> None:
        with threadpool_limits(1):  # results must not depend on the number of threads
            while (work := self._queue.get()) is not None:
                while not self._do(work) and not self._stopping.wait(RETRY_EVERY):
                    pass
                self._queue.task_done()
                if self._stopping.is_set() and self._unloaded:
                    return  # the next start loads them

    def _do(self, work: Callable[[], object]) -> bool:
        """Do some work; return False if the storage is away, so that it must be done again."""
        try:
            work()
        except StorageAwayError as error:
            log.warning("groups wait for the storage", reason=str(error))
            return False
        except Exception as error:  # the next one may succeed
            log.exception("the work of groups failed", error=repr(error))
        return True

    def _load(self, key: GroupKey) -> None:
        """Load a group, or let it begin again; after a stop meanwhile it counts as not loaded."""
        try:
            self._load_state(key)
        except StorageAwayError:
            raise  # its state is still there
        except Exception as error:
            self._begin_again(key, str(error))
        if not self._stopping.is_set():
            self._unloaded.discard(key)

    def _load_state(self, key: GroupKey) -> None:
        """Load the state of a group, replay its steps since, and find its newest forecasts."""
        group, stored = self._groups[key], self._ledger.group_state(*key)
        if stored is None:
            return
        corrections = GroupCorrections.from_bytes(stored[1], group.plan)
        self._replay(key, corrections)
        group.corrections, group.is_new = corrections, False
        group.listening = corrections.listening()
        for sensor in group.members:
            if self._stopping.is_set():
                return
            issued = self._ledger.forecasts(sensor, start=corrections.newest + 1)
            # Readings after `done` are processed again: their forecasts are queued, with values.
            following = corrections.newest + group.plan.step
            known = [each for each in issued if each.seq <= self._done or each.time <= following]
            if known:
                group.open.add(known[-1], None, monotonic())

    def _replay(self, key: GroupKey, corrections: GroupCorrections) -> None:
        """Replay the stored steps of a group, until the service stops."""
        most = max(MOST_FORECASTS // max(len(self._groups[key].members), 1), 1)
        after = corrections.newest
        while steps := self._ledger.group_steps(*key, after=after, most=most):
            forecasts = named_forecasts(self._ledger, steps)
            for each in steps:
                corrections.take(each, forecasts)
            if self._stopping.is_set():
                return
            after = corrections.newest

    def _begin_again(self, key: GroupKey, reason: str) -> None:
        log.warning("a group begins again", group=key[0], reason=reason)
        self._groups[key] = self._groups[key].begun_again()

    def _put(self, sensor: SensorRow) -> None:
        """Move a sensor to the group that it declares."""
        declared = msgspec.json.decode(sensor.declared, type=Declaration)
        plan, key = self._plan.of(declared), None
        if self._is_on and declared.group is not None and sensor.archived is None:
            key = declared.group, plan.step
        before = self._keys.get(sensor.id)
        if key == before:
            return
        if key is not None and key not in self._groups:  # first, since it may fail
            last = self._ledger.last_group_step(*key)
            self._groups[key] = _Group(plan, newest=NEVER if last is None else last)
        if before is not None:
            self._groups[before].members.remove(sensor.id)
            self._groups[before].open.remove(sensor.id)
            del self._keys[sensor.id]
        if key is not None:
            group = self._groups[key]
            insort(group.members, sensor.id)
            self._keys[sensor.id] = key
            if len(group.members) == group.most + 1:
                log.warning("a group is too large to be corrected", group=key[0], most=group.most)

    def _take(self, message: ReadingsTaken) -> None:
        """Add forecasts to the open steps of their groups."""
        changed, now = set(), monotonic()
        for issued, value in zip(message.forecasts, message.learned, strict=True):
            key = self._keys.get(issued.sensor)
            if key is not None and self._groups[key].is_corrected:
                self._groups[key].open.add(issued, value, now)
                changed.add(key)
        self._complete(changed)

    def _complete(self, keys: Iterable[GroupKey]) -> None:
        """Correct the forecasts after all complete steps of some groups."""
        for key in keys:
            group = self._groups[key]
            try:
                while (step := group.open.next_complete(group.members, monotonic())) is not None:
                    self._correct(key, group, step)
            except Exception as error:  # it costs this group alone
                log.exception("a group could not be corrected", error=repr(error))
                self._begin_again(key, repr(error))

    def _correct(self, key: GroupKey, group: _Group, complete: CompleteStep) -> None:
        begins = group.corrections.layout if group.is_new else None
        step = GroupStep(*key, complete.time, begins, complete.members)
        corrected = group.corrections.take(step, complete.forecasts)
        group.listening = group.corrections.listening()
        is_saved = group.is_new or _is_turn(step)
        self._store(
            GroupResult(step, corrected, group.corrections.to_bytes() if is_saved else None)
        )
        group.is_new = False
        if corrected:
            self._show(corrected)


def _is_turn(step: GroupStep) -> bool:
    """Return whether the state of a group is stored: once a day, at different times for groups."""
    turn = crc32(step.group.encode()) % max(DAY // step.step, 1)
    return step.time // step.step % max(DAY // step.step, 1) == turn
