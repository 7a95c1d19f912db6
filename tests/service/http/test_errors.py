"""Problems have one form; details of unexpected errors appear only in the log."""

import io
import json
import logging
import random
import subprocess
import sys
from collections import Counter

import pytest
import structlog

from streamridge_service import logs
from streamridge_service.ledger.errors import DiskFullError, StorageAwayError, StorageFailedError
from streamridge_service.problems import CATALOGUE
from streamridge_service.service.service import Service
from tests.support.service.live_server import raw
from tests.support.waiting import LIMIT

SECRETS = ("Traceback", "line ", ".py", "SELECT", "/tmp", "apsw", "sqlite", "Error:")


# Each of these faults would print lines that are not JSON.
UNCAUGHT = """
import threading, warnings
from streamridge_service import logs

class Deleted:
    def __del__(self):
        raise ValueError("fault 3")

def fail():
    raise ValueError("fault 2")

logs.configure("info")
with logs.everything_logged():
    warnings.warn("fault 1")
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Deleted()
    raise ValueError("fault 4")
"""


def lines_of(logged, since):
    """Return the log lines since a position, as JSON."""
    return [json.loads(line) for line in logged.getvalue()[since:].splitlines()]


class TestErrors:
    @pytest.fixture
    def broken(self, monkeypatch):
        """Break a route of the service."""

        def fail(self):
            raise RuntimeError("SELECT secret FROM /tmp/x\nsr_abcdefghijklmnop")

        monkeypatch.setattr(Service, "summary", fail)

    def test_an_unexpected_error_reveals_only_the_request_id(self, live, broken, logged, counted):
        counted("E11", 1)
        since = len(logged.getvalue())

        answer = live.client.get("/v1/summary")

        told = answer.json()
        assert (answer.status_code, told["code"]) == (500, "sr-internal")
        assert answer.headers["content-type"] == "application/problem+json"
        assert not [word for word in SECRETS if word in answer.text]
        assert "secret" not in answer.text
        assert told["request"] == answer.headers["x-request-id"]
        [line] = [each for each in lines_of(logged, since) if each["event"] == "a request failed"]
        assert line["request_id"] == told["request"]
        assert "RuntimeError" in line["exception"]
        assert "sr_***" in line["exception"]
        assert "sr_abc" not in logged.getvalue()

    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (StorageAwayError("gone"), 503, "sr-storage-away"),
            (StorageFailedError("broken"), 503, "sr-storage-failed"),
            (DiskFullError("full"), 507, "sr-disk-full"),
            (MemoryError(), 503, "sr-busy"),
        ],
    )
    def test_errors_of_storage_and_memory_have_their_own_codes(
        self, live, monkeypatch, error, status, code
    ):
        async def fail(question):
            raise error

        monkeypatch.setattr(live.service, "read", fail)

        answer = live.client.get("/v1/events")

        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert int(answer.headers["retry-after"]) > 0

    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [(MemoryError(), 503, "sr-busy"), (RuntimeError(), 500, "sr-internal")],
    )
    def test_a_write_that_fails_for_lack_of_memory_may_be_tried_again(
        self, live, monkeypatch, error, status, code
    ):
        def fail(*_):
            raise error

        monkeypatch.setattr(live.service.ledger, "append", fail)

        answer = live.post([{"sensor": "a", "time": "2026-01-01T00:00:00Z", "value": 1}])

        assert (answer.status_code, answer.json()["code"]) == (status, code)


class TestCatalogue:
    def test_the_catalogue_lists_every_code(self, live):
        told = live.client.get("/problems", headers={"Accept": "application/json"}).json()

        assert {each["code"] for each in told["items"]} == set(CATALOGUE)

    def test_the_catalogue_page_has_an_anchor_for_every_code(self, live):
        page = live.client.get("/problems", headers={"Accept": "text/html"}).text

        assert [code for code in CATALOGUE if f'id="{code}"' not in page] == []

    def test_a_problem_names_its_cause_and_its_remedy(self, live):
        told = live.client.get("/v1/sensors/nobody").json()

        assert told == {
            "type": "/problems#sr-unknown-sensor",
            "code": "sr-unknown-sensor",
            "title": "The sensor does not exist",
            "status": 404,
            "detail": "There is no sensor 'nobody'.",
            "remedy": "See /v1/sensors for all sensors.",
            "retry": False,
        }


class TestLogs:
    @pytest.mark.parametrize("cases", [250, pytest.param(1000, marks=pytest.mark.slow)])
    def test_malformed_requests_log_no_token_and_no_traceback(
        self, guarded, secrets, logged, cases, counted
    ):
        counted("E11", cases)
        seed = 20_261_117
        since, chance = len(logged.getvalue()), random.Random(seed)
        for _ in range(cases):
            assert raw(guarded.port, odd_request(chance, secrets["read"]))[0] < 500, seed

        guarded.call(lambda service: None)  # the last request is logged by now
        text = logged.getvalue()[since:]
        assert "Traceback" not in text
        assert not [name for name, secret in secrets.items() if secret in text]
        assert 0 < len(lines_of(logged, since)) < cases / 2

    def test_similar_lines_are_counted_instead_of_written(self, capsys):
        stream, before = io.StringIO(), structlog.get_config()
        # Services of other tests ask now and then which intervals are over.
        now = 0.0
        limit = logs.RepeatLimit(clock=lambda: now)
        try:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(logs, "_limit", limit)
                logs.configure("info", stream)
                for i in range(400):
                    structlog.get_logger("a").info("answered", status=401, path=f"/{i}")
                    logging.getLogger("b").warning("Invalid request %d", i)
                now = logs.INTERVAL
                logs.report_left_out()
        finally:
            structlog.configure(**before)

        lines = [json.loads(each) for each in stream.getvalue().splitlines()]
        written = Counter(line["event"][:8] for line in lines)
        assert written["answered"] == written["Invalid "] == logs.MOST_SIMILAR
        counts = {line["of"]: line["count"] for line in lines if "of" in line}
        assert counts == dict.fromkeys(("answered", "Invalid request %d"), 400 - logs.MOST_SIMILAR)
        assert capsys.readouterr().err == ""

    def test_a_line_break_in_a_path_cannot_forge_a_log_line(self, live, logged):
        since = len(logged.getvalue())

        live.client.get("/v1/sensors/a%0a%7B%22event%22%3A%22forged%22%7D")

        events = [each["event"] for each in lines_of(logged, since)]
        assert "forged" not in events

    def test_warnings_and_errors_that_nothing_catches_are_json(self):
        """Also those of threads and of objects that are being deleted."""
        done = subprocess.run(
            [sys.executable, "-c", UNCAUGHT], capture_output=True, text=True, timeout=LIMIT
        )

        lines = [json.loads(line) for line in done.stderr.splitlines()]
        told = [line.get("exception", line["event"]) for line in lines]
        assert len(told) == 4, done.stderr
        for number, text in enumerate(told, 1):
            assert f"fault {number}" in text

    def test_log_lines_are_json_with_masked_tokens(self):
        stream = io.StringIO()
        before = structlog.get_config()
        try:
            logs.configure("info", stream)
            structlog.get_logger("a").info(
                "own", token="Bearer sr_0123456789", more=["sr_0123456789"]
            )
            structlog.get_logger("a").debug("below")
        finally:
            structlog.configure(**before)

        [line] = [json.loads(each) for each in stream.getvalue().splitlines()]
        assert (line["token"], line["more"], line["level"]) == ("Bearer sr_***", ["sr_***"], "info")


def odd_request(chance, token):
    """Return a malformed request that contains a token."""
    path = chance.choice(
        [
            "/v1/sensors",
            "/v1/sensors/north/history",
            "/v1/readings",
            "/v1/gaps",
            "/nope",
            "/v1/events",
        ]
    )
    method = chance.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE"])
    noise = "".join(
        chance.choice("abc%20&=+;/.:-_~1234567890") for _ in range(chance.randrange(40))
    )
    query = chance.choice(["", f"?{noise}", f"?limit={noise}", f"?q={token}", f"?cursor={token}"])
    lines = [f"{method} {path}{query} HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += [
        chance.choice(
            [f"Authorization: Bearer {token}", f"Authorization: {noise}", f"X-A: {token}"]
        )
    ]
    lines += [
        f"Accept: {noise or '*/*'}",
        f"Content-Type: {chance.choice(['application/json', noise])}",
    ]
    body = chance.randbytes(chance.randrange(30))
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
