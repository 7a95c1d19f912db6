"""The seven parts of the page, in order and without a click, in a real browser."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path

import pytest

from tests.support.page.fake_service import PAGE, FakeService
from tests.support.page.opening import pages
from tests.support.page.simulated import Roads
from tests.support.page.waiting import until_loaded, until_page

CLOCK_WARNING = "The clock jumped by 12 h at 05:10."
PARTS = ("status", "states", "sensors", "sensor", "tuning", "gaps", "changes")


@pytest.fixture(scope="module")
def page(browser):
    """Open a page that the tests of this module read and do not change."""
    with FakeService(beat=1.0) as service, pages(browser) as open_:
        service.roads.clock_warning = CLOCK_WARNING
        page = open_(service).page
        until_loaded(page)
        yield page


def texts(page, selector):
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def test_all_seven_parts_are_visible_in_order(page):
    assert page.eval_on_selector_all("main > section", "nodes => nodes.map(n => n.id)") == list(
        PARTS
    )
    assert all(page.locator(f"#{part}").is_visible() for part in PARTS)


def test_the_first_part_shows_state_age_share_refusals_disk_and_clock(page):
    status = page.get_by_role("status").inner_text()
    assert "Degraded" in status
    assert "6 sensors of N201 are stale." in status
    facts = " | ".join(texts(page, "#facts > div"))
    assert re.search(r"since the newest reading (\d+ min )?\d+ s", facts)
    assert re.search(r"readings for \d\d:\d\d CES?T ⚠ 33 of 40", facts)
    assert "refused, last hour ⚠ 14" in facts
    assert "until the disk is full 2.2 years" in facts
    assert "forecast errors vs. usual as usual" in facts
    assert f"clock ⚠ {CLOCK_WARNING}" in facts
    # The state has its own shape, besides its colour.
    shapes = page.evaluate(
        "import('/page/glyphs.js').then(g => Object.values(g.SERVICE).map(s => s[0]))"
    )
    assert len(set(shapes)) == len(shapes)


def test_sensors_are_counted_by_state(page):
    assert texts(page, "#chips button") == [
        "40 all", "25 good", "6 stale", "1 silent", "1 constant", "1 zero", "1 implausible",
        "1 degraded", "1 rebuilt", "3 new",
    ]  # fmt: skip
    shapes = page.eval_on_selector_all(
        "#chips path", "nodes => nodes.map(n => n.getAttribute('d'))"
    )
    assert len(set(shapes)) == 9


def test_the_list_starts_with_one_sensor_of_each_problem_and_its_reason(page):
    rows = texts(page, "#row-body .row")
    assert rows[0].startswith("A9 km 1.5 degraded: the last refit failed: K + regularization")
    assert [row.partition(":")[0].split()[-1] for row in rows[:5]] == [
        "degraded", "stale", "silent", "implausible", "zero",
    ]  # fmt: skip
    # A sensor that stopped reporting shows no value that looks current.
    assert rows[2].startswith("A9 km 17.2 silent: no reading for 31 hours \N{EN DASH}")


def test_the_worst_forecasts_follow_and_the_worst_sensor_is_shown(page):
    rows = page.locator("#row-body .row")
    worst = rows.nth(5)
    assert re.sub(r"\s+", " ", worst.inner_text()).startswith(
        "A2 km 35.1 A2-35.1 2.3 \N{MULTIPLICATION SIGN} ↗ 38 %"
    )
    assert worst.get_attribute("aria-selected") == "true"
    assert page.inner_text("#sensor-why") == "worst forecasts now"
    assert page.inner_text("#range") == f"1\N{EN DASH}{rows.count()} of 40"


def test_no_sensor_is_listed_twice_on_any_page(service, open_page):
    for sensor in service.roads.sensors[:20]:
        sensor.state = "stale"
    page = open_page(service).page
    names = page.locator("#row-body bdi").all_inner_texts()
    assert len(names) == 11  # as many as fit, without the sensors at the top
    while page.is_enabled("#next"):
        last = names[-1]
        page.click("#next")
        until_page(
            page, f"[...document.querySelectorAll('#row-body bdi')].pop().innerText !== {last!r}"
        )
        names += page.locator("#row-body bdi").all_inner_texts()

    assert len(names) == len(set(names)) == 40
    assert page.inner_text("#range").endswith("\N{EN DASH}40 of 40")


@pytest.mark.parametrize(
    ("sensors", "words"),
    [
        ({"good": 2}, "All 2 sensors are good."),
        ({"good": 0, "uncounted": 1}, "The states of sensors are not known yet."),
        ({"good": 4, "new": 2}, "No sensor has a problem; 2 of 6 have no model yet."),
        ({"new": 3}, "The sensors have too few readings for a model yet."),
        ({"good": 1, "zero": 1}, "2 sensors, of which 1 needs attention: 1 zero."),
        (
            {"stale": 1, "silent": 2, "good": 1_000},
            "1,003 sensors, of which 3 need attention: 1 stale, 2 silent.",
        ),
    ],
)
def test_a_live_service_shows_how_many_sensors_need_attention(page, sensors, words):
    told = {"state": "live", "sensors": sensors, "total": sum(sensors.values())}

    said = page.evaluate("(told) => import('/page/status.js').then((m) => m.verdict(told))", told)

    assert said == words


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [(0, 4, "0"), (-0.00001, 4, "0"), (0.5, 1, "0.5"), (0.02, 2, "0.02"), (10, 0, "10")],
)
def test_zeros_of_the_list_have_no_decimals(page, value, digits, words):
    said = page.evaluate(
        "(told) => import('/page/format.js').then((m) => m.brief(...told))", [value, digits]
    )

    assert said == words


@pytest.mark.parametrize(("pace", "seen"), [(1, False), (900, True)])
def test_a_clock_faster_than_real_time_is_shown(page, pace, seen):
    found = page.evaluate(
        """async (pace) => {
          const { setClock, lapse } = await import(`/page/clock.js?${pace}`);
          const real = performance.now;
          for (let i = 0; i < 6; i += 1) {
            performance.now = () => 20 * i;
            setClock(new Date(1e12 + performance.now() * pace).toISOString());
          }
          performance.now = real;
          return lapse();
        }""",
        pace,
    )

    assert found == pytest.approx(pace) if seen else found is None


def test_the_chart_shows_gaps_and_the_next_forecasts(page):
    assert page.inner_text("#sensor-name") == "A2 km 35.1"
    assert re.fullmatch(r"Next 15 minutes: \d+ veh/15min", page.inner_text("#headline"))
    assert re.fullmatch(
        r"90 % sure to lie between \d+ and \d+, by the model\.", page.inner_text("#headline-band")
    )
    assert len(texts(page, "#upcoming li")) == 4
    drawn = page.evaluate("document.querySelector('#chart').plot.data.slice(1)")
    runs = [
        [is_known for is_known, _ in groupby(value is not None for value in values)]
        for values in drawn
    ]
    assert all(True in each for each in runs)
    # Two gaps divide the measured line into three; the future has no readings.
    assert runs[-1] == [True, False, True, False, True, False]
    assert "times in Europe/Amsterdam" in page.inner_text("#sensor-state")


def test_a_sensor_of_a_group_shows_whom_it_listens_to(page):
    until_page(page, "document.querySelectorAll('#neighbour-list li').length === 2")

    rows = page.locator("#neighbour-list li")
    assert [text.split()[1:] for text in texts(page, "#neighbour-list li")] == [["0.31"], ["0.12"]]
    assert "6 % smaller" in page.locator("#neighbours-words").inner_text()
    first, second = (row.locator("rect").bounding_box()["width"] for row in rows.all())
    assert second / first == pytest.approx(0.12 / 0.31, rel=0.02)


def test_tuning_shows_every_hyperparameter_with_limits_and_times(page):
    page.wait_for_selector("#panels .heat-panel")

    captions = texts(page, "#panels .name")
    assert captions == [
        "kernel weights", "experts", "drifting rate", "regularization", "day forgetting",
        "week forgetting", "drifting inverse scales",
    ]  # fmt: skip
    assert re.search(r"Last tuned \d+ h ago .* next in \d+ h", page.inner_text("#tuning-when"))
    assert "week forgetting is at its lower limit (0.01)" in page.inner_text("#tuning-warning")
    assert texts(page, ".limits span")[2:4] == ["0.001", "100"]
    drawn = page.evaluate(
        "[...document.querySelectorAll('.panel .plot')].map((node) => node.plot.data)"
    )
    # A value for each tuning, and one that lasts until now.
    assert {len(column) for columns in drawn for column in columns} == {31}
    assert page.locator(".stack-panel li").count() >= 4


def test_gaps_are_grouped_so_that_a_failed_group_is_visible(page):
    groups = texts(page, ".gap-group figcaption")
    assert "N201 ⚠ no reading from any of 6 sensors for 3 h" in groups
    assert "A10 9 sensors, complete" in groups
    assert page.locator(".strip").count() == 40


def test_events_of_the_last_hour_have_time_and_reason(page):
    rows = texts(page, "#change-rows li")
    assert len(rows) == 7
    assert re.match(r"\d\d:\d\d retuned, 4 sensors; latest: A2-44.8 Refitted;", rows[0])
    assert any("degraded A9-1.5 The last refit failed: K + regularization" in row for row in rows)


def test_an_empty_service_explains_how_to_send_the_first_reading(open_page):
    roads = Roads([])
    roads.state, roads.reasons, roads.events = "live", [], []
    with FakeService(roads) as service:
        page = open_page(service, ready=False).page
        page.wait_for_selector("#first")

        command = page.inner_text("#first pre")
        assert f"curl -X POST {service.url}v1/readings" in command
        body = json.loads(re.search(r"-d '(.*)'", command)[1])
        assert set(body[0]) == {"sensor", "time", "value"}
        assert not page.is_visible("#sensor")
        page.locator("#changes").get_by_text("No events in the last hour.").wait_for()


def test_the_first_view_is_small(service, open_page, record_property):
    record_property("row", "section 7")

    open_page(service).page.wait_for_selector("#panels .heat-panel")

    record_property("bytes", service.sent_bytes)
    assert service.sent_bytes <= 300_000


@pytest.mark.parametrize("file", sorted(PAGE.glob("*.*")), ids=lambda file: file.name)
def test_files_obey_the_content_security_policy(file: Path):
    text = file.read_text()

    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
    )
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    if file.suffix == ".html":
        assert not re.search(r"\s(style|on\w+)=", text)
        assert not re.search(r"<script(?![^>]*\ssrc=)", text)
        assert "<style" not in text
