"""The event stream: order, resumption after a break, and slow clients."""

import asyncio

import pytest

from streamridge_service.http import connections
from streamridge_service.service import events as event_module
from tests.support.service.event_listener import Listener, listening
from tests.support.service.live_server import START, Live, stamp
from tests.support.waiting import LIMIT, wait_until


def publish(live, count, kind="event"):
    live.call(lambda service: [service.bus.publish(kind, {"n": i}) for i in range(count)])


class TestEvents:
    def test_the_summary_is_published_regularly(self, live):
        with listening(live) as listener:
            _, _, summary = listener.next("summary")

        assert summary.keys() == live.client.get("/v1/summary").json().keys()

    def test_updates_of_a_sensor_are_sent_to_its_subscribers(self, live):
        with listening(live, "?sensors=heard,other") as some, listening(live) as none:
            for i, name in enumerate(("unheard", "heard")):
                live.post([{"sensor": name, "time": stamp(START), "value": i}])

            assert some.next("sensor")[2]["id"] == "heard"
            live.call(lambda service: service.bus.publish("last", {}))
            assert none.next("sensor", "last")[1] == "last"

    def test_a_client_that_reconnects_gets_the_missed_events(self, live):
        with listening(live) as listener:
            publish(live, 3)
            first, _, _ = listener.next("event")
        publish(live, 2)

        with listening(live, last=first) as again:
            missed = [again.next("event")[2]["n"] for _ in range(4)]

        assert missed == [1, 2, 0, 1]

    @pytest.mark.parametrize("last", ["0", "", "x-1", "00000000-5", "-1", "9" * 50, "ä"])
    def test_an_unknown_event_id_causes_a_resync(self, live, last):
        with listening(live, last=last) as listener:
            assert listener.next("resync", "event", "summary")[1] == "resync"

    def test_an_event_id_that_is_too_old_causes_a_resync(self, live):
        with listening(live) as listener:
            publish(live, 1)
            first, _, _ = listener.next("event")
        publish(live, event_module.MAX_KEPT + 1)

        with listening(live, last=first) as listener:
            assert listener.next("resync", "event", "summary")[1] == "resync"

    def test_events_can_be_filtered_by_kind(self, live):
        with listening(live, "?state=silent,stale") as listener:
            for kind in ("good", "retuned", "stale"):
                live.call(lambda service, k=kind: service.bus.publish("event", {"kind": k}, k))

            assert listener.next("event")[2] == {"kind": "stale"}

    @pytest.mark.parametrize("names", ["a b", "a,,b", "-a", ",", "a" * 65, ",".join(["a"] * 101)])
    def test_invalid_names_of_sensors_are_refused(self, live, names):
        assert live.client.get("/v1/stream", params={"sensors": names}).status_code == 422


class TestSlowClients:
    def test_a_client_that_does_not_read_does_not_delay_others(self, live, counted):
        counted("D4", 3)
        before = len(live.service.bus.subscribers)
        with listening(live) as stalled, listening(live) as reader:
            assert len(live.service.bus.subscribers) == before + 2
            for _ in range(40):
                live.call(lambda service: service.bus.publish("event", "x" * 200_000))
                assert live.client.get("/livez").status_code == 200
                reader.next("event")

            assert stalled.status == 200

    def test_the_stream_of_a_client_that_does_not_read_ends(self, live, monkeypatch):
        until_no_subscriber(live)
        monkeypatch.setattr(connections, "READ_TIMEOUT", 0.05)
        with listening(live):
            live.call(lambda service: service.bus.publish("event", "x" * 20_000_000))

            until_no_subscriber(live)

    def test_a_client_that_leaves_at_the_moment_of_an_event_is_forgotten(self):
        async def run():
            bus, subscriber = event_module.EventBus(), event_module.Subscriber()
            bus.subscribe(subscriber)

            async def read():
                async for _ in bus.stream(subscriber):
                    pass

            task = asyncio.create_task(read())
            await asyncio.sleep(0.01)
            bus.publish("event", 1)
            await asyncio.sleep(0)  # the stream is about to wake up
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=LIMIT)
            return bool(done)

        assert asyncio.run(run())

    def test_the_queue_of_a_slow_client_is_bounded_and_a_resync_follows(self, counted):
        counted("D4", 1000)

        assert asyncio.run(queue_of_a_stalled_client()) == (256, "resync")

    def test_the_test_notices_an_unbounded_queue(self, monkeypatch, counted):
        counted("D4", 1)
        monkeypatch.setattr(event_module, "MAX_QUEUED", 10**9)

        assert asyncio.run(queue_of_a_stalled_client()) != (256, "resync")

    def test_more_than_200_event_streams_are_refused(self, live, counted):
        counted("D4", 201)
        until_no_subscriber(live)
        listeners = [Listener(live) for _ in range(200)]
        try:
            answer = live.client.get("/v1/stream")

            assert {each.status for each in listeners} == {200}
            assert (answer.status_code, answer.json()["code"]) == (503, "sr-too-many-streams")
            assert int(answer.headers["retry-after"]) > 0
        finally:
            for each in listeners:
                each.close()
        until_no_subscriber(live)
        with listening(live) as listener:
            assert listener.status == 200


async def queue_of_a_stalled_client():
    """Return the queue length of a client that reads nothing, and its first kind of event."""
    bus, subscriber = event_module.EventBus(), event_module.Subscriber()
    bus.subscribe(subscriber)
    for i in range(1000):
        bus.publish("event", i)
    waiting = len(subscriber.queue)
    pieces = bus.stream(subscriber)
    await anext(pieces)
    first = await anext(pieces)
    await pieces.aclose()
    return waiting, first.split(b"\n")[1].decode().removeprefix("event: ")


def until_no_subscriber(live):
    wait_until(lambda: not live.service.bus.subscribers, "an end of all streams")


def test_a_stopping_service_sends_a_shutdown_event(tmp_path):
    with Live(tmp_path / "a.db") as served:
        listeners = [Listener(served) for _ in range(5)]
        served.loop.call_soon_threadsafe(served.server.stop)
        for each in listeners:
            assert each.next("shutdown")[1] == "shutdown"
            with pytest.raises(EOFError):
                each.next("event")
            each.close()
