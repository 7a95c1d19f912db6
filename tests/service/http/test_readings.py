"""Readings over HTTP: accepted and refused rows, and their statuses."""

import gzip
import json
import os
import signal
import time

import pytest
import zstandard

from streamridge_service.service import forecasts
from tests.support.service.in_process import settled
from tests.support.service.live_server import START, STEPS, readings, stamp
from tests.support.service.request_bodies import CSV, JSON, NDJSON, PARQUET
from tests.support.service.request_list import REQUESTS

# Older than the newest readings of the service, so that "now" does not change.
LATER = START + (STEPS - 40) * 900


def post(live, body, content_type=JSON, **params):
    headers = {"Content-Type": content_type}
    return live.client.post("/v1/readings", content=body, headers=headers, params=params)


def row(name, value, step=0):
    return {"sensor": name, "time": stamp(LATER + 900 * step), "value": value}


def counts(answer):
    """Return the number of rows by outcome, without zeros."""
    names = ("accepted", "duplicate", "late", "held", "replaced", "implausible", "refused")
    return {name: answer.json()[name] for name in names if answer.json()[name]}


class TestRequestList:
    def test_each_request_of_the_list_gets_its_code(self, live, counted):
        counted("B8", len(REQUESTS))
        wrong = [
            (name, right, answer.text)
            for name, content_type, body, right in REQUESTS
            if not is_right(answer := sent(live, content_type, body), right)
        ]

        assert wrong == []


def sent(live, content_type, body):
    """Send a request of the list, with a time at which this service has readings."""
    body = body.replace(b"2026-06-13T08:15:00", stamp(LATER).rstrip("Z").encode())
    return post(live, body, content_type, on_conflict="replace")


def is_right(answer, right):
    """Return whether a response is the expected one."""
    if right == "taken":
        return answer.status_code == 200
    told = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    if right.startswith("all: "):
        return answer.status_code == 400 and told["code"] == right.removeprefix("all: ")
    codes = [each["code"] for each in told["refusals"]]
    return answer.status_code == 422 and codes == [right] and told["code"] == right


class TestRows:
    def test_a_repeated_row_is_a_duplicate(self, live):
        first, second = live.post([row("once", 5)]), live.post([row("once", 5)])

        assert (first.status_code, counts(first)) == (200, {"accepted": 1})
        assert (second.status_code, counts(second)) == (200, {"duplicate": 1})
        assert [each.headers["streamridge-written"] for each in (first, second)] == ["1", "0"]

    def test_another_value_for_a_time_is_refused_or_replaces_the_first(self, live):
        live.post([row("twice", 5)])

        refused, replaced = (
            live.post([row("twice", 6)]),
            live.post([row("twice", 6)], on_conflict="replace"),
        )

        assert (refused.status_code, refused.json()["code"]) == (422, "sr-conflict")
        assert counts(replaced) == {"replaced": 1}

    def test_valid_rows_are_stored_although_others_are_refused(self, live):
        bad = {**row("beside", "5", 1)}

        answer = live.post([row("beside", 1), bad, row("beside", 2, 2)])

        assert answer.status_code == 422
        assert answer.headers["streamridge-written"] == "2"
        assert counts(answer) == {"accepted": 2, "refused": 1}
        [refusal] = answer.json()["refusals"]
        assert (refusal["line"], refusal["code"], refusal["column"]) == (
            2,
            "sr-not-a-number",
            "value",
        )

    def test_atomic_stores_nothing_if_a_row_is_refused(self, live):
        rows = [row("atomic", 1), row("atomic", "5", 1)]

        refused, after = live.post(rows, atomic="true"), live.post(rows[:1])

        assert refused.headers["streamridge-written"] == "0"
        assert counts(refused) == {"refused": 1}
        assert counts(after) == {"accepted": 1}

    def test_at_most_a_hundred_refusals_are_listed_and_all_are_counted(self, live):
        answer = live.post([row("many", "no", i) for i in range(250)])

        assert len(answer.json()["refusals"]) == 100
        assert counts(answer) == {"refused": 250}

    def test_rows_refused_for_several_reasons_have_a_common_code(self, live):
        answer = live.post([row("odd", "5"), {**row("odd", 5), "time": "2026-01-01T00:00:00"}])

        assert answer.json()["code"] == "sr-refused-rows"

    def test_late_and_implausible_rows_are_counted_separately(self, live):
        live.client.put("/v1/sensors/bounded", json={"bounds": [0, 100]})
        live.post([row("bounded", 50, 10)])

        assert counts(live.post([row("bounded", 60, 0)])) == {"late": 1}
        assert counts(live.post([row("bounded", 500, 11)])) == {"implausible": 1}

    def test_readings_of_an_archived_sensor_are_refused(self, live):
        live.post([row("archived", 1)])
        live.client.delete("/v1/sensors/archived")

        answer = live.post([row("archived", 2, 1)])

        assert (answer.status_code, answer.json()["code"]) == (410, "sr-archived")
        live.client.put("/v1/sensors/archived", json={})
        assert counts(live.post([row("archived", 2, 1)])) == {"accepted": 1}

    def test_too_many_sensors_are_refused_with_a_retry(self, live, monkeypatch):
        known = len(live.service.intake.sensors)
        monkeypatch.setattr(live.service.intake, "_max_sensors", known)

        answer = live.post([row("one-too-many", 1)])

        assert (answer.status_code, answer.json()["code"]) == (429, "sr-too-many-sensors")
        assert int(answer.headers["retry-after"]) > 0

    def test_backfill_makes_one_forecast_at_the_end(self, live):
        past = readings("past", START, range(100))

        answer = live.post(past, mode="backfill")
        live.do(settled)

        assert counts(answer) == {"accepted": 100}
        sensor = live.service.intake.sensors["past"].id
        issued = live.do(
            lambda service: service.read(lambda ledger: len(list(ledger.forecasts(sensor))))
        )
        assert issued <= 1


class TestFuture:
    def now(self, guarded, steps):
        return stamp((int(time.time()) // 900 + steps) * 900)

    @pytest.mark.parametrize(
        ("steps", "status", "what"),
        [(0, 200, "accepted"), (40, 200, "held"), (4 * 24 * 3, 422, "refused")],
    )
    def test_rows_ahead_of_the_clock(self, guarded, steps, status, what):
        rows = [{"sensor": f"ahead-{steps}", "time": self.now(guarded, steps), "value": 1}]

        answer = guarded.post(rows)

        assert (answer.status_code, counts(answer)) == (status, {what: 1})

    def test_held_rows_are_stored_on_release(self, guarded):
        guarded.post([{"sensor": "held", "time": self.now(guarded, 0), "value": 1}])
        guarded.post([{"sensor": "held", "time": self.now(guarded, 50), "value": 2}])

        released = guarded.client.post("/v1/sensors/held/release")

        assert released.json() == {"sensor": "held", "released": 1}
        assert guarded.client.post("/v1/sensors/held/release").json()["released"] == 0


ONE = {"sensor": "kinds", "time": stamp(LATER), "value": 1.5}
BODIES = {
    JSON: json.dumps({"readings": [ONE]}).encode(),
    NDJSON: json.dumps(ONE).encode(),
    CSV: f"sensor,time,value\nkinds,{stamp(LATER)},1.5\n".encode(),
}


class TestFormats:
    @pytest.mark.parametrize("packing", ["identity", "gzip", "zstd"])
    @pytest.mark.parametrize("content_type", BODIES)
    def test_all_formats_and_encodings_store_the_reading(self, live, content_type, packing):
        pack = {"identity": bytes, "gzip": gzip.compress, "zstd": zstandard.compress}[packing]
        headers = {"Content-Type": content_type, "Content-Encoding": packing}
        body = pack(BODIES[content_type])

        answer = live.client.post("/v1/readings", content=body, headers=headers)

        assert answer.status_code == 200
        assert counts(answer) in ({"accepted": 1}, {"duplicate": 1})

    @pytest.mark.parametrize(
        ("header", "value"),
        [
            ("Content-Type", "text/xml"),
            ("Content-Type", PARQUET),
            ("Content-Encoding", "br"),
            ("Content-Type", "text/csv; charset=latin1"),
        ],
    )
    def test_other_types_and_encodings_are_refused(self, live, header, value):
        headers = {"Content-Type": JSON, header: value}

        answer = live.client.post("/v1/readings", content=b"[]", headers=headers)

        assert (answer.status_code, answer.json()["code"]) == (415, "sr-unsupported-type")


class TestForecastsInThePost:
    def test_a_post_returns_the_next_forecasts_of_its_sensors(self, live):
        rows = [row("asked-a", 5), row("asked-b", 7)]

        answer = live.post(rows, forecast="true")

        told = answer.json()["forecasts"]
        assert [each["sensor"] for each in told] == ["asked-a", "asked-b"]
        for each in told:
            [step] = each["items"]
            assert step["time"] == stamp(LATER + 900)
            assert step["lower"] <= step["value"] <= step["upper"]

    def test_a_forecast_that_is_not_made_yet_is_not_replaced_by_an_older_one(
        self, live, monkeypatch
    ):
        [worker] = live.service.forecasts.pool.workers
        live.post([row("asked-c", 5)], forecast="true")
        os.kill(worker.pid, signal.SIGSTOP)
        monkeypatch.setattr(forecasts, "FORECAST_TIMEOUT", 0.05)

        try:
            answer = live.post([row("asked-c", 6, step=1)], forecast="true")
        finally:
            os.kill(worker.pid, signal.SIGCONT)

        assert (answer.status_code, counts(answer)) == (200, {"accepted": 1})
        [told] = answer.json()["forecasts"]
        assert (told["source"], told["items"]) == ("none", [])
        assert "not ready yet" in told["reason"]


class TestLineProtocol:
    def write(self, live, body, **params):
        return live.client.post("/api/v2/write", content=body, params=params)

    def test_each_numeric_field_is_a_reading(self, live):
        body = f'flow,road=A2 cars=12i,speed=81.5,note="wet",open=true {LATER}'.encode()

        answer = self.write(live, body, precision="s", bucket="b", org="o")

        assert (answer.status_code, answer.content) == (204, b"")
        names = live.client.get("/v1/sensors", params={"q": "road:a2", "sort": "id"}).json()
        assert [each["id"] for each in names["items"]] == [
            "flow:cars:road:A2",
            "flow:speed:road:A2",
        ]

    def test_a_refused_line_is_listed_by_its_number(self, live):
        body = f"flow,road=A4 cars=1 {LATER}\nflow,road=A4 cars=nine {LATER}".encode()

        answer = self.write(live, body, precision="s")

        assert answer.status_code == 422
        assert [each["line"] for each in answer.json()["refusals"]] == [2]

    def test_a_token_with_the_scheme_of_influxdb_is_accepted(self, guarded, secrets):
        headers = {"Authorization": f"Token {secrets['write']}"}

        assert guarded.client.post("/api/v2/write", headers=headers).status_code == 204


class TestUnavailable:
    def test_a_stopping_service_answers_503(self, unchecked, monkeypatch):
        monkeypatch.setattr(unchecked.service.health, "state", "stopping")

        answer = unchecked.post([row("stopping", 1)])

        assert (answer.status_code, answer.json()["code"]) == (503, "sr-stopping")
        assert int(answer.headers["retry-after"]) > 0

    def test_a_full_disk_answers_507(self, unchecked, monkeypatch):
        monkeypatch.setattr(unchecked.service.health, "disk", {"free": 1000, "data": 0})

        answer = unchecked.post([row("full", 1)])

        assert (answer.status_code, answer.json()["code"]) == (507, "sr-disk-full")
        assert int(answer.headers["retry-after"]) > 0
