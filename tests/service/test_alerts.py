"""Alerts: what fires and ends them, and how they are delivered."""

import asyncio
import json
import shlex
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from streamridge_service.service import alerts
from streamridge_service.service.alerts import Alerts, destinations_of
from streamridge_service.service.answers import EventItem
from tests.support.service.live_server import START, Live, readings
from tests.support.waiting import LIMIT, wait_until, wait_until_async

WRITE = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())"


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch):
    monkeypatch.setattr(alerts, "GATHER", 0.0)
    monkeypatch.setattr(alerts, "ATTEMPTS", (0.0, 0.0, 0.0))


class Receiver:
    """A web server that remembers what is posted; it answers with these statuses, then 200."""

    def __init__(self, *statuses):
        self.statuses, self.bodies, self.came = list(statuses), [], threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                receiver.bodies.append(
                    json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                )
                status = receiver.statuses.pop(0) if receiver.statuses else 200
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
                receiver.came.set()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def event(kind, sensor="a", reason="why"):
    return EventItem(1, "2026-06-13T08:15:00Z", kind, sensor, reason)


def delivered(destinations, *events):
    """Notice events, deliver their alerts, and return the alerts' counts and the failures."""
    failures = []

    async def run():
        sender = Alerts(destinations, failures.append)
        for each in events:
            sender.notice(each)
        task = asyncio.create_task(sender.run())
        await wait_until_async(sender.counts.total, "a delivery")
        task.cancel()
        return sender.counts

    return asyncio.run(run()), failures


def alerts_of(*kinds):
    """Return the alerts after events of one sensor, as pairs of status and kind."""
    bodies = []
    delivered([bodies.append], *(event(kind) for kind in kinds))
    [message] = map(json.loads, bodies)
    return [(each["status"], each["kind"]) for each in message["alerts"]]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["silent"], [("firing", "silent")]),
        (["stale", "silent", "good"], [("firing", "silent"), ("resolved", "silent")]),
        (["degraded", "degraded"], [("firing", "degraded")]),
        (
            ["silent", "degraded"],
            [("firing", "silent"), ("resolved", "silent"), ("firing", "degraded")],
        ),
        (["outside", "good", "inside"], [("firing", "outside"), ("resolved", "outside")]),
    ],
)
def test_trouble_fires_an_alert_and_its_end_another(kinds, expected):
    assert alerts_of(*kinds) == expected


def test_events_of_about_the_same_time_share_a_message(monkeypatch):
    monkeypatch.setattr(alerts, "MAX_ALERTS", 3)
    bodies = []

    counts, _ = delivered([bodies.append], *(event("silent", f"s{i}") for i in range(5)))

    [message] = map(json.loads, bodies)
    assert [each["sensor"] for each in message["alerts"]] == ["s0", "s1", "s2"]
    assert message["omitted"] == 2
    assert counts == {"sent": 5}


def test_an_alert_is_posted_as_json():
    with Receiver() as receiver:
        counts, failures = delivered(destinations_of(receiver.url, None), event("silent"))

    assert receiver.bodies == [
        {
            "alerts": [
                {
                    "status": "firing",
                    "kind": "silent",
                    "sensor": "a",
                    "time": "2026-06-13T08:15:00Z",
                    "reason": "why",
                }
            ],
            "omitted": 0,
        }
    ]
    assert (counts, failures) == ({"sent": 1}, [])


def test_a_failed_delivery_is_tried_again():
    with Receiver(500, 503) as receiver:
        counts, failures = delivered(destinations_of(receiver.url, None), event("silent"))

    assert len(receiver.bodies) == 3
    assert (counts, failures) == ({"sent": 1}, [])


def test_a_redirect_is_not_followed_and_a_failure_is_reported():
    with Receiver(302, 302, 302) as receiver:
        counts, failures = delivered(destinations_of(receiver.url, None), event("silent"))

    assert len(receiver.bodies) == 3
    assert counts == {"failed": 1}
    assert failures == ["1 alert not delivered: the answer was 302"]


def test_a_command_gets_alerts_on_its_standard_input(tmp_path):
    file = tmp_path / "alerts.json"
    command = shlex.join([sys.executable, "-c", WRITE, str(file)])

    counts, failures = delivered(destinations_of(None, command), event("degraded"))

    assert json.loads(file.read_text())["alerts"][0]["kind"] == "degraded"
    assert (counts, failures) == ({"sent": 1}, [])


def test_a_failing_command_is_reported_without_its_text():
    command = shlex.join([sys.executable, "-c", "import sys; sys.exit(7)", "secret"])

    counts, failures = delivered(destinations_of(None, command), event("degraded"))

    assert counts == {"failed": 1}
    assert failures == ["1 alert not delivered: the command exited with 7"]


def test_a_service_posts_an_alert_when_readings_leave_the_band(tmp_path):
    calm, wild = [100.0 + i % 3 for i in range(60)], [100.0, 900.0, 100.0, 900.0, 100.0, 900.0]
    with (
        Receiver() as receiver,
        Live(tmp_path / "a.db", alert_url=receiver.url, alert_outside=1) as served,
    ):
        for each in readings("a", START, calm + wild):
            served.post([each])
        assert receiver.came.wait(LIMIT), "no alert was posted"

        told = receiver.bodies[0]["alerts"][0]
        item = served.client.get("/v1/sensors/a").json()
        wait_until(
            lambda: "streamridge_alerts_sent_total 1" in served.client.get("/metrics").text,
            "a count of the alert",
        )

    assert (told["status"], told["kind"], told["sensor"]) == ("firing", "outside", "a")
    assert "outside the interval" in told["reason"]
    assert (item["score"] > 1) == (item["outside_in_a_row"] > 0)
