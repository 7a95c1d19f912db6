"""The unchanged client library of InfluxDB, which Home Assistant uses, can write readings."""

from datetime import UTC, datetime, timedelta

import pytest
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.exceptions import InfluxDBError
from influxdb_client.client.write_api import ASYNCHRONOUS, SYNCHRONOUS, WriteOptions

STEP = timedelta(minutes=15)
PRECISIONS = (WritePrecision.NS, WritePrecision.US, WritePrecision.MS, WritePrecision.S)


@pytest.fixture
def newest():
    """Return the newest complete step, by the machine's clock."""
    now = datetime.now(UTC)
    return now - timedelta(
        minutes=now.minute % 15, seconds=now.second, microseconds=now.microsecond
    )


def connected(guarded, token, **options):
    return InfluxDBClient(url=guarded.url, token=token, org="roads", **options)


def history(guarded, name):
    """Return the values of a sensor by time."""
    items = guarded.client.get(f"/v1/sensors/{name}/history").json()["items"]
    return {item["time"]: item["actual"] for item in items if item["actual"] is not None}


def point(measurement, step, value, at, precision):
    return (
        Point(measurement)
        .tag("road", "A2")
        .tag("lane", "1")
        .field("cars", value)
        .field("note", f"step {step}")
        .time(at, precision)
    )


@pytest.mark.parametrize("gzip", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_points_become_readings(guarded, secrets, newest, precision, gzip, counted):
    counted("section 7", 4)
    measurement = f"influx-{precision}-{'gzip' if gzip else 'plain'}"
    times = [newest - step * STEP for step in range(4, 0, -1)]
    points = [point(measurement, i, 10 + i, at, precision) for i, at in enumerate(times)]

    with (
        connected(guarded, secrets["write"], enable_gzip=gzip) as client,
        client.write_api(write_options=SYNCHRONOUS) as api,
    ):
        api.write(bucket="flows", record=points, write_precision=precision)

    stored = history(guarded, f"{measurement}:cars:lane:1:road:A2")
    assert stored == {at.strftime("%Y-%m-%dT%H:%M:%SZ"): 10.0 + i for i, at in enumerate(times)}


def test_batches_of_the_client_are_stored(guarded, secrets, newest):
    errors = []
    options = WriteOptions(batch_size=50, flush_interval=100)

    with (
        connected(guarded, secrets["write"]) as client,
        client.write_api(
            write_options=options, error_callback=lambda *told: errors.append(told)
        ) as api,
    ):
        for i in range(120):
            line = f"gathered,lane={i} value={i} {int(newest.timestamp())}"
            api.write(bucket="flows", record=line, write_precision=WritePrecision.S)

    found = guarded.client.get("/v1/sensors", params={"q": "gathered:", "limit": 200}).json()
    assert errors == []
    assert found["total"] == 120


@pytest.mark.filterwarnings("ignore:The 'WriteType.asynchronous':DeprecationWarning")
def test_the_calls_of_home_assistant_work(guarded, secrets, newest, counted):
    counted("section 7", 1)
    # Home Assistant first writes nothing to test its token, and then writes without waiting.
    record = {
        "measurement": "cars",
        "tags": {"domain": "sensor", "entity_id": "ring_west"},
        "time": newest,
        "fields": {"value": 12.0, "friendly_name_str": "Ring, west"},
    }

    with connected(guarded, secrets["write"]) as client:
        client.write_api(write_options=SYNCHRONOUS).write(bucket="home", record=b"")
        with client.write_api(write_options=ASYNCHRONOUS) as api:
            told = api.write(bucket="home", record=[record]).get()

    assert told is None
    assert list(history(guarded, "cars:domain:sensor:entity_id:ring_west").values()) == [12.0]


@pytest.mark.parametrize(("kind", "status"), [("wrong", 401), ("read", 403)])
def test_a_wrong_token_raises_in_the_client(guarded, secrets, newest, kind, status):
    with (
        connected(guarded, secrets[kind]) as client,
        client.write_api(write_options=SYNCHRONOUS) as api,
        pytest.raises(InfluxDBError) as told,
    ):
        api.write(bucket="flows", record=Point("refused").field("value", 1).time(newest))

    assert told.value.response.status == status


def test_a_wrong_line_raises_in_the_client(guarded, secrets, newest):
    with (
        connected(guarded, secrets["write"]) as client,
        client.write_api(write_options=SYNCHRONOUS) as api,
        pytest.raises(InfluxDBError) as told,
    ):
        api.write(bucket="flows", record="influx-bad value=1e999", write_precision="s")

    assert told.value.response.status == 422
    assert b"sr-not-a-number" in told.value.response.data.encode()
