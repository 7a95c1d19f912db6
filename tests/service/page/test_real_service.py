"""The page of a running service: it shows the data of the routes, and updates itself."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from tests.support.page.opening import pages
from tests.support.page.waiting import until_page
from tests.support.service.in_process import settled
from tests.support.service.live_server import Live, readings, stamp
from tests.support.waiting import wait_until
from tests.support.workers.logs import daily

# The service follows the clock of its readings, which start here.
START, STEP, STEPS = 1_767_225_600, 900, 5 * 96
LABELS = {"north": "Gate north", "south": "Gate south", "east": "Gate east"}
# One sensor has sent nothing for 30 hours.
SILENT, SILENT_FOR = "east", 120
# Steps that are sent one by one, so that there are forecasts to compare with.
LIVED = 3
LARGEST_VIEW = 300_000
RETUNED = "Refitted and retuned. The forecast after the next reading uses it."
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def past_of(name):
    """Return the readings of a sensor until now."""
    values = daily(STEPS, seed=list(LABELS).index(name))
    return readings(name, START, values[: STEPS - SILENT_FOR] if name == SILENT else values)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Return a service with three sensors, one of them silent, and one refused row."""
    with Live(tmp_path_factory.mktemp("real") / "a.db", horizon=4) as service:
        for i, (name, label) in enumerate(LABELS.items()):
            declared = {"label": label, "group": "Gates", "position": [52.0 + i / 100, 5.0]}
            service.client.put(f"/v1/sensors/{name}", json={**declared, "unit": "veh"})
        lasts = {name: past_of(name) for name in LABELS}
        for name, rows in lasts.items():
            kept = rows if name == SILENT else rows[:-LIVED]
            assert service.post(kept, mode="backfill").status_code == 200
        service.do(settled)
        for step in range(-LIVED, 0):
            service.post([rows[step] for name, rows in lasts.items() if name != SILENT])
        service.post([{"sensor": "north", "time": stamp(START + 450), "value": 1}])
        service.do(settled)
        # States are counted periodically.
        wait_until(
            lambda: service.client.get("/v1/summary").json()["sensors"]["silent"] == 1,
            "a silent sensor in the summary",
        )
        yield service


@pytest.fixture(scope="module")
def opened(browser, served):
    """Open its page, and record the console and all requests."""
    with pages(browser) as open_:
        found = open_(served)
        found.page.wait_for_selector("#panels .panel")
        found.page.wait_for_selector(".strip")
        until_page(found.page, "document.querySelectorAll('#upcoming li').length === 4")
        yield found
        assert found.violations() == []
        assert found.said == []
        assert {urlsplit(url).netloc for url in found.asked} == {urlsplit(served.url).netloc}


@pytest.fixture
def page(opened):
    return opened.page


@pytest.fixture
def told(served):
    """Return a function that returns the JSON of a route."""

    def ask(path, **params):
        answer = served.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def texts(page, selector):
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def is_rounded(text, value):
    """Return whether a text is a value, rounded to the digits that it has."""
    plain = text.replace(",", "")
    return float(plain) == pytest.approx(value, abs=0.51 * 10.0 ** -len(plain.partition(".")[2]))


def test_the_state_and_the_counts_match_the_summary(page, told):
    summary = told("/v1/summary")

    assert summary["sensors"] == {**dict.fromkeys(summary["sensors"], 0), "good": 2, "silent": 1}
    assert page.inner_text("#status-word") == "Live"
    assert "3 sensors, of which 1 needs attention: 1 silent." in page.inner_text("#status-sentence")
    facts = " | ".join(texts(page, "#facts > div"))
    assert f"readings for {summary['last_step']['time'][11:16]} UTC ⚠ 2 of 3" in facts
    assert f"refused, last hour ⚠ {summary['refused_last_hour']}" in facts
    assert summary["refused_last_hour"] == 1
    expected = [f"{count} {state}" for state, count in summary["sensors"].items()]
    assert texts(page, "#chips button") == [f"{summary['total']} all", *expected]


def test_the_list_matches_the_route_with_problems_first(page, told):
    items = told("/v1/sensors", sort="-error_ratio")["items"]
    items.sort(key=lambda item: item["state"] == "good")

    rows = texts(page, "#row-body .row")

    assert rows[0].startswith(f"{LABELS[SILENT]} silent: {items[0]['reason']}")
    assert len(rows) == len(items)
    for row, item in list(zip(rows, items, strict=True))[1:]:
        found = re.fullmatch(
            r"(.*) (\w+) ([\d.]+) \N{MULTIPLICATION SIGN} [↗↘]? ?(\d+) % ([\d.]+) → ([\d.]+)", row
        )
        label, name, ratio, outside, value, forecast = found.groups()
        assert (label, name) == (item["label"], item["id"])
        assert is_rounded(ratio, item["error_ratio"])
        assert is_rounded(outside, 100 * item["outside"])
        assert is_rounded(value, item["value"])
        assert is_rounded(forecast, item["forecast"]["value"])


def test_the_sensor_is_drawn_with_its_forecasts(page, told):
    name = page.get_attribute("#row-body [aria-selected=true]", "data-id")
    forecasts = told(f"/v1/sensors/{name}/forecasts")["items"]

    assert page.inner_text("#sensor-name") == LABELS[name]
    first = re.fullmatch(r"Next 15 minutes: ([\d.]+) veh", page.inner_text("#headline"))
    assert is_rounded(first[1], forecasts[0]["value"])
    band = re.match(
        r"90 % sure to lie between ([\d.]+) and ([\d.]+), by", page.inner_text("#headline-band")
    )
    assert is_rounded(band[1], forecasts[0]["lower"])
    assert is_rounded(band[2], forecasts[0]["upper"])
    for row, step in zip(texts(page, "#upcoming li"), forecasts, strict=True):
        time, value, lower, upper = re.split("[ \N{EN DASH}]", row)
        assert time == step["time"][11:16]
        assert is_rounded(value, step["value"])
        assert is_rounded(lower, step["lower"])
        assert is_rounded(upper, step["upper"])
    # A day of readings with both ends, and a forecast of each step that was sent one by one.
    *_, upper, lower, _, _, actual = page.evaluate("document.querySelector('#chart').plot.data")
    assert sum(value is not None for value in actual) == 97
    assert None not in (*upper[-4:], *lower[-4:])


def test_tuning_shows_the_present_hyperparameters(page, told):
    name = page.get_attribute("#row-body [aria-selected=true]", "data-id")
    tuning = told(f"/v1/sensors/{name}/tuning")
    plain = [each for each in tuning["names"] if each not in tuning["weights"] and "[" not in each]

    values = dict(zip(texts(page, ".line-panel .name"), texts(page, ".line-panel b"), strict=True))

    assert list(values) == [re.sub(r"[._]", " ", each) for each in plain]
    for each, text in zip(plain, values.values(), strict=True):
        plainly = text.translate(SUPERSCRIPTS).replace(" \N{MULTIPLICATION SIGN} 10", "e")
        assert float(plainly) == pytest.approx(tuning["items"][-1]["values"][each], rel=0.06)


def test_gaps_match_the_route(page, told):
    end = START + -(-STEPS * STEP // 3600) * 3600
    rows = told("/v1/gaps", **{"from": stamp(end - 48 * 3600), "to": stamp(end)})["items"]
    received = {row["label"]: sum(hour or 0 for hour in row["hours"]) for row in rows}

    shown = dict(
        zip(
            texts(page, ".gap-row button"),
            page.eval_on_selector_all(
                ".strip", "nodes => nodes.map((n) => n.getAttribute('aria-label'))"
            ),
            strict=True,
        )
    )

    assert next(iter(shown)) == LABELS[SILENT]
    missing, expected = re.match(r"(\d+) of (\d+) readings missing", shown[LABELS[SILENT]]).groups()
    assert int(missing) == SILENT_FOR
    assert int(expected) - int(missing) == received[LABELS[SILENT]]
    assert set(list(shown.values())[1:]) == {"no reading missing"}
    assert f"{missing} readings missing of {3 * int(expected)}" in page.inner_text("#gaps-words")


def test_events_match_the_route(page, told):
    events = [item for item in told("/v1/events")["items"] if item["kind"] == "refused"]

    rows = texts(page, "#change-rows li")

    assert len(events) == 1
    assert any("refused" in row and events[0]["reason"][:20].lower() in row.lower() for row in rows)


def test_the_first_view_is_small(page, record_property):
    bytes_ = page.evaluate(
        "performance.getEntries().reduce((sum, each) => sum + (each.transferSize || 0), 0)"
    )

    record_property("bytes", bytes_)
    assert 0 < bytes_ <= LARGEST_VIEW


def test_a_new_reading_is_shown_without_a_reload(page, served):
    page.evaluate("window.stays = true")
    before = page.inner_text("#upcoming time >> nth=0")
    at = stamp(START + STEPS * STEP)

    served.post([{"sensor": name, "time": at, "value": 123.0} for name in ("north", "south")])

    until_page(page, f"document.querySelector('#upcoming time').innerText !== {before!r}")
    wait_until(
        lambda: all("123" in row for row in texts(page, "#row-body .row:not(.in-trouble)")),
        "the new values in the list",
    )
    assert page.inner_text("#upcoming time >> nth=0") == stamp(START + (STEPS + 1) * STEP)[11:16]
    wait_until(
        lambda: f"readings for {at[11:16]} UTC" in " ".join(texts(page, "#facts > div")),
        "the new step among the facts",
    )
    assert page.evaluate("window.stays")


def test_a_click_filters_by_state_and_keys_open_a_sensor(page):
    page.get_by_role("button", name="1 silent").click()
    until_page(page, "document.querySelectorAll('#row-body .row').length === 1")
    page.get_by_role("button", name="1 silent").click()
    until_page(page, "document.querySelectorAll('#row-body .row').length === 3")

    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")

    until_page(page, f"document.querySelector('#sensor-name').innerText === {LABELS[SILENT]!r}")
    assert page.url.endswith(f"#{SILENT}")
    assert "Silent: no reading for 30 hours." in page.inner_text("#sensor-state")


class TestActions:
    """Operators act from the page; each action goes into the log of the service."""

    @pytest.fixture
    def north(self, page):
        page.goto(page.url.partition("#")[0] + "#north")
        until_page(
            page, f"document.querySelector('#sensor-name').innerText === {LABELS['north']!r}"
        )
        page.evaluate("document.getElementById('act').open = true")
        return page

    def act(self, page, form, expected, **values):
        """Fill in a form, send it, and wait for the result."""
        for name, value in values.items():
            page.fill(f"#{form} [name={name}]", value)
        page.click(f"#{form} button")
        until_page(page, f"document.querySelector('#act-result').innerText === {expected!r}")

    def actions(self, served, sensor):
        number = served.service.statuses.find(sensor).sensor.id
        found = served.do(lambda service: service.read(lambda ledger: ledger.actions(number)))
        return [each.kind for each in found if each.kind != "configure"]

    def test_a_model_is_retuned_frozen_and_freed(self, north, served, told):
        self.act(north, "act-retune", RETUNED)
        self.act(north, "act-freeze", "Tuning is frozen.")
        frozen = told("/v1/sensors/north/tuning")
        self.act(north, "act-unfreeze", "Tuning goes on.")

        assert self.actions(served, "north")[-3:] == ["retune", "freeze", "unfreeze"]
        assert frozen["frozen"] == frozen["learned"]
        assert told("/v1/sensors/north/tuning")["frozen"] == []

    def test_the_list_and_the_sensor_show_one_forecast_after_an_action(self, north, served):
        values = {"values": {"regularization": 0.001}}
        assert served.client.post("/v1/sensors/north/set", json=values).status_code == 200
        north.reload()
        until_page(north, "document.querySelector('#upcoming li:last-child span')?.innerText")

        row = north.inner_text("#row-body [data-id=north] .values")
        headline = north.inner_text("#headline")

        assert headline == f"Next 15 minutes: {row.split()[-1]} veh"
        assert served.client.post("/v1/sensors/north/rollback").status_code == 200

    def test_a_closure_is_excluded(self, north, served):
        words = "These readings are not learned from."

        self.act(north, "act-exclude", words, start="2026-01-02T08:00", end="2026-01-02T12:00")

        assert self.actions(served, "north")[-1] == "exclude"

    def test_a_reading_is_voided(self, north, told):
        at = stamp(START + 450 * STEP)
        words = "The reading counts as missing now."

        self.act(north, "act-void", words, time=at.removesuffix("Z"))

        [row] = told("/v1/sensors/north/history", **{"from": at, "to": at})["items"]
        assert (row["actual"], row["status"]) == (None, "missing")

    def test_a_refused_action_says_why(self, served, open_page):
        page = open_page(served).page  # the browser itself reports the refusal on its console
        page.evaluate("document.getElementById('act').open = true")
        page.fill("#act-exclude [name=start]", "2026-01-03T08:00")
        page.fill("#act-exclude [name=end]", "2026-01-02T08:00")

        page.click("#act-exclude button")

        until_page(page, "document.querySelector('#act-result').innerText.includes('later than')")

    def test_a_label_is_changed(self, north, told):
        self.act(north, "act-label", "Saved.", label="Gate north, new")
        declared = told("/v1/sensors/north")["declared"]
        self.act(north, "act-label", "Saved.", label=LABELS["north"])

        assert declared["label"] == "Gate north, new"
        assert declared["group"] == "Gates"

    def test_a_problem_is_acknowledged_until_the_state_changes(self, page, served, told):
        page.goto(page.url.partition("#")[0] + f"#{SILENT}")
        until_page(page, f"document.querySelector('#sensor-name').innerText === {LABELS[SILENT]!r}")
        page.evaluate("document.getElementById('act').open = true")

        self.act(page, "act-acknowledge", "Acknowledged.")

        until_page(
            page, "document.querySelector('#sensor-state').innerText.includes('acknowledged')"
        )
        assert told(f"/v1/sensors/{SILENT}")["acknowledged"]
        assert [each["kind"] for each in told("/v1/events")["items"]].count("acknowledged") == 1

    def test_a_longer_range_shows_more_of_the_past(self, north):
        count = "document.querySelector('#chart').plot.data[0].length"
        until_page(north, f"document.querySelector('#sensor').ariaBusy !== 'true' && {count} > 50")

        north.select_option("#time-range", "72")

        until_page(north, f"{count} > 200")
