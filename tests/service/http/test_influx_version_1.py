"""Clients of InfluxDB 1: the library of Home Assistant, and requests of Telegraf."""

import gzip
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from influxdb import InfluxDBClient
from influxdb.exceptions import InfluxDBClientError

from tests.support.service.live_server import START
from tests.support.waiting import LIMIT

STEP = timedelta(minutes=15)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def newest():
    """Return the newest complete step, by the machine's clock."""
    now = datetime.now(UTC)
    return now - timedelta(
        minutes=now.minute % 15, seconds=now.second, microseconds=now.microsecond
    )


def connected(served, password=None):
    """Return a client as Home Assistant makes it: a password is given only if it is configured."""
    given = {} if password is None else {"username": "any", "password": password}
    return InfluxDBClient(
        host="127.0.0.1", port=served.port, database="home_assistant", timeout=LIMIT, **given
    )


def values(served, name):
    items = served.client.get(f"/v1/sensors/{name}/history").json()["items"]
    return [item["actual"] for item in items if item["actual"] is not None]


def state(measurement, entity, value, at):
    """Return a state as Home Assistant writes it; its measurement is the unit."""
    return {
        "measurement": measurement,
        "tags": {"domain": "sensor", "entity_id": entity},
        "time": at,
        "fields": {"value": value, "friendly_name_str": "Living room"},
    }


class TestHomeAssistant:
    def test_its_calls_work_with_a_token_as_password(self, guarded, secrets, newest, counted):
        counted("section 7", 2)
        client = connected(guarded, secrets["write"])

        client.write_points([])  # a test of the connection
        told = client.write_points(
            [state("°C", "kitchen", 20.5, newest), state("%", "kitchen", 48.0, newest)]
        )

        assert told is True
        assert values(guarded, "xB0_C:domain:sensor:entity_id:kitchen") == [20.5]
        assert values(guarded, "x25_:domain:sensor:entity_id:kitchen") == [48.0]
        assert client.get_list_database() == [{"name": "streamridge"}]

    def test_its_calls_work_without_tokens(self, live):
        at = datetime.fromtimestamp(START, UTC)

        assert connected(live).write_points([state("W", "oven", 900.0, at)])
        assert connected(live).ping() == "1.8.0-streamridge"

    def test_refused_points_are_dropped_and_the_others_are_stored(self, guarded, secrets, newest):
        points = [state("kWh", f"meter{i}", value, newest) for i, value in enumerate((1.0, 1e15))]

        with pytest.raises(InfluxDBClientError, match="partial write") as told:
            connected(guarded, secrets["write"]).write_points(points)

        assert told.value.code == 400  # with any other code it would send them again
        assert values(guarded, "kWh:domain:sensor:entity_id:meter0") == [1.0]

    @pytest.mark.parametrize(("kind", "status"), [("wrong", 401), ("read", 403), (None, 401)])
    def test_a_wrong_password_is_refused(self, guarded, secrets, kind, status):
        with pytest.raises(InfluxDBClientError) as told:
            connected(guarded, secrets.get(kind)).write_points([])

        assert told.value.code == status


class TestTelegraf:
    def test_its_default_output_works(self, guarded, secrets, newest, counted):
        """It creates a database, and writes nanoseconds with every tag of its host."""
        counted("section 7", 2)
        lines = (
            f"disk,device=sda1,fstype=ext4,host=web-1,mode=rw,path=/var/lib used_percent=41.5 "
            f"{int(newest.timestamp())}000000000\n"
        )
        with httpx.Client(base_url=guarded.url, timeout=LIMIT) as client:
            auth = ("telegraf", secrets["write"])
            made = client.post(
                "/query", content=b"q=CREATE+DATABASE+%22telegraf%22", headers=FORM, auth=auth
            )
            written = client.post(
                "/write",
                params={"db": "telegraf", "consistency": "any"},
                content=gzip.compress(lines.encode()),
                headers={
                    "Content-Type": "text/plain; charset=utf-8",
                    "Content-Encoding": "gzip",
                },
                auth=auth,
            )

        assert (made.status_code, made.json()) == (200, {"results": [{"statement_id": 0}]})
        assert (written.status_code, written.content) == (204, b"")
        name = "disk:used_percent:device:sda1:fstype:ext4:host:-bcc7d63b2aed54d9"
        assert values(guarded, name) == [41.5]


class TestTokens:
    @pytest.fixture
    def client(self, guarded):
        with httpx.Client(base_url=guarded.url, timeout=LIMIT) as client:
            yield client

    def test_a_token_is_accepted_where_clients_send_it(self, client, secrets):
        token = secrets["write"]
        sent = [
            {"params": {"u": "any", "p": token}},
            {"params": {"u": token}},
            {"auth": ("any", token)},
            {"auth": (token, "")},
            {"headers": {"Authorization": f"Token {token}"}},
            {"headers": {"Authorization": f"Token any:{token}"}},
            {"headers": {"Authorization": f"Bearer {token}"}},
        ]

        assert {client.post("/write", **each).status_code for each in sent} == {204}

    @pytest.mark.parametrize("text", ["Basic", "Basic %%%", "Basic /w==", "Basic Og==", "Digest x"])
    def test_an_unreadable_password_is_refused(self, client, text):
        answer = client.post("/write", headers={"Authorization": text})

        assert (answer.status_code, answer.json()["code"]) == (401, "sr-no-token")

    def test_other_routes_take_no_password(self, client, secrets):
        auth = ("any", secrets["admin"])

        assert client.post("/api/v2/write", auth=auth).status_code == 401
        assert client.get("/v1/summary", auth=auth).status_code == 401


class TestOtherRoutes:
    @pytest.mark.parametrize(
        "query", ["", "SELECT * FROM flow", "DROP DATABASE x", "CREATE DATABASE", "x" * 200]
    )
    def test_other_queries_are_refused(self, live, query):
        for answer in (
            live.client.get("/query", params={"q": query}),
            live.client.post("/query", content=f"q={query}", headers=FORM),
        ):
            assert (answer.status_code, answer.json()["code"]) == (400, "sr-unsupported-query")
            assert answer.json()["error"] == answer.json()["detail"]

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_ping_answers_with_the_version(self, live, method):
        answer = live.client.request(method, "/ping?verbose=false")

        assert (answer.status_code, answer.content) == (204, b"")
        assert answer.headers["x-influxdb-version"].startswith("1.8")

    def test_health_tells_whether_points_can_be_written(self, live, monkeypatch):
        healthy = live.client.get("/health")
        monkeypatch.setattr(live.service.writer, "error_code", "sr-disk-full")
        failing = live.client.get("/health")

        assert (healthy.status_code, healthy.json()["status"]) == (200, "pass")
        assert (failing.status_code, failing.json()["status"]) == (503, "fail")

    @pytest.mark.parametrize(
        ("precision", "ticks"),
        [("n", START * 10**9), ("u", START * 10**6), ("ms", START * 1000), ("m", START // 60)],
    )
    def test_precisions_have_the_names_of_version_1(self, live, precision, ticks):
        name = f"precision-{precision}"

        answer = live.client.post(
            f"/write?precision={precision}", content=f"{name} value=1 {ticks}"
        )

        assert answer.status_code == 204
        assert live.call(lambda service: service.statuses.find(name)) is not None
