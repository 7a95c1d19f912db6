"""A client that sends many new names is refused and does not disturb others."""

import httpx
import msgspec
import pytest

from tests.support.service.live_server import START, process, stamp
from tests.support.service.request_bodies import NDJSON
from tests.support.waiting import LIMIT

ALLOWED = 50
AT_ONCE = 20_000
ROOM = 64_000_000
LINE = msgspec.json.Encoder()


def lines(names, step):
    """Return a reading of each name at a step, as NDJSON."""
    at = stamp(START + 900 * step)
    return b"\n".join(
        LINE.encode({"sensor": name, "time": at, "value": step % 7}) for name in names
    )


def sent(client, names, step):
    return client.post("/v1/readings", content=lines(names, step), headers={"Content-Type": NDJSON})


@pytest.mark.parametrize("cases", [40_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_too_many_new_names_use_little_memory_and_do_not_disturb_known_sensors(
    tmp_path, cases, counted
):
    known = [f"known-{i}" for i in range(ALLOWED)]
    with (
        process(tmp_path / "a.db", max_sensors=ALLOWED) as served,
        httpx.Client(base_url=served.url, timeout=LIMIT) as client,
    ):
        assert sent(client, known, 0).json()["accepted"] == ALLOWED
        sent(client, [f"first-{i}" for i in range(AT_ONCE)], 0)  # allocated once
        served.forget_peak()
        before = served.memory("VmRSS")

        for step, first in enumerate(range(0, cases, AT_ONCE), start=1):
            refused = sent(client, [f"new-{i}" for i in range(first, first + AT_ONCE)], step)
            taken = sent(client, known, step)

            assert (refused.status_code, refused.json()["code"]) == (429, "sr-too-many-sensors")
            assert (refused.json()["accepted"], refused.json()["refused"]) == (0, AT_ONCE)
            assert int(refused.headers["retry-after"]) > 0
            assert (taken.status_code, taken.json()["accepted"]) == (200, ALLOWED)

        assert served.memory("VmHWM") - before <= ROOM
        forecasts = client.get("/v1/forecasts", params={"limit": 1000}).json()
        assert forecasts["total"] == ALLOWED
        asked = client.get(f"/v1/sensors/{known[-1]}/forecasts").json()
    assert asked["items"][0]["time"] == stamp(START + 900 * (step + 1))
    counted("B11", cases)
