"""Events: in order, resumed after a break, and never in anyone's way."""

import asyncio
import json
import socket
import time
from contextlib import contextmanager

import pytest

from streamridge.service import hub as hub_module
from streamridge.service.hub import Hub
from streamridge.service.web import event_stream
from tests.service.web.conftest import START
from tests.service.web.live import Live, stamp


class Listener:
    """A client that reads events one by one."""

    def __init__(self, live, query="", last=None):
        self._socket = socket.create_connection(("127.0.0.1", live.port), timeout=20)
        head = f"GET /v1/stream{query} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Last-Event-ID: {last}\r\n" if last is not None else ""
        self._socket.sendall(f"{head}\r\n".encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass

    def close(self):
        self._file.close()
        self._socket.close()

    def next(self, *kinds):
        """Return the next event of some kinds: its id, kind and body."""
        while True:
            event = {}
            while line := self._line().strip():
                name, _, value = line.decode().partition(": ")
                event[name] = value
            if event.get("event") in kinds:
                return event["id"], event["event"], json.loads(event["data"])

    def _line(self):
        """Return the next line, without what parts the chunks of the answer."""
        line = self._file.readline()
        if line == b"":
            raise EOFError
        if line.endswith(b"\r\n"):  # the size of a chunk, or its end; events end lines otherwise
            return self._line()
        return line


@contextmanager
def listening(live, *arguments, **options):
    listener = Listener(live, *arguments, **options)
    try:
        yield listener
    finally:
        listener.close()


def publish(live, count, kind="event"):
    live.call(lambda service: [service.hub.publish(kind, {"n": i}) for i in range(count)])


class TestEvents:
    def test_the_summary_comes_by_itself(self, live):
        with listening(live) as listener:
            _, _, summary = listener.next("summary")

        assert summary.keys() == live.client.get("/v1/summary").json().keys()

    def test_a_sensor_is_told_of_to_those_who_asked(self, live):
        with listening(live, "?sensors=heard,other") as some, listening(live) as none:
            for i, name in enumerate(("unheard", "heard")):
                live.post([{"sensor": name, "time": stamp(START), "value": i}])

            assert some.next("sensor")[2]["id"] == "heard"
            live.call(lambda service: service.hub.publish("last", {}))
            assert none.next("sensor", "last")[1] == "last"

    def test_who_comes_back_gets_what_was_missed(self, live):
        with listening(live) as listener:
            publish(live, 3)
            first, _, _ = listener.next("event")
        publish(live, 2)

        with listening(live, last=first) as again:
            missed = [again.next("event")[2]["n"] for _ in range(4)]

        assert missed == [1, 2, 0, 1]

    @pytest.mark.parametrize("last", ["0", "", "x-1", "00000000-5", "-1", "9" * 50, "ä"])
    def test_who_comes_back_from_elsewhere_must_look_again(self, live, last):
        with listening(live, last=last) as listener:
            assert listener.next("resync", "event", "summary")[1] == "resync"

    def test_who_was_away_too_long_must_look_again(self, live):
        with listening(live) as listener:
            publish(live, 1)
            first, _, _ = listener.next("event")
        publish(live, hub_module.REMEMBERED + 1)

        with listening(live, last=first) as listener:
            assert listener.next("resync", "event", "summary")[1] == "resync"

    def test_events_of_other_kinds_can_be_left_out(self, live):
        with listening(live, "?state=silent,stale") as listener:
            for kind in ("good", "retuned", "stale"):
                live.call(lambda service, k=kind: service.hub.publish("event", {"kind": k}))

            assert listener.next("event")[2] == {"kind": "stale"}

    @pytest.mark.parametrize("names", ["a b", "a,,b", "-a", ",", "a" * 65, ",".join(["a"] * 101)])
    def test_names_must_be_names(self, live, names):
        assert live.client.get("/v1/stream", params={"sensors": names}).status_code == 422


class TestSlowClients:
    def test_one_that_does_not_read_is_in_nobodys_way(self, live, monkeypatch, counted):
        counted("D4", 3)
        monkeypatch.setattr(event_stream, "PATIENCE", 0.5)
        before = len(live.service.hub.listeners)
        with listening(live) as stalled, listening(live) as reader:
            assert len(live.service.hub.listeners) == before + 2
            seconds = []
            for _ in range(40):
                live.call(lambda service: service.hub.publish("event", "x" * 200_000))
                begun = time.perf_counter()
                live.client.get("/livez")
                seconds.append(time.perf_counter() - begun)
                reader.next("event")
            until(lambda: len(live.service.hub.listeners) == before + 1)

            assert stalled.status == 200
            assert sorted(seconds)[20] < 0.1

    def test_its_queue_is_bounded_and_it_is_told(self, counted):
        counted("D4", 1000)

        assert asyncio.run(queue_of_a_stalled_client()) == (256, "resync")

    def test_the_test_notices_a_queue_without_bounds(self, monkeypatch, counted):
        counted("D4", 1)
        monkeypatch.setattr(hub_module, "BACKLOG", 10**9)

        assert asyncio.run(queue_of_a_stalled_client()) != (256, "resync")

    def test_there_are_200_at_most(self, live, counted):
        counted("D4", 201)
        until(lambda: not live.service.hub.listeners)
        listeners = [Listener(live) for _ in range(200)]
        try:
            answer = live.client.get("/v1/stream")

            assert {each.status for each in listeners} == {200}
            assert (answer.status_code, answer.json()["code"]) == (503, "sr-too-many-streams")
            assert int(answer.headers["retry-after"]) > 0
        finally:
            for each in listeners:
                each.close()
        until(lambda: not live.service.hub.listeners)
        with listening(live) as listener:
            assert listener.status == 200


async def queue_of_a_stalled_client():
    """Return how many events wait for a client that reads none, and what it hears first then."""
    hub, listener = Hub(), hub_module.Listener()
    hub.join(listener)
    for i in range(1000):
        hub.publish("event", i)
    waiting = len(listener.waiting)
    pieces = hub.listen(listener)
    await anext(pieces)
    first = await anext(pieces)
    await pieces.aclose()
    return waiting, first.split(b"\n")[1].decode().removeprefix("event: ")


def until(condition):
    """Wait until something is so."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_service_that_stops_says_goodbye(tmp_path):
    with Live(tmp_path / "a.db") as served:
        listeners = [Listener(served) for _ in range(5)]
        served.loop.call_soon_threadsafe(served.server.stop)
        for each in listeners:
            assert each.next("shutdown")[1] == "shutdown"
            with pytest.raises(EOFError):
                each.next("event")
            each.close()
