"""Sensors over HTTP: lists, declarations, forecasts, history and actions."""

import math
import re
import sys
import tomllib
from datetime import datetime

import pytest

from tests.support.paths import ROOT
from tests.support.service.in_process import settled
from tests.support.service.live_server import START, STEPS, daily, readings, stamp
from tests.support.tiers import tiered
from tests.support.waiting import wait_until

NEWEST = START + (STEPS - 1) * 900
MODELS = ("north", "south", "east")


def listed(live, **params):
    return live.client.get("/v1/sensors", params=params).json()


def walked(live, path, **params):
    """Return the names on all pages, and the totals that the pages gave."""
    names, cursor, totals = [], None, set()
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        told = live.client.get(path, params={**params, **more}).json()
        names += [each["id"] for each in told["items"]]
        totals.add(told["total"])
        cursor = told["cursor"]
        if cursor is None:
            return names, totals


@pytest.fixture(scope="module")
def many(live):
    """Return the service with thirty more sensors."""
    for i in range(30):
        label = {"label": f"Ring {i} Straße", "group": "ring"}
        live.client.put(f"/v1/sensors/ring-{i:02}", json=label)
    return live


def test_only_sensors_of_a_group_have_neighbours(many):
    def neighbours_of(name):
        return many.client.get(f"/v1/sensors/{name}").json()["neighbours"]

    assert neighbours_of("north") is None
    # No step of the group is complete yet.
    grouped = wait_until(lambda: neighbours_of("ring-01"), "the group of a declared sensor")
    assert grouped == {"items": [], "error_ratio": 1.0}


class TestList:
    @pytest.mark.parametrize(
        ("sort", "limit"),
        tiered(
            ["id", "-error_ratio", "error", "-newest", "outside"],
            [1, 7, 100],
            quick=lambda sort, limit: limit == 7 or sort == "id",
        ),
    )
    def test_pages_list_each_sensor_once(self, many, sort, limit):
        names, totals = walked(many, "/v1/sensors", sort=sort, limit=limit)

        assert len(names) == len(set(names))
        assert totals == {len(names)}
        assert {*MODELS, "ring-00", "ring-29"} <= set(names)

    @pytest.mark.parametrize("sort", ["error", "-error", "error_ratio", "-outside", "-newest"])
    def test_sensors_are_sorted_and_those_without_a_value_come_last(self, many, sort):
        items = listed(many, sort=sort, limit=10_000)["items"]

        values = [item[sort.removeprefix("-")] for item in items]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=sort.startswith("-"))
        assert values == known + [None] * (len(values) - len(known))

    @pytest.mark.parametrize(
        ("q", "count"), [("RING-0", 10), ("strasse", 30), ("Ring 7 ", 1), ("ß", 30)]
    )
    def test_a_search_ignores_the_case_of_names_and_labels(self, many, q, count):
        assert listed(many, q=q)["total"] == count

    def test_a_list_can_be_filtered_by_state(self, many):
        counts = {}
        for state in ("good", "new", "silent", "archived"):
            items = listed(many, state=state, limit=10_000)["items"]
            counts[state] = len(items)
            assert state == "archived" or {item["state"] for item in items} <= {state}

        assert counts["good"] >= 3
        assert counts["new"] >= 30

    @pytest.mark.parametrize(
        "cursor", ["x", "0" * 16, f"{'0' * 16}.", f"{'g' * 16}.a", f"{'0' * 16}.-a"]
    )
    def test_an_invalid_cursor_is_refused(self, many, cursor):
        answer = many.client.get("/v1/sensors", params={"cursor": cursor})

        assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-parameter")

    def test_an_item_has_the_state_the_newest_time_and_the_forecast(self, live):
        item = next(each for each in listed(live, q="north")["items"] if each["id"] == "north")

        assert (item["state"], item["newest"]) == ("good", stamp(NEWEST))
        assert item["forecast"]["time"] == stamp(NEWEST + 900)
        assert item["error_ratio"] > 0


WHOLE = {
    "label": "A2, kilometre 35",
    "group": "A2",
    "position": [52.1, 5.0],
    "unit": "veh/15min",
    "zone": "Europe/Amsterdam",
    "bounds": [0, None],
    "rule": "sum",
    "holidays": ["2026-12-25"],
}


class TestDeclarations:
    def test_a_declared_sensor_can_be_read_back(self, live):
        made = live.client.put("/v1/sensors/declared", json=WHOLE)

        assert (made.status_code, made.headers["location"]) == (201, "/v1/sensors/declared")
        found = live.client.get(made.headers["location"]).json()
        assert found["declared"] == WHOLE
        assert (found["state"], found["zone"]) == ("new", "Europe/Amsterdam")

    def test_holidays_may_be_those_of_a_country(self, live):
        made = live.client.put("/v1/sensors/dutch", json={"holidays": "NL"})

        assert (made.status_code, made.json()["declared"]) == (201, {"holidays": "NL"})

    def test_without_the_package_of_holidays_the_answer_says_how_to_install_it(
        self, live, monkeypatch
    ):
        monkeypatch.setitem(sys.modules, "holidays", None)

        answer = live.client.put("/v1/sensors/belgian", json={"holidays": "BE"})

        assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-field")
        assert "pip install 'streamridge[holidays]'" in answer.json()["detail"]

    def test_the_documented_installation_includes_holidays(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = " ".join(project["optional-dependencies"]["service"])

        assert "holidays" in re.search(r"streamridge\[([\w,]+)\]", extras)[1].split(",")

    @pytest.mark.parametrize("bounds", [None, [0, 1e12]])
    def test_values_up_to_a_million_millions_are_accepted(self, live, bounds):
        name = "large" if bounds is None else "large-bounded"
        live.client.put(f"/v1/sensors/{name}", json={} if bounds is None else {"bounds": bounds})

        rows = readings(name, START, [5e6, 2e9, 1e12])
        answer = live.post(rows)
        beyond = live.post(readings(name, START + 2700, [1.1e12]))
        live.do(settled)

        assert answer.json()["accepted"] == 3
        assert (beyond.status_code, beyond.json()["code"]) == (422, "sr-out-of-range")
        forecast = live.client.get(f"/v1/sensors/{name}/forecasts").json()["items"][0]
        assert forecast["lower"] <= forecast["value"] <= forecast["upper"]
        items = live.client.get(
            f"/v1/sensors/{name}/history", params={"from": stamp(START), "to": stamp(START + 1800)}
        ).json()["items"]
        assert [row["actual"] for row in items] == [5e6, 2e9, 1e12]

    def test_a_declaration_replaces_the_earlier_one(self, live):
        live.client.put("/v1/sensors/redeclared", json={"label": "a", "unit": "b"})

        again = live.client.put("/v1/sensors/redeclared", json={"label": "c"})

        assert (again.status_code, again.json()["declared"]) == (200, {"label": "c"})

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b'{"label": 5}', "sr-bad-field"),
            (b'{"labels": "a"}', "sr-bad-field"),
            (b'{"label": "a\\nb"}', "sr-bad-field"),
            (b'{"label": "\\u202eb"}', "sr-bad-field"),
            (b'{"label": "%s"}' % (b"a" * 201), "sr-bad-field"),
            (b'{"zone": "Mars/Phobos"}', "sr-bad-field"),
            (b'{"zone": "../../etc/passwd"}', "sr-bad-field"),
            (b'{"position": [91, 0]}', "sr-bad-field"),
            (b'{"position": [1e400, 0]}', "sr-bad-field"),
            (b'{"bounds": [5, 1]}', "sr-bad-field"),
            (b'{"rule": "product"}', "sr-bad-field"),
            (b'{"holidays": "Atlantis"}', "sr-bad-field"),
            (b'{"holidays": ["2026-13-45"]}', "sr-bad-field"),
            (b"[]", "sr-bad-field"),
            (b'"a"', "sr-bad-field"),
            (b"null", "sr-bad-field"),
            (b"", "sr-unreadable"),
            (b"{", "sr-unreadable"),
            (b'{"label": "\xff"}', "sr-unreadable"),
            (b'{"label": NaN}', "sr-unreadable"),
        ],
    )
    def test_an_invalid_declaration_is_refused(self, live, body, code):
        headers = {"Content-Type": "application/json"}

        answer = live.client.put("/v1/sensors/wrong", content=body, headers=headers)

        assert answer.json()["code"] == code
        assert live.client.get("/v1/sensors/wrong").status_code == 404

    def test_an_invalid_name_is_refused(self, live):
        for name in ("-a", "a b", "a" * 65, "%3Cscript%3E", "a%0a"):
            answer = live.client.put(f"/v1/sensors/{name}", json={})

            assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-name")

    def test_a_declaration_needs_the_content_type_json(self, live):
        answer = live.client.put("/v1/sensors/wrong", content=b"{}")

        assert (answer.status_code, answer.json()["code"]) == (415, "sr-unsupported-type")

    def test_an_archived_sensor_is_kept_but_not_listed(self, live):
        live.client.put("/v1/sensors/closed", json={})

        assert [live.client.delete("/v1/sensors/closed").status_code for _ in range(2)] == [
            204,
            204,
        ]

        assert listed(live, q="closed")["items"] == []
        assert [each["id"] for each in listed(live, q="closed", state="archived")["items"]] == [
            "closed"
        ]
        assert live.client.get("/v1/sensors/closed").json()["archived"] is not None
        answer = live.client.post("/v1/sensors/closed/retune")
        assert (answer.status_code, answer.json()["code"]) == (410, "sr-archived")


class TestForecasts:
    def test_the_forecast_of_one_sensor_has_a_band(self, live):
        told = live.client.get("/v1/sensors/north/forecasts").json()

        [step] = told["items"]
        assert (told["sensor"], told["reason"], step["lead"]) == ("north", None, 1)
        assert step["time"] == stamp(NEWEST + 900)
        assert step["lower"] <= step["value"] <= step["upper"]

    def test_a_sensor_without_readings_has_a_reason_instead_of_a_forecast(self, live):
        live.client.put("/v1/sensors/empty", json={})

        told = live.client.get("/v1/sensors/empty/forecasts").json()

        assert (told["source"], told["items"]) == ("none", [])
        assert told["reason"] == "there is no reading yet"

    def test_forecasts_of_all_sensors_come_in_pages(self, live):
        first = live.client.get("/v1/forecasts", params={"limit": 2}).json()
        second = live.client.get(
            "/v1/forecasts", params={"limit": 2, "cursor": first["cursor"]}
        ).json()

        names = [row["sensor"] for row in first["items"] + second["items"]]
        assert names == sorted(set(names))
        assert len(names) == 4

    def test_forecasts_issued_for_a_time_match_the_history(self, live):
        at = stamp(NEWEST - 60)

        rows = live.client.get("/v1/forecasts", params={"at": at, "limit": 10_000}).json()["items"]

        issued = {row["sensor"]: row for row in rows}
        for name in MODELS:
            past = live.client.get(f"/v1/sensors/{name}/history").json()["items"][-1]
            assert issued[name]["time"] == stamp(NEWEST)
            assert (issued[name]["value"], issued[name]["seq"]) == (
                past["forecast"],
                past["issued_at_seq"],
            )

    def test_a_time_without_forecasts_gives_rows_without_values(self, live):
        rows = live.client.get("/v1/forecasts", params={"at": "2020-01-01T00:00:00Z"}).json()[
            "items"
        ]

        assert {row["source"] for row in rows} == {"none"}
        assert {row["value"] for row in rows} == {None}


class TestHistory:
    def history(self, live, **params):
        return live.client.get("/v1/sensors/north/history", params=params)

    def test_the_history_covers_the_last_day_by_default(self, live):
        items = self.history(live).json()["items"]

        assert (items[0]["time"], items[-1]["time"]) == (stamp(NEWEST - 86_400), stamp(NEWEST))
        assert items[-1]["forecast"] is not None
        assert {item["status"] for item in items} == {"good"}

    def test_the_history_of_another_range(self, live):
        span = {"from": stamp(START), "to": stamp(START + 1800)}

        items = self.history(live, **span).json()["items"]

        assert [item["time"] for item in items] == [stamp(START + i * 900) for i in range(3)]

    def test_equal_times_with_other_offsets_give_the_same_history(self, live):
        here = self.history(
            live, **{"from": "2026-01-02T01:00:00+01:00", "to": "2026-01-02T02:00:00+01:00"}
        )
        utc = self.history(live, **{"from": "2026-01-02T00:00:00Z", "to": "2026-01-02T01:00:00Z"})

        assert here.json() == utc.json()

    def test_values_outside_bounds_have_the_status_implausible(self, live):
        live.client.put("/v1/sensors/marked", json={"bounds": [0, 10]})
        values = enumerate((5, 50, None))
        live.post(
            [{"sensor": "marked", "time": stamp(START + i * 900), "value": v} for i, v in values]
        )

        span = {"from": stamp(START), "to": stamp(START + 1800)}
        items = live.client.get("/v1/sensors/marked/history", params=span).json()["items"]

        assert [item["status"] for item in items] == ["good", "implausible", "missing"]

    @pytest.mark.parametrize(
        "span",
        [
            {"from": "2026-01-02T00:00:00"},
            {"from": "yesterday"},
            {"from": "2026-01-02T00:00:00 01:00"},
            {"from": "2026-01-03T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
            {"from": "2000-01-01T00:00:00Z"},
            {"to": "9999-12-31T23:59:59-01:00"},
            {"lead": "0"},
            {"lead": "97"},
        ],
    )
    def test_an_invalid_range_of_time_is_refused(self, live, span):
        answer = self.history(live, **span)

        assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-parameter")

    def test_gaps_of_one_sensor_count_readings_by_hour(self, live):
        steps = [0, 1, 3, 4, 5, 6, 7]
        with_gap = [{"sensor": "gappy", "time": stamp(START + i * 900), "value": i} for i in steps]
        live.post(with_gap)

        span = {"from": stamp(START), "to": stamp(START + 3 * 3600)}
        hours = live.client.get("/v1/sensors/gappy/gaps", params=span).json()["hours"]

        assert [(hour["expected"], hour["received"]) for hour in hours] == [(4, 3), (4, 4), (4, 0)]

    def test_gaps_of_many_are_null_before_the_first_reading(self, live):
        live.post([{"sensor": "gaps-late", "time": stamp(START + 7200), "value": 1}])
        live.do(settled)
        span = {"from": stamp(START), "to": stamp(START + 4 * 3600)}

        told = live.client.get("/v1/gaps", params={**span, "limit": 1000}).json()

        rows = {row["id"]: row["hours"] for row in told["items"]}
        assert (told["from"], told["hours"]) == (stamp(START), 4)
        assert rows["north"] == [4, 4, 4, 4]
        assert rows["gaps-late"] == [None, None, 1, 0]
        names, totals = walked(live, "/v1/gaps", **span, limit=5)
        assert totals == {len(names)}

    def test_tuned_values_lie_within_their_limits(self, live):
        told = live.client.get("/v1/sensors/north/tuning").json()

        assert told["items"]
        assert told["last"] is not None
        for name, value in told["items"][-1]["values"].items():
            low, high = told["limits"][name]
            assert low <= value <= high

    @pytest.mark.parametrize("by", ["sensor", "hour"])
    def test_accuracy_has_a_row_for_each_sensor_or_hour(self, live, by):
        params = {"by": by, "sensors": "north,south"}

        told = live.client.get("/v1/accuracy", params=params).json()

        assert (told["by"], told["sensors"]) == (by, 2)
        assert len(told["items"]) == (2 if by == "sensor" else 24)
        assert any(item["error"] is not None for item in told["items"])

    def test_accuracy_agrees_with_the_history_of_the_last_day(self, live):
        for each in readings("scored", NEWEST - 149 * 900, daily(150, seed=3)):
            live.post([each])
        live.do(settled)
        params = {"from": stamp(NEWEST - 149 * 900), "to": stamp(NEWEST)}

        rows = live.client.get("/v1/sensors/scored/history", params=params).json()["items"]
        told = live.client.get("/v1/accuracy", params={"sensors": "scored"}).json()["items"][0]

        scored = [each for each in rows if each["actual"] is not None and each["forecast"]]
        squares = [(each["actual"] - each["forecast"]) ** 2 for each in scored]
        first = stamp(NEWEST // 3600 * 3600 - 23 * 3600)
        day = [s for s, each in zip(squares, scored, strict=True) if each["time"] >= first]
        outside = [each["score"] > 1 for each in scored if each["time"] >= first]
        assert told["count"] == len(squares) == 149
        assert told["error"] == pytest.approx(math.sqrt(sum(day) / len(day)))
        assert told["usual"] == pytest.approx(math.sqrt(sum(squares) / len(squares)))
        assert told["error_ratio"] == pytest.approx(told["error"] / told["usual"])
        assert told["outside"] == pytest.approx(sum(outside) / len(outside))

    def test_events_can_be_listed_after_a_number(self, live):
        live.client.put("/v1/sensors/event-a", json={})
        live.do(settled)
        items = live.client.get("/v1/events", params={"limit": 10_000}).json()["items"]

        later = live.client.get("/v1/events", params={"after": items[-2]["id"]}).json()["items"]

        assert items[-1] in later
        assert items[-2] not in later


class TestActions:
    def act(self, live, action, body=None, name="south"):
        return live.client.post(f"/v1/sensors/{name}/{action}", json=body)

    def tuning(self, live):
        live.do(settled)
        return live.client.get("/v1/sensors/south/tuning").json()

    def test_values_are_set_and_rolled_back(self, live):
        assert self.act(live, "set", {"values": {"regularization": 7.5}}).status_code == 200
        assert self.tuning(live)["values"]["regularization"] == pytest.approx(7.5)
        assert self.act(live, "rollback").json() == {"sensor": "south", "done": "rollback"}
        assert self.tuning(live)["values"]["regularization"] == pytest.approx(2.0)

    def test_steps_of_tuning_are_named_by_their_kind(self, live):
        assert self.act(live, "set", {"values": {"regularization": 7.5}}).status_code == 200
        assert self.act(live, "freeze", {"names": ["regularization"]}).status_code == 200
        assert self.act(live, "unfreeze", {"names": ["regularization"]}).status_code == 200
        assert self.act(live, "rollback").status_code == 200

        kinds = [item["kind"] for item in self.tuning(live)["items"]]

        assert kinds[-4:] == ["set", "freeze", "unfreeze", "rollback"]
        assert set(kinds[:-4]) & {"refit", "start"}

    def test_an_action_does_not_change_the_turn_of_the_next_refit(self, live):
        assert self.act(live, "retune").status_code == 200

        told, plan = self.tuning(live), live.service.plan
        detail = live.client.get("/v1/sensors/south").json()

        assert told["next"] == detail["fit"]["next"]
        assert told["last"] == detail["fit"]["at"] == detail["newest"]
        turn = datetime.fromisoformat(told["next"]).timestamp() // 900 + plan.stagger("south")
        assert turn % 96 == 0

    def test_hyperparameters_are_frozen_and_unfrozen(self, live):
        assert self.act(live, "freeze", {"names": ["regularization"]}).status_code == 200
        assert self.tuning(live)["frozen"] == ["regularization"]
        assert self.act(live, "unfreeze", {"names": ["regularization"]}).status_code == 200
        assert self.tuning(live)["frozen"] == []

    @pytest.mark.parametrize(
        ("action", "body"),
        [("set", {"values": {"regularization": 40.0}}), ("rollback", None), ("reset", None)],
    )
    def test_all_routes_give_the_issued_forecast_after_an_action(self, live, action, body):
        before = self.forecasts(live, "south")

        assert self.act(live, action, body).status_code == 200

        live.do(settled)
        assert len(set(before)) == 1
        assert self.forecasts(live, "south") == before

    def forecasts(self, live, name):
        """Return the time, value and interval of a sensor's next step, from each route."""
        one = f"/v1/sensors/{name}"
        steps = [
            live.client.get(f"{one}/forecasts").json()["items"][0],
            live.client.get(one).json()["forecast"],
            *(row["forecast"] for row in listed(live)["items"] if row["id"] == name),
            *(
                row
                for row in live.client.get("/v1/forecasts").json()["items"]
                if row["sensor"] == name
            ),
        ]
        assert len(steps) == 4
        return [tuple(step[key] for key in ("time", "value", "lower", "upper")) for step in steps]

    @pytest.mark.parametrize("action", ["retune", "reset"])
    def test_a_model_can_be_refitted_or_reset(self, live, action):
        assert self.act(live, action).json() == {"sensor": "south", "done": action}
        live.do(settled)
        assert live.client.get("/v1/sensors/south").json()["state"] in ("good", "new")

    def test_a_range_of_time_can_be_excluded(self, live):
        span = {"start": "2026-01-02T00:00:00Z", "end": "2026-01-02T03:00:00+01:00"}

        assert self.act(live, "exclude", span).status_code == 200

    @pytest.mark.parametrize(
        ("action", "body"),
        [
            ("set", {"values": {"nothing": 1.0}}),
            ("set", {"values": {"regularization": 1e300}}),
            ("freeze", {"names": ["nothing"]}),
            ("unfreeze", {"names": ["nothing"]}),
        ],
    )
    def test_unknown_hyperparameters_and_values_out_of_bounds_are_refused(self, live, action, body):
        answer = self.act(live, action, body)

        assert (answer.status_code, answer.json()["code"]) == (422, "sr-unknown-hyperparameter")

    @pytest.mark.parametrize(
        ("action", "body"),
        [
            ("set", {"values": {"regularization": "2"}}),
            ("set", {"values": {}}),
            ("set", {}),
            ("freeze", {"names": "regularization"}),
            ("exclude", {"start": "2026-01-02T00:00:00Z"}),
            ("exclude", {"start": "2026-01-03T00:00:00Z", "end": "2026-01-02T00:00:00Z"}),
        ],
    )
    def test_invalid_bodies_of_actions_are_refused(self, live, action, body):
        answer = self.act(live, action, body)

        assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-field")

    def test_times_of_an_action_need_an_offset(self, live):
        span = {"start": "2026-01-02T00:00:00", "end": "2026-01-02T03:00:00"}

        assert self.act(live, "exclude", span).json()["code"] == "sr-bad-field"

    @pytest.mark.parametrize("action", ["retune", "reset", "rollback"])
    def test_actions_on_a_sensor_without_a_model_are_refused(self, live, action):
        live.client.put("/v1/sensors/young", json={})

        answer = self.act(live, action, name="young")

        assert (answer.status_code, answer.json()["code"]) == (409, "sr-no-model")
