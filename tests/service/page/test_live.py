"""The page lives: it renews itself in place, says when it does not, and does not grow."""

from __future__ import annotations

import time

from tests.service.page.fake_service import FakeService
from tests.service.page.simulated import Roads, iso
from tests.service.page.waiting import until, until_page

EVENTS = 2_000
# After these the page holds as many changes as it ever will.
WARMUP = 1_200


def test_the_age_of_the_newest_reading_ticks(service, open_page):
    page = open_page(service).page
    first = page.inner_text("#facts dd >> nth=0")

    until_page(page, f"document.querySelector('#facts dd').innerText !== {first!r}")


def test_a_new_step_moves_the_page_on_without_making_it_anew(service, open_page):
    page = open_page(service).page
    until(lambda: service.streams)
    page.evaluate(
        "window.kept = [...document.querySelectorAll('#row-body .row, #chart path, #facts dd')]"
    )
    newest = page.inner_text("#row-body .values >> nth=0")
    headline = page.inner_text("#headline")
    upcoming = page.inner_text("#upcoming time >> nth=0")

    service.move_on()

    until_page(page, f"document.querySelector('#row-body .values').innerText !== {newest!r}")
    until_page(page, f"document.querySelector('#headline').innerText !== {headline!r}")
    assert page.inner_text("#upcoming time >> nth=0") != upcoming
    assert page.evaluate("window.kept.every((node) => node.isConnected)")


def test_the_page_greys_itself_when_its_stream_is_older_than_two_steps(open_page):
    with FakeService(Roads(step=1)) as service:
        page = open_page(service).page
        until(lambda: service.streams)

        assert not page.is_visible("#silence")

        page.wait_for_selector("body.is-silent")

        assert "This page is not live. The service says nothing." in page.inner_text("#silence")
        assert page.inner_text("#truth-word") == "Not live"
        assert "grayscale(1)" in page.evaluate(
            "getComputedStyle(document.querySelector('main')).filter"
        )

        service.push_summary()

        page.wait_for_selector("body:not(.is-silent)")
        assert page.inner_text("#truth-word") == "Degraded"


def test_a_broken_stream_is_told_resumed_and_made_good(open_page):
    with FakeService(beat=0.2) as service:
        page = open_page(service).page
        until(lambda: service.streams)
        time.sleep(0.5)
        service.roads.events.append(
            {
                "id": 99,
                "time": iso(time.time()),
                "kind": "silent",
                "sensor": "A2-31.2",
                "reason": "Missed.",
            }
        )

        service.cut_streams()

        page.wait_for_selector("body.is-silent")
        assert "The connection to the service is lost." in page.inner_text("#silence")
        page.wait_for_selector("body:not(.is-silent)")
        until(lambda: service.streams)
        assert int(service.streams[-1].last_id) > 0
        page.wait_for_selector("#change-rows >> text=Missed.")


def test_a_resync_asks_for_everything_again(service, open_page):
    page = open_page(service).page
    until(lambda: service.streams)
    time.sleep(0.3)
    service.asked.clear()

    service.push("resync", {})

    wanted = ("/v1/summary", "/v1/sensors?", "/v1/gaps", "/v1/events", "/history", "/tuning")
    until(lambda: all(any(part in path for path in service.asked) for part in wanted))
    assert page.is_visible("#headline")


def test_the_stream_asks_for_the_sensors_that_are_seen(service, open_page):
    page = open_page(service).page
    until(lambda: service.streams and "A2-35.1" in service.streams[-1].sensors)

    page.get_by_role("button", name="3 new").click()

    until(lambda: any("S100-6.1" in each.sensors for each in service.streams))
    # The one that is drawn is still among them.
    assert any({"A2-35.1", "S100-6.1"} <= set(each.sensors) for each in service.streams)


def test_a_busy_worker_does_not_keep_a_sensor_from_being_shown(open_page):
    with FakeService(slow={"forecasts": 2.0, "tuning": 2.0}) as service:
        page = open_page(service).page
        until_page(
            page, "document.querySelector('#chart .layer-actual').getAttribute('d') !== null"
        )

        assert page.inner_text("#headline").startswith("Next 15 minutes: ")
        assert page.get_attribute("#tuning", "aria-busy") == "true"
        # The first of four is known; the others keep their places.
        assert page.locator("#upcoming b").all_inner_texts()[1:] == ["\N{EN DASH}"] * 3

        until_page(page, "[...document.querySelectorAll('#upcoming b')].every((b) => +b.innerText)")
        until_page(page, "document.querySelectorAll('#panels .panel').length === 7")
        assert page.get_attribute("#tuning", "aria-busy") is None


def push_many(service, first, count):
    """Send events of every kind, as a day would."""
    items = [service.roads.item(sensor) for sensor in service.roads.sensors[:5]]
    kinds = ("silent", "good", "retuned", "refused", "new")
    for i in range(first, first + count, 4):
        service.push("summary", service.roads.summary())
        service.push("sensor", {**items[i % 5], "value": float(i)})
        for k in range(2):
            event = {"id": 1000 + i + k, "time": iso(time.time()), "kind": kinds[i % 5]}
            service.push("event", {**event, "sensor": "A2-31.2", "reason": f"Change {i}."})


def sizes(page):
    """Return how large a page is: elements, nodes with those let go of, listeners, heap."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    devtools.send("HeapProfiler.collectGarbage")
    told = devtools.send("Performance.getMetrics")["metrics"]
    metrics = {each["name"]: each["value"] for each in told}
    devtools.detach()
    kept = [metrics[name] for name in ("Nodes", "JSEventListeners", "JSHeapUsedSize")]
    return [page.evaluate("document.querySelectorAll('*').length"), *kept]


def growth(page, service, warmup, events):
    """Return by how much a page grows by events, once it is warm."""
    push_many(service, 0, warmup)
    page.wait_for_selector(f"text=Change {warmup - 4}.")
    page.wait_for_timeout(1100)
    before = sizes(page)
    push_many(service, warmup, events)
    page.wait_for_selector(f"text=Change {warmup + events - 4}.")
    page.wait_for_timeout(1100)
    return [after - start for after, start in zip(sizes(page), before, strict=True)]


def test_two_thousand_events_leave_the_page_as_large_as_before(open_page, record_property):
    record_property("row", "section 7")
    record_property("cases", EVENTS)
    with FakeService() as service:
        page = open_page(service).page
        until(lambda: service.streams)

        elements, nodes, listeners, heap = growth(page, service, WARMUP, EVENTS)

    assert elements == 0
    assert nodes <= 50
    assert listeners <= 5
    assert heap <= 2_000_000


def test_the_harness_notices_a_page_that_grows(open_page):
    # Ten of them an event: lines of changes that come to be shared take others away.
    leak = "heard(); for (let i = 0; i < 10; i += 1) document.body.append(new Image());"
    broken = {"page.js": lambda text: text.replace("heard();", leak, 1)}
    with FakeService(patches=broken) as service:
        page = open_page(service).page
        until(lambda: service.streams)

        elements, *_ = growth(page, service, 40, 80)

    assert elements >= 80
