"""The service: takes readings, has them stored, forecasts made and all who listen told.

It lives in the process that owns the port and the database. What happens in which thread: requests
and the board in the event loop, writing in the `Writer`, messages of workers in threads that hand
them on. The board is touched by the event loop alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import msgspec
import structlog

from streamridge.service import views
from streamridge.service.board import Board
from streamridge.service.clock import Clock
from streamridge.service.fleet.fleet import Fleet, Hand
from streamridge.service.fleet.messages import Acted, Failed, FromWorker, Kept, Known, Told, Took
from streamridge.service.fleet.tracker import NEVER, Standing
from streamridge.service.fleet.worker import Charge
from streamridge.service.following import follow
from streamridge.service.hub import Hub
from streamridge.service.intake import Group, Intake, Receipt, Wish
from streamridge.service.ledger.base import Ledger, StorageError
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.records import Action, Event, Kind, SensorRow
from streamridge.service.plan import HOUR, MINUTE, SECOND, Declaration
from streamridge.service.problems import Problem
from streamridge.service.rows import Batch
from streamridge.service.settings import ServiceSettings, bytes_of
from streamridge.service.writer import Backlog, Writer

# Messages that may wait for workers before requests are told to try again: a whole step of many.
MOST_WAITING = 2000
# Readers that look things up beside each other.
READERS = 4
# After so long a clock that has jumped is believed.
BELIEVED = 15 * MINUTE
# At a start, forecasts of so many arrival numbers back are shown at once.
RECENT = 200_000

T = TypeVar("T")
log = structlog.get_logger("streamridge.service")


class Service:
    """A running service.

    Parameters
    ----------
    settings
        What it was told.
    clock
        The machine's clock.
    """

    def __init__(self, settings: ServiceSettings, clock: Clock | None = None) -> None:
        self.settings, self.plan = settings, settings.plan
        self.clock = clock or Clock()
        self.hub, self.board = Hub(), Board(self.plan)
        self.state, self.reasons = "starting", list[str]()
        self.counts: Counter[str] = Counter()
        self.refused: deque[tuple[int, int]] = deque()  # when, and how many rows
        self.failure: str | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self._received: Counter[int] = Counter()  # readings by step
        self._jumped_since: int | None = None
        self._size: dict[str, int] = {}
        self._grown: tuple[int, int] | None = None
        self._event = 0
        self._tasks: list[asyncio.Task[None]] = []

    # Beginning and end.

    def open(self) -> None:
        """Open the storage, and know what it holds; nothing is replayed and nothing refitted."""
        self._loop = asyncio.get_running_loop()
        address = self.settings.database
        self.ledger = open_ledger(address)
        try:
            has_changed = follow(self.ledger, self.plan, self.clock.now())
        except Problem:
            self.ledger.close()
            raise
        self._readers: SimpleQueue[Ledger] = SimpleQueue()
        for _ in range(READERS):
            self._readers.put(open_ledger(address, read_only=True))
        sensors, done = self.ledger.sensors(), self.ledger.done()
        self.intake = Intake(
            self.ledger, self.plan, sensors, most_sensors=self.settings.max_sensors, now=self._limit
        )
        self._recall(sensors)
        memory = bytes_of(self.settings.memory)
        charge = Charge(address, self.plan, sensors, done, memory)
        self.fleet = Fleet(charge, self.settings.workers, self._heard)
        self.writer = Writer(
            self.ledger,
            self.intake,
            self._committed,
            lambda: self.fleet.done,
            self._broke,
        )
        self.writer.start()
        unfinished = sorted(self.ledger.recent(done), key=lambda entry: entry.seq)
        self.fleet.take(unfinished)
        self._tasks = [self._loop.create_task(each()) for each in (self._tick, self._measure)]
        if has_changed:
            self.tell("retuned", None, "settings are others: sensors are made anew as they come")
        self.state = "live"

    def _recall(self, sensors: list[SensorRow]) -> None:
        """Put what the ledger knows of sensors onto the board."""
        for sensor in sensors:
            self.board.put(sensor)
        for sensor_id, _, summary in self.ledger.summaries():
            self.board.standing(sensor_id, msgspec.json.decode(summary, type=Standing))
        last = self.ledger.last()
        for issued in self.ledger.forecasts(after=max(last - RECENT, 0)):
            self.board.forecast(issued)
        recent = self.ledger.recent(max(last - RECENT, 0))
        known = (entry for entry in recent if entry.kind != Kind.HELD)
        for entry in sorted(known, key=lambda entry: entry.seq):
            self.intake.recall(entry.sensor, entry.time, entry.value)
            self._received[self.plan.step_of(entry.time, self.plan.rule)] += 1
            place = self.board.places[entry.sensor]
            if entry.time > place.standing.newest:
                newer = {"newest": entry.time, "value": entry.value}
                standing = msgspec.structs.replace(place.standing, **newer)
                self.board.standing(entry.sensor, standing)
        for place in self.board.places.values():
            place.told = self.board.state(place, self.now)
        for entry in self.ledger.held():
            self.intake.held[entry.sensor, entry.time] = entry
        events = self.ledger.events(limit=1)
        self._event = events[-1].id if events else 0

    async def close(self, patience: float = 5.0) -> None:
        """Stop taking readings, write what waits, fold the log in."""
        self.state = "stopping"
        self.hub.close()
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.to_thread(self._end, patience)

    def _end(self, patience: float) -> None:
        self.fleet.stop(patience)
        self.writer.stop()
        while not self._readers.empty():
            self._readers.get().close()
        with suppress(StorageError):
            self.ledger.close()

    def _broke(self, reason: str) -> None:
        self.failure = reason
        self._loop.call_soon_threadsafe(self.on_failure)

    # Time.

    @property
    def now(self) -> int:
        """Return the time of the service: the machine's, or that of the newest reading."""
        if self.settings.clock == "stream":
            newest = self.board.newest
            return newest if newest != NEVER else self.clock.now()
        return self.clock.now()

    def _limit(self) -> int | None:
        return None if self.settings.clock == "stream" else self.clock.now()

    # Readings in.

    async def take(self, batch: Batch, wish: Wish) -> Receipt:
        """Store rows; when this returns, they survive whatever happens."""
        if self.state == "stopping":
            raise Problem("sr-stopping", "The service is stopping; nothing was stored.")
        if self.fleet.waiting > MOST_WAITING and wish.mode == "live":
            raise Problem("sr-busy", "Forecasts lag too far behind; nothing was stored.")
        if self._size.get("free", 1 << 60) < bytes_of(self.settings.min_free):
            raise Problem("sr-disk-full", "There is too little space left; nothing was stored.")
        future = self.writer.take(batch, wish, self.clock.now())
        receipt = await asyncio.wrap_future(future)
        self._count(receipt)
        return receipt

    def _count(self, receipt: Receipt) -> None:
        for name in ("accepted", "duplicate", "late", "held", "replaced", "implausible", "refused"):
            self.counts[name] += getattr(receipt, name)
        if receipt.refused:
            self.refused.append((self.clock.now(), receipt.refused))
            first = receipt.refusals[0]
            self.tell("refused", None, f"{receipt.refused} rows: {first.code}, {first.detail}")

    def _committed(self, group: Group) -> None:
        self.fleet.take(group.entries, group.sensors.values())
        self._loop.call_soon_threadsafe(self._show_readings, group)

    def _show_readings(self, group: Group) -> None:
        for sensor in group.sensors.values():
            self.board.put(sensor)
        for entry in group.entries:
            self._received[self.plan.step_of(entry.time, self.plan.rule)] += 1
        while len(self._received) > 1000:
            del self._received[min(self._received)]

    # Forecasts out.

    def _heard(self, hand: Hand, message: FromWorker) -> None:
        """Hand on what a worker says; runs in a thread of its own."""
        if isinstance(message, Took):
            settled = partial(hand.settle, message.number)
            self.writer.add(Backlog([*message.issued], settled=[settled]))
        elif isinstance(message, Kept):
            self.writer.add(Backlog([message.snapshot]))
        self._loop.call_soon_threadsafe(self._show, message)

    def _show(self, message: FromWorker) -> None:
        match message:
            case Took():
                for issued in message.issued:
                    self.board.forecast(issued)
                for known in message.known:
                    self._show_known(known)
                for seq, reason in message.failed:
                    self.counts["unlearned"] += 1
                    log.warning("a reading was not learned from", seq=seq, reason=reason)
            case Kept():
                self._show_known(message.known)
                self._show_kept(message)
            case Told():
                self._show_known(message.known)
            case Failed():
                self.counts["failed"] += 1
                sensor = self.board.places[message.sensor].sensor
                self.tell("degraded", sensor, f"a new fit could not be made: {message.reason}")

    def _show_known(self, known: Known) -> None:
        if known.sensor in self.board.places:
            self.board.standing(known.sensor, known.standing)
            place = self.board.places[known.sensor]
            if place.sensor.name in self.hub.watched:
                self.hub.publish("sensor", views.item(self, place), place.sensor.name)

    def _show_kept(self, message: Kept) -> None:
        cut, place = message.snapshot.cut, self.board.places[message.snapshot.cut.sensor]
        self.counts[cut.kind] += 1
        self.counts["refit_milliseconds"] += int(1000 * message.seconds)
        words = {
            "refit": "refitted, and its hyperparameters moved",
            "start": "made anew from its readings",
            "reset": "made anew, with hyperparameters where they start",
            "rebuilt": "its stored state was damaged, and was made again from its readings",
            "failed": "its refit failed; the fit in force goes on",
        }
        if cut.kind in words:
            kind = {"failed": "degraded", "rebuilt": "rebuilt"}.get(cut.kind, "retuned")
            self.tell(kind, place.sensor, words[cut.kind])

    # Asking and acting.

    async def ask(self, sensor: int) -> Told:
        """Return a sensor's forecast from now on, and its tuning."""
        answer = await self._answer(self.fleet.ask(sensor, self.now))
        assert isinstance(answer, Told)
        return answer

    async def act(self, sensor: SensorRow, kind: str, body: dict[str, Any]) -> None:
        """Do what is asked of a sensor, once that is stored."""

        def store(ledger: Ledger) -> Action:
            return self._append_action(ledger, sensor.id, kind, body)

        await self._acted(await self._done(store))
        self.tell("retuned", sensor, f"{kind} was asked for")

    async def _done(self, task: Callable[[Ledger], T]) -> T:
        """Let the writing thread do something, and return what came of it."""
        return cast(T, await asyncio.wrap_future(self.writer.do(task)))

    def _append_action(
        self, ledger: Ledger, sensor: int, kind: str, body: Any, *rows: SensorRow
    ) -> Action:
        """Store an action, in one transaction with rows of sensors; for the writing thread."""
        seq, now = self.writer.seq + 1, self.clock.now()
        action = Action(seq, sensor, kind, msgspec.json.encode(body), now)
        ledger.append(rows, actions=[action])
        self.writer.seq = seq
        return action

    async def _acted(self, action: Action) -> None:
        """Let a worker do what is stored."""
        answer = await self._answer(self.fleet.act(action))
        assert isinstance(answer, Acted)
        if answer.refusal is not None:
            raise Problem("sr-unknown-hyperparameter", answer.refusal)

    async def _answer(self, future: Any) -> FromWorker:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), 30.0)
        except TimeoutError:
            raise Problem("sr-busy", "The sensor's worker has not answered in time.") from None

    async def declare(self, name: str, declared: Declaration) -> SensorRow:
        """Store what is declared of a sensor, known or new; a change begins a new forecaster."""
        known = self.intake.sensors.get(name)
        if known is None and len(self.intake.sensors) >= self.settings.max_sensors:
            raise Problem("sr-too-many-sensors", "There are as many sensors as allowed.")
        before = Declaration() if known is None else self.intake.declared(known)
        known = known or SensorRow(0, name, self.clock.now())
        body = msgspec.json.encode(declared)
        sensor = msgspec.structs.replace(known, declared=body, archived=None)
        is_new, changes = not known.id, before.forecasting != declared.forecasting
        sensor, action = await self._put(sensor, declared if changes else None)
        if is_new:
            self.tell("new", sensor, "it was declared")
        if action is not None:
            await self._acted(action)
        return sensor

    async def archive(self, sensor: SensorRow) -> None:
        """Take no more readings of a sensor; what is stored stays."""
        await self._put(msgspec.structs.replace(sensor, archived=self.clock.now()))
        self.tell("archived", sensor, "it was archived")

    async def _put(
        self, sensor: SensorRow, configures: Declaration | None = None
    ) -> tuple[SensorRow, Action | None]:
        """Store a sensor, in one transaction with the new forecaster that it asks for, if any."""

        def store(ledger: Ledger) -> tuple[SensorRow, Action | None]:
            row, action = sensor, None
            if not row.id:  # unless a reading has made it meanwhile
                known = self.intake.sensors.get(row.name)
                number = len(self.intake.sensors) + 1 if known is None else known.id
                row = msgspec.structs.replace(row, id=number)
            if configures is None:
                ledger.append([row])
            else:
                action = self._append_action(ledger, row.id, "configure", configures, row)
            self.intake.redeclare(row)
            return row, action

        row, action = await self._done(store)
        self.board.put(row)
        self.fleet.take((), [row])
        return row, action

    async def release(self, sensor: SensorRow | None = None) -> int:
        """Let held rows arrive whose time has come; all those of a sensor, if one is given."""

        def store(ledger: Ledger) -> int:
            group = Group(self.writer.seq)
            far = self.clock.now() if sensor is None else 1 << 62
            only = None if sensor is None else sensor.id
            self.intake.released(far, group, self.clock.now(), only)
            self.writer.commit(group)
            return len(group.entries)

        return await self._done(store)

    async def read(self, question: Callable[[Ledger], T]) -> T:
        """Ask the ledger something, beside the thread that writes."""

        def asked() -> T:
            with self._reader() as ledger:
                return question(ledger)

        return await asyncio.to_thread(asked)

    @contextmanager
    def _reader(self) -> Iterator[Ledger]:
        ledger = self._readers.get()
        try:
            yield ledger
        finally:
            self._readers.put(ledger)

    # What operators see.

    def tell(self, kind: str, sensor: SensorRow | None, reason: str) -> None:
        """Note an event, and tell all who listen."""
        self._event += 1
        number = None if sensor is None else sensor.id
        event = Event(self._event, self.now, kind, number, reason[:300])
        self.writer.add(Backlog(events=[event]))
        self.hub.publish("event", views.event_item(self, event))

    async def _tick(self) -> None:
        """Look after everything, every second."""
        beat = 0
        while True:
            await asyncio.sleep(1.0)
            beat += 1
            try:
                await self._beat(tell=beat % 2 == 0)
            except Exception as error:  # the next second may be better
                log.exception("looking after the service failed", error=repr(error))

    async def _beat(self, *, tell: bool) -> None:
        self.fleet.watch()
        self._look_at_the_clock()
        if self.intake.held and self.settings.clock == "machine" and not self.clock.jumped:
            with suppress(Problem):
                await self.release()
        if tell:
            for changes in self.board.changes(self.now):
                for place, state, reason in changes:
                    self.tell(state, place.sensor, reason)
                await asyncio.sleep(0)  # requests are answered in between
            self._judge_itself()
            self.hub.publish("summary", views.summary(self))

    def _look_at_the_clock(self) -> None:
        jumped = self.clock.look()
        self.intake.lenient = bool(jumped)
        if jumped and self._jumped_since is None:
            self._jumped_since = self.clock.now()
            self.tell("clock_jump", None, f"the clock jumped by {jumped // SECOND} seconds")
        elif jumped and abs(self.clock.now() - (self._jumped_since or 0)) > BELIEVED:
            self.clock.accept()
        if not jumped:
            self._jumped_since = None

    def _judge_itself(self) -> None:
        """Say in words what keeps the service from being live."""
        reasons = []
        if self.writer.trouble is not None:
            reasons.append(f"writes fail: {self.writer.trouble}")
        if self._size.get("free", 1 << 60) < bytes_of(self.settings.min_free):
            reasons.append("the disk is nearly full")
        if self.clock.jumped:
            reasons.append("the machine's clock has jumped")
        newest = self.board.newest
        stale = newest != NEVER and self.now - newest > HOUR + self.plan.step
        if stale:
            reasons.append("no reading of any sensor for more than an hour")
        self.reasons = reasons
        if self.state != "stopping":
            self.state = "stale" if stale and len(reasons) == 1 else "degraded"
            self.state = self.state if reasons else "live"

    @property
    def is_ready(self) -> bool:
        """Return whether readings can be stored and forecasts be made."""
        full = self._size.get("free", 1 << 60) < bytes_of(self.settings.min_free)
        return self.state not in ("starting", "stopping") and not full and not self.writer.trouble

    async def _measure(self) -> None:
        """Measure the storage, every ten seconds."""
        while True:
            with suppress(StorageError):
                self._size = await self.read(lambda ledger: ledger.size())
                self._grown = self._grown or (self.clock.now(), self._size["data"])
            if self.writer.trouble in ("sr-disk-full", "sr-storage-away"):
                self.writer.do(lambda ledger: ledger.put_facts({"probe": str(self.clock.now())}))
                if self.writer.trouble == "sr-disk-full":
                    self.writer.trouble = None
            await asyncio.sleep(10.0)

    @property
    def size(self) -> dict[str, int]:
        """Return bytes of data, of the log, and free on the disk, as measured last."""
        return self._size

    @property
    def days_left(self) -> float | None:
        """Return for how many days the disk lasts at the present pace; None if that is unknown."""
        if self._grown is None or not self._size:
            return None
        since, then = self._grown
        hours = (self.clock.now() - since) / HOUR
        grown = self._size["data"] - then
        if hours < 0.05 or grown <= 0 or "free" not in self._size:
            return None
        return self._size["free"] / (grown / hours) / 24

    @property
    def refused_last_hour(self) -> int:
        """Return how many rows were refused in the last hour."""
        now = self.clock.now()
        while self.refused and now - self.refused[0][0] > HOUR:
            self.refused.popleft()
        return sum(count for _, count in self.refused)

    @property
    def last_step(self) -> tuple[int, int] | None:
        """Return the newest step that has readings, and how many; None before the first."""
        if not self._received:
            return None
        newest = max(self._received)
        return newest, self._received[newest]
