"""What goes wrong is told in one shape; what nobody expected is told to the log alone."""

import io
import json
import random

import pytest
import structlog

from streamridge.service.ledger.base import DiskFullError, StorageAwayError, StorageFailedError
from streamridge.service.problems import CATALOGUE
from streamridge.service.web import logs
from streamridge.service.web.routes import live as live_routes
from tests.service.web.live import raw

SECRETS = ("Traceback", "line ", ".py", "SELECT", "/tmp", "apsw", "sqlite", "Error:")


def lines_of(logged, since):
    """Return what was logged since a place, each line as the JSON it must be."""
    return [json.loads(line) for line in logged.getvalue()[since:].splitlines()]


class TestUnexpected:
    @pytest.fixture
    def broken(self, monkeypatch):
        """Break a route of the service."""

        def fail(service):
            raise RuntimeError("SELECT secret FROM /tmp/x\nsr_abcdefghijklmnop")

        monkeypatch.setattr(live_routes.views, "summary", fail)

    def test_the_answer_tells_nothing_but_where_to_look(self, live, broken, logged, counted):
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
        ],
    )
    def test_a_storage_that_cannot_be_read_is_told(self, live, monkeypatch, error, status, code):
        async def fail(question):
            raise error

        monkeypatch.setattr(live.service, "read", fail)

        answer = live.client.get("/v1/events")

        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert int(answer.headers["retry-after"]) > 0


class TestCatalogue:
    def test_every_refusal_of_a_page_is_listed_there(self, live):
        told = live.client.get("/problems", headers={"Accept": "application/json"}).json()

        assert {each["code"] for each in told["items"]} == set(CATALOGUE)

    def test_people_find_every_code_by_its_link(self, live):
        page = live.client.get("/problems", headers={"Accept": "text/html"}).text

        assert [code for code in CATALOGUE if f'id="{code}"' not in page] == []

    def test_a_refusal_says_what_and_why_and_what_to_do(self, live):
        told = live.client.get("/v1/sensors/nobody").json()

        assert told == {
            "type": "/problems#sr-unknown-sensor",
            "code": "sr-unknown-sensor",
            "title": "There is no such sensor",
            "status": 404,
            "detail": "There is no sensor 'nobody'.",
            "remedy": "See /v1/sensors for those known.",
            "retry": False,
        }


class TestLogs:
    def test_a_thousand_odd_requests_leave_no_token_and_no_traceback(
        self, guarded, secrets, logged, counted
    ):
        counted("E11", 1000)
        seed = 20_261_117
        since, chance = len(logged.getvalue()), random.Random(seed)
        for _ in range(1000):
            assert raw(guarded.port, odd_request(chance, secrets["read"]))[0] < 500, seed

        guarded.call(lambda service: None)  # by now, the last request is logged
        text = logged.getvalue()[since:]
        assert "Traceback" not in text
        assert not [name for name, secret in secrets.items() if secret in text]
        assert len(lines_of(logged, since)) >= 1000

    def test_a_line_break_does_not_make_a_line(self, live, logged):
        since = len(logged.getvalue())

        live.client.get("/v1/sensors/a%0a%7B%22event%22%3A%22forged%22%7D")

        events = [each["event"] for each in lines_of(logged, since)]
        assert "forged" not in events

    def test_what_other_libraries_log_is_a_masked_line_too(self):
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
    """Return a request that makes little sense, with a token somewhere in it."""
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
