"""The live page: it updates in place, says when it is not live, and does not grow."""

from __future__ import annotations

import pytest

from tests.support.page.fake_service import FakeService
from tests.support.page.simulated import Roads, iso
from tests.support.page.waiting import let_timers_run, until_loaded, until_page, until_streams
from tests.support.waiting import wait_until

# After this many events the page holds the most that it ever will.
WARMUP = 1_200
# Notes the message of a page that is not live, which may disappear soon.
NOTE_SILENCE = """() => {
  window.said = [];
  const node = document.querySelector("#silence");
  const watch = { childList: true, characterData: true, subtree: true };
  new MutationObserver(() => window.said.push(node.textContent)).observe(node, watch);
}"""


def test_the_age_of_the_newest_reading_is_updated_every_second(service, open_page):
    page = open_page(service).page
    first = page.inner_text("#facts dd >> nth=0")

    until_page(page, f"document.querySelector('#facts dd').innerText !== {first!r}")


def test_a_new_step_updates_the_page_in_place(service, open_page):
    page = open_page(service).page
    until_streams(service)
    until_loaded(page)
    page.evaluate(
        "window.kept = [...document.querySelectorAll('#row-body .row, #chart canvas, #facts dd')]"
    )
    newest = page.inner_text("#row-body .values >> nth=0")
    headline = page.inner_text("#headline")
    upcoming = page.inner_text("#upcoming time >> nth=0")

    service.move_on()

    until_page(page, f"document.querySelector('#row-body .values').innerText !== {newest!r}")
    until_page(page, f"document.querySelector('#headline').innerText !== {headline!r}")
    assert page.inner_text("#upcoming time >> nth=0") != upcoming
    assert page.evaluate("window.kept.every((node) => node.isConnected)")


def test_the_page_turns_grey_after_two_steps_without_an_event(open_page):
    with FakeService(Roads(step=1)) as service:
        page = open_page(service).page
        until_streams(service)

        def is_live():
            service.push_summary()  # on a busy machine, one may be two steps old when it is shown
            is_grey = page.evaluate("document.body.classList.contains('is-silent')")
            return not is_grey and page.inner_text("#status-word") == "Degraded"

        wait_until(is_live, "a page that is live", pause=0.05)
        page.wait_for_selector("body.is-silent")

        assert "This page is not live. The service sends nothing." in page.inner_text("#silence")
        assert page.inner_text("#status-word") == "Not live"
        assert "grayscale(1)" in page.evaluate(
            "getComputedStyle(document.querySelector('main')).filter"
        )
        wait_until(is_live, "a page that is live again", pause=0.05)


def test_a_broken_stream_is_reported_and_resumed(open_page):
    with FakeService(beat=0.2) as service:
        page = open_page(service).page
        until_streams(service)
        change = {"time": iso(service.roads.now()), "kind": "silent", "sensor": "A2-31.2"}
        service.push("event", {**change, "id": 98, "reason": "Heard."})
        page.wait_for_selector("#change-rows >> text=Heard.")
        service.roads.events.append({**change, "id": 99, "reason": "Missed."})
        page.evaluate(NOTE_SILENCE)

        service.cut_streams()

        until_page(page, "window.said.some((text) => text.includes('service is lost.'))")
        page.wait_for_selector("body:not(.is-silent)")
        wait_until(
            lambda: any(int(each.last_id or 0) > 0 for each in list(service.streams)),
            "a stream that goes on after the last event that came",
        )
        page.wait_for_selector("#change-rows >> text=Missed.")


def test_a_resync_loads_everything_again(service, open_page):
    page = open_page(service).page
    until_streams(service)
    until_loaded(page)
    service.asked.clear()

    service.push("resync", {})

    wanted = ("/v1/summary", "/v1/sensors?", "/v1/gaps", "/v1/events", "/history", "/tuning")
    wait_until(
        lambda: all(any(part in path for path in list(service.asked)) for part in wanted),
        "a question for each part",
    )
    assert page.is_visible("#headline")


def test_the_stream_subscribes_to_the_sensors_on_the_screen(service, open_page):
    page = open_page(service).page
    until_asked(service, {"A2-35.1"})

    page.get_by_role("button", name="3 new").click()

    # The selected sensor is still among them.
    until_asked(service, {"A2-35.1", "S100-6.1"})


def until_asked(service, names):
    wait_until(
        lambda: any(names <= set(each.sensors) for each in list(service.streams)),
        f"a stream of the events of {names}",
    )


def test_a_sensor_is_shown_although_its_worker_is_busy(open_page):
    with FakeService(held=("forecasts", "tuning")) as service:
        page = open_page(service).page
        until_page(page, "document.querySelector('#chart canvas') !== null")

        assert page.inner_text("#headline").startswith("Next 15 minutes: ")
        assert page.get_attribute("#tuning", "aria-busy") == "true"
        # The first of four is known; the others are placeholders.
        assert page.locator("#upcoming b").all_inner_texts()[1:] == ["\N{EN DASH}"] * 3

        service.release()

        until_page(page, "[...document.querySelectorAll('#upcoming b')].every((b) => +b.innerText)")
        until_page(page, "document.querySelectorAll('#panels .panel').length === 7")
        assert page.get_attribute("#tuning", "aria-busy") is None


def push_many(service, first, count):
    """Send events of every kind, as on a normal day."""
    items = [service.roads.item(sensor) for sensor in service.roads.sensors[:5]]
    kinds = ("silent", "good", "retuned", "refused", "new")
    for i in range(first, first + count, 4):
        service.push("summary", service.roads.summary())
        service.push("sensor", {**items[i % 5], "value": float(i)})
        for k in range(2):
            event = {"id": 1000 + i + k, "time": iso(service.roads.now()), "kind": kinds[i % 5]}
            service.push("event", {**event, "sensor": "A2-31.2", "reason": f"Change {i}."})


def sizes(page):
    """Return the size of a page: elements, all nodes, listeners and heap."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    devtools.send("HeapProfiler.collectGarbage")
    told = devtools.send("Performance.getMetrics")["metrics"]
    metrics = {each["name"]: each["value"] for each in told}
    devtools.detach()
    kept = [metrics[name] for name in ("Nodes", "JSEventListeners", "JSHeapUsedSize")]
    return [page.evaluate("document.querySelectorAll('*').length"), *kept]


def growth(page, service, warmup, events):
    """Return the growth of a page by events after a warm-up."""
    push_many(service, 0, warmup)
    page.wait_for_selector(f"text=Change {warmup - 4}.")
    let_timers_run(page, 1100)
    before = sizes(page)
    push_many(service, warmup, events)
    page.wait_for_selector(f"text=Change {warmup + events - 4}.")
    let_timers_run(page, 1100)
    return [after - start for after, start in zip(sizes(page), before, strict=True)]


@pytest.mark.parametrize("events", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_events_do_not_grow_the_page(open_page, events, record_property):
    record_property("row", "section 7")
    record_property("cases", events)
    with FakeService() as service:
        page = open_page(service).page
        until_streams(service)

        elements, nodes, listeners, heap = growth(page, service, WARMUP, events)

    assert elements == 0
    assert nodes <= 50
    assert listeners <= 5
    assert heap <= 2_000_000


@pytest.mark.slow
def test_the_test_notices_a_page_that_grows(open_page):
    # Ten events at a time: events that share a line remove other lines.
    leak = "heard(); for (let i = 0; i < 10; i += 1) document.body.append(new Image());"
    broken = {"page.js": lambda text: text.replace("heard();", leak, 1)}
    with FakeService(patches=broken) as service:
        page = open_page(service).page
        until_streams(service)

        elements, *_ = growth(page, service, 40, 80)

    assert elements >= 80
