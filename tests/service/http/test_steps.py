"""Sensors with steps of their own: a minute, a quarter of an hour and an hour in one service."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from streamridge_service.admin.export import Selection, export_forecasts, export_sensors
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.verification.verify import check_sensors
from tests.support.service.in_process import settled
from tests.support.service.live_server import START, Live, readings, stamp

STEPS = {"minutes": 60, "quarters": 900, "hours": 3600}
# Steps of history, and steps that come live; all sensors end at the same hour.
PAST, LIVE = {"minutes": 1200, "quarters": 500, "hours": 130}, {
    "minutes": 180, "quarters": 12, "hours": 3,
}  # fmt: skip
END = START + 30 * 86_400


def values(name, count):
    return (100 + 20 * np.sin(np.arange(count) * STEPS[name] / 86_400 * 2 * np.pi)).tolist()


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("steps") / "a.db"


@pytest.fixture(scope="module")
def mixed(database, logged):
    """Return a service with a sensor of each step; the one of an hour combines two readings."""
    with Live(database, horizon=3) as served:
        assert served.client.put("/v1/sensors/minutes", json={"step": "1min"}).status_code == 201
        ruled = {"step": "1h", "rule": "mean"}
        assert served.client.put("/v1/sensors/hours", json=ruled).status_code == 201
        for name, step in STEPS.items():
            count = PAST[name] + LIVE[name]
            rows = readings(name, END - count * step, values(name, count), step)
            past, live = rows[: PAST[name]], rows[PAST[name] :]
            assert served.post(past, mode="backfill").status_code == 200
            served.do(settled)
            for at in range(0, len(live), 4):
                assert served.post(live[at : at + 4]).status_code == 200
        half = {"sensor": "hours", "time": stamp(END - 1800), "value": 90.0}
        assert served.post([half]).json()["accepted"] == 1
        served.do(settled)
        yield served


def get(mixed, path):
    return mixed.client.get(path).json()


def test_every_answer_has_the_step_of_its_sensor(mixed):
    listed = {item["id"]: item["step_seconds"] for item in get(mixed, "/v1/sensors")["items"]}
    rows = get(mixed, "/v1/forecasts")["items"]

    assert listed == STEPS
    assert {row["sensor"]: row["step_seconds"] for row in rows} == STEPS
    for name, step in STEPS.items():
        assert get(mixed, f"/v1/sensors/{name}/history")["step_seconds"] == step


def test_forecasts_are_one_step_apart(mixed):
    for name, step in STEPS.items():
        forecast = get(mixed, f"/v1/sensors/{name}/forecasts")
        times = [pd.Timestamp(item["time"]) for item in forecast["items"]]

        assert len(times) == 3
        assert {(b - a).total_seconds() for a, b in pairwise(times)} == {step}


def test_forecasts_of_a_time_start_at_the_next_step_of_each_sensor(mixed):
    at = END - 2 * 3600 - 400
    rows = get(mixed, f"/v1/forecasts?at={stamp(at)}")["items"]

    first = {row["sensor"]: row["time"] for row in rows if row["lead"] == 1}
    assert first == {name: stamp(-(-at // step) * step) for name, step in STEPS.items()}


def test_history_has_a_row_for_each_step(mixed):
    for name, step in STEPS.items():
        span = f"from={stamp(END - 7200)}&to={stamp(END - 3600 - 1)}"
        items = get(mixed, f"/v1/sensors/{name}/history?{span}")["items"]

        assert [row["time"] for row in items] == [
            stamp(time) for time in range(END - 7200, END - 3600, step)
        ]
        assert [row["actual"] for row in items] == pytest.approx(
            values(name, PAST[name] + LIVE[name])[-7200 // step : -3600 // step]
        )


def test_gaps_count_the_steps_of_each_sensor(mixed):
    for name, step in STEPS.items():
        span = f"from={stamp(END - 7200)}&to={stamp(END)}"
        hours = get(mixed, f"/v1/sensors/{name}/gaps?{span}")["hours"]

        assert [(each["expected"], each["received"]) for each in hours] == [(3600 // step,) * 2] * 2


def test_the_summary_counts_sensors_by_step(mixed):
    summary = get(mixed, "/v1/summary")
    found = {each["step_seconds"]: each for each in summary["steps"]}

    assert summary["total"] == 3
    for step in STEPS.values():
        last = found[step]["last_step"]
        assert (found[step]["sensors"], last["received"], last["expected"]) == (1, 1, 1)
        assert last["time"] == stamp(END - step)


@pytest.mark.parametrize("step", ["2min", None, "1h"])
def test_the_step_of_a_sensor_with_readings_cannot_change(mixed, step):
    answer = mixed.client.put("/v1/sensors/minutes", json={"step": step} if step else {})

    assert (answer.status_code, answer.json()["code"]) == (409, "sr-conflicting-declaration")
    assert "has readings with a step of 60 seconds" in answer.json()["detail"]
    assert get(mixed, "/v1/sensors/minutes")["declared"]["step"] == "1min"


def test_the_same_step_in_other_words_is_accepted(mixed):
    for name, step in [("minutes", "60s"), ("minutes", "1min"), ("quarters", "15min")]:
        assert mixed.client.put(f"/v1/sensors/{name}", json={"step": step}).status_code == 200
    mixed.do(settled)


def test_a_step_may_change_before_the_first_reading(mixed):
    for step, status in [("1min", 201), ("5min", 200)]:
        assert mixed.client.put("/v1/sensors/later", json={"step": step}).status_code == status
    mixed.client.delete("/v1/sensors/later")


@pytest.mark.parametrize("step", ["0min", "15", "soon", "100000d", "1.5s"])
def test_a_step_must_be_a_time(mixed, step):
    answer = mixed.client.put("/v1/sensors/wrong", json={"step": step})

    assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-field")
    assert "step" in answer.json()["detail"]


def test_exports_have_the_step_of_each_sensor(mixed, database, tmp_path):
    with open_ledger(str(database), read_only=True) as ledger:
        export_forecasts(ledger, tmp_path / "forecasts.csv", Selection(tuple(STEPS)))
        export_sensors(ledger, tmp_path / "sensors.csv", Selection(tuple(STEPS)))
    forecasts = pd.read_csv(tmp_path / "forecasts.csv", parse_dates=["time"])
    sensors = pd.read_csv(tmp_path / "sensors.csv").set_index("sensor")

    assert sensors["step_seconds"].to_dict() == STEPS
    for name, step in STEPS.items():
        rows = forecasts[forecasts["sensor"] == name]
        apart = rows.groupby("issued_at_seq")["time"].diff().dropna().dt.total_seconds()
        assert set(apart) == {step}


def test_a_replay_gives_the_stored_data(mixed, database):
    mixed.do(settled)
    with open_ledger(str(database), read_only=True) as ledger:
        chosen = [each for each in ledger.sensors() if each.name in STEPS]
        found = list(check_sensors(ledger, chosen))

    assert [(each.fault, each.is_exact) for each in found] == [(None, True)] * 3
    assert min(each.forecasts for each in found) >= 2
