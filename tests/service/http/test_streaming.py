"""Lists are queried and sent in parts: the content does not depend on the parts."""

import asyncio
import io

import polars
import pytest

from streamridge_service.http import streaming
from streamridge_service.http.routes import history as history_routes
from streamridge_service.http.streaming import StreamedResponse
from streamridge_service.ledger.errors import StorageAwayError
from tests.support.service.in_process import settled
from tests.support.service.live_server import START, STEPS, stamp
from tests.support.waiting import LIMIT

# The readings of the fixture, and steps before and after them that are not known.
RANGE = f"from={stamp(START - 9000)}&to={stamp(START + 900 * STEPS + 9000)}"
LISTS = (
    "/v1/sensors?limit=100&sort=id",
    f"/v1/sensors/north/history?{RANGE}",
    f"/v1/sensors/parts/history?{RANGE}",
    f"/v1/sensors/no-parts/history?{RANGE}",
    "/v1/forecasts",
    f"/v1/forecasts?at={stamp(START + 900 * STEPS)}",
    "/v1/gaps",
    "/v1/accuracy?by=hour",
)


@pytest.fixture(scope="module")
def live(live):
    """Add a sensor with long gaps, and one without readings."""
    rows = [
        {"sensor": "parts", "time": stamp(START + 900 * step), "value": step}
        for step in (3, 4, 40, 200, 201)
    ]
    assert live.post(rows, mode="backfill").status_code == 200
    live.client.put("/v1/sensors/no-parts", json={})
    live.do(settled)
    return live


@pytest.fixture
def parts_of_seven(monkeypatch):
    for module in (streaming, history_routes):
        monkeypatch.setattr(module, "PART", 7)


def content(live, path, kind):
    """Return a list as rows."""
    mark = "&" if "?" in path else "?"
    answer = live.client.get(f"{path}{mark}format={kind}" if kind != "json" else path)
    assert answer.status_code == 200, answer.text
    if kind == "json":
        return answer.json()
    if kind == "csv":
        return answer.text
    return polars.read_parquet(io.BytesIO(answer.content)).rows()


class TestParts:
    @pytest.mark.parametrize("path", LISTS)
    def test_parts_make_no_difference_to_json(self, live, path, request):
        whole = content(live, path, "json")
        request.getfixturevalue("parts_of_seven")

        assert content(live, path, "json") == whole

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    @pytest.mark.parametrize("path", LISTS[:-2])
    def test_parts_make_no_difference_to_tables(self, live, path, kind, request):
        whole = content(live, path, kind)
        request.getfixturevalue("parts_of_seven")

        assert content(live, path, kind) == whole

    def test_history_has_the_steps_between_the_first_and_the_last(self, live, parts_of_seven):
        items = content(live, LISTS[2], "json")["items"]

        times = [item["time"] for item in items]
        assert len(times) in (199, 200)  # a forecast of the next step may be known
        assert times == [stamp(START + 900 * step) for step in range(3, 3 + len(times))]
        known = {item["time"]: item["actual"] for item in items if item["actual"] is not None}
        assert known == {stamp(START + 900 * step): step for step in (3, 4, 40, 200, 201)}

    def test_an_error_of_the_first_part_is_a_problem(self, live, monkeypatch):
        def fail(*_):
            raise StorageAwayError("gone")

        monkeypatch.setattr(history_routes, "measured", fail)

        answer = live.client.get("/v1/sensors/north/history")

        assert (answer.status_code, answer.json()["code"]) == (503, "sr-storage-away")


class TestSending:
    def run(self, count, leave_after=None):
        """Send parts to a client, who may leave; return how many were made, and what was sent."""
        made, sent, leaves = [], [], asyncio.Event()

        async def parts():
            for part in range(count):
                made.append(part)
                yield b"%d" % part

        async def send(message):
            sent.append(message)
            if len(sent) - 1 == leave_after:
                leaves.set()
                await asyncio.sleep(LIMIT)  # the client reads no more

        async def receive():
            await leaves.wait()
            return {"type": "http.disconnect"}

        closed = []
        response = StreamedResponse(parts(), "text/plain", on_close=lambda: closed.append(True))
        app = response.to_asgi_response()
        asyncio.run(app({"type": "http"}, receive, send))
        assert closed == [True]
        return made, sent

    def test_all_parts_are_sent_in_order(self):
        _, sent = self.run(3)

        assert sent[0]["status"] == 200
        assert b"".join(message.get("body", b"") for message in sent) == b"012"
        assert [message.get("more_body") for message in sent[1:]] == [True] * 3 + [False]

    def test_a_part_is_made_after_the_client_has_accepted_the_one_before(self, counted):
        counted("D4", 1)

        made, _ = self.run(1000, leave_after=2)

        assert made == [0, 1]
