"""Readings, forecasts and actions over HTTP, on each database, and after a restart.

The other tests of the interface run on SQLite: their results are the same on any database.
"""

import gzip
import json

import pytest

from tests.support.service.in_process import settled
from tests.support.service.live_server import START, Live, daily, readings, stamp
from tests.support.service.request_bodies import CSV, JSON, NDJSON

PAST = 5 * 96
VALUES = daily(PAST + 8)


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.slow), "postgres"])
def address(request, tmp_path):
    """Return the address of a new database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "a.db")
    return request.getfixturevalue("postgres").new_database()


def body_of(kind, step):
    """Return the reading of a step in a format."""
    at, value = START + 900 * step, VALUES[step]
    row = {"sensor": "north", "time": stamp(at), "value": value}
    return {
        JSON: json.dumps([row]).encode(),
        NDJSON: json.dumps(row).encode(),
        CSV: f"sensor,time,value\nnorth,{stamp(at)},{value}\n".encode(),
    }[kind]


def ask(served, path, **params):
    answer = served.client.get(f"/v1/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_restarted_service_gives_the_same_answers(address, logged, counted):
    counted("section 7", 1)
    with Live(address) as served:
        past = readings("north", START, VALUES[:PAST])
        assert served.post(past, mode="backfill").json()["accepted"] == PAST
        served.do(settled)
        for step, kind in enumerate((JSON, NDJSON, CSV, JSON), start=PAST):
            answer = served.client.post(
                "/v1/readings",
                content=gzip.compress(body_of(kind, step)),
                headers={"Content-Type": kind, "Content-Encoding": "gzip"},
            )
            assert (answer.status_code, answer.json()["accepted"]) == (200, 1), answer.text
        at = START + 900 * (PAST + 4)
        line = f"north value={VALUES[PAST + 4]} {at}".encode()
        written = served.client.post("/api/v2/write", content=line, params={"precision": "s"})
        assert written.status_code == 204
        again = served.post(readings("north", START, VALUES[:1]))
        conflict = served.post(readings("north", START, [VALUES[0] + 1]))
        assert again.json()["duplicate"] == 1
        assert (conflict.status_code, conflict.json()["code"]) == (422, "sr-conflict")
        declared = served.client.put("/v1/sensors/south", json={"label": "Süd", "bounds": [0, 9]})
        assert declared.status_code == 201
        for action, body in (
            ("set", {"values": {"regularization": 7.5}}),
            ("freeze", {"names": ["regularization"]}),
        ):
            done = served.client.post(f"/v1/sensors/north/{action}", json=body)
            assert done.json() == {"sensor": "north", "done": action}
        served.do(settled)
        before = looked(served)

    with Live(address) as served:
        after = looked(served)
        # Some events are recorded periodically, and may have been added meanwhile.
        known, events = before.pop("events"), after.pop("events")
        assert (after, events[: len(known)]) == (before, known)
        assert served.post(readings("north", at + 900, VALUES[PAST + 5 :])).json()["accepted"] == 3
        served.do(settled)
        [step] = ask(served, "sensors/north/forecasts")["items"]

    assert before["forecast"]["items"][0]["time"] == stamp(at + 900)
    assert before["history"][-1]["actual"] == VALUES[PAST + 4]
    assert before["history"][-1]["forecast"] is not None
    assert before["tuning"]["frozen"] == ["regularization"]
    assert before["tuning"]["values"]["regularization"] == pytest.approx(7.5)
    assert [each["id"] for each in before["sensors"]] == ["north", "south"]
    assert step["time"] == stamp(at + 4 * 900)
    assert step["lower"] <= step["value"] <= step["upper"]


def looked(served):
    """Return the answers of a service about its sensors."""
    return {
        "sensors": [
            {name: each[name] for name in ("id", "state", "newest", "label")}
            for each in ask(served, "sensors", sort="id")["items"]
        ],
        "forecast": ask(served, "sensors/north/forecasts"),
        "all": ask(served, "forecasts")["items"],
        "history": ask(served, "sensors/north/history")["items"],
        "tuning": ask(served, "sensors/north/tuning"),
        "gaps": ask(served, "sensors/north/gaps"),
        "accuracy": ask(served, "accuracy", by="hour"),
        "events": ask(served, "events")["items"],
    }
