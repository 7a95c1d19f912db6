"""Labels, groups, units and reasons that contain scripts are shown as text."""

from __future__ import annotations

from itertools import product

import pytest

from tests.support.page.fake_service import FakeService
from tests.support.page.simulated import Roads, Sensor, iso
from tests.support.page.waiting import until_page, until_streams
from tests.support.waiting import wait_until

ACTS = ("alert(1)", "confirm`1`", "prompt(document.domain)", "top.location='//x.test'")
SHAPES = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    '"><script>{}</script>',
    "'><img src=x onerror={}>",
    "<iframe srcdoc='<script>{}</script>'></iframe>",
    "<iframe src=javascript:{}></iframe>",
    "<a href=javascript:{}>x</a>",
    "<body onload={}>",
    "<details open ontoggle={}>x</details>",
    "<input autofocus onfocus={}>",
    "<video><source onerror={}></video>",
    "<math><mtext></table><img src=x onerror={}>",
    "<style>@import 'javascript:{}'</style>",
    '<div style="background:url(javascript:{})">x</div>',
    "<object data=javascript:{}></object>",
    "<form><button formaction=javascript:{}>x</button></form>",
    "</textarea></title><img src=x onerror={}>",
    "{{{{constructor.constructor('{}')()}}}}",
    "${{{}}}",
    "javascript:{}",
    "<template><img src=x onerror={}></template>",
    "\u202e<img src=x onerror={}>",
    "<marquee onstart={}>x</marquee>",
)
PAYLOADS = [shape.format(act) for shape, act in product(SHAPES, ACTS)]
# Turns the pages of the list, notes every name, and selects every fourth sensor.
WALK = """async () => {
  const find = (id) => document.querySelector(id);
  const until = async (claim) => {
    const wait = (done) => setTimeout(done, 10);
    for (let i = 0; i < 10000 && !claim(); i += 1) await new Promise(wait);
  };
  const seen = { list: [], chart: [] };
  for (;;) {
    for (const row of document.querySelectorAll("#row-body .row")) {
      const label = row.querySelector("bdi").textContent;
      seen.list.push(label);
      if (seen.list.length % 4) continue;
      row.click();
      await until(() => find("#sensor-name").textContent === label);
      seen.chart.push(find("#sensor-name").textContent);
    }
    if (find("#next").disabled) break;
    const range = find("#range").textContent;
    find("#next").click();
    await until(() => find("#range").textContent !== range);
  }
  const strips = [...document.querySelectorAll(".gap-rows button")];
  return { ...seen, gaps: strips.map((button) => button.textContent) };
}"""


def hostile_roads():
    """Return a sensor for each payload, which is its label, its group and its reason."""
    sensors = [
        Sensor(
            f"x-{i}",
            text,
            text,
            [52 + i / 500, 4.9],
            "implausible",
            text,
            ratio=3 - i / 100,
            level=100,
        )
        for i, text in enumerate(PAYLOADS)
    ]
    roads = Roads(sensors)
    roads.reasons, roads.clock_warning, roads.events = PAYLOADS[:3], PAYLOADS[1], []
    return roads


def until_shown(page, text):
    """Wait until a text is in the list of events."""
    wait_until(lambda: text in page.inner_text("#change-rows"), f"a change that says {text}")


def walk_through(page, service):
    """Show every payload in the list, the chart, the gaps, the events and the map."""
    until_streams(service)
    for i in range(len(PAYLOADS)):
        event = {"id": 100 + i, "time": iso(service.roads.now()), "kind": "silent"}
        service.push("event", {**event, "sensor": f"x-{i}", "reason": PAYLOADS[i]})
        if i % 25 == 24:
            until_shown(page, PAYLOADS[i])
    shown = "document.querySelectorAll('.gap-rows button').length"
    until_page(page, f"{shown} === {len(PAYLOADS)}")
    seen = page.evaluate(WALK)
    page.click("#as-map")
    page.wait_for_selector("#map canvas")
    box = page.locator("#map canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.hover("#chart", position={"x": 300, "y": 150})
    page.hover(".strip >> nth=0")
    return seen


def test_scripts_in_names_and_reasons_never_run(open_page, record_property):
    record_property("row", "E8")
    record_property("cases", len(PAYLOADS))
    with FakeService(hostile_roads()) as service:
        opened = open_page(service, viewport={"width": 1280, "height": 2000})

        seen = walk_through(opened.page, service)

        assert len(PAYLOADS) == len(set(PAYLOADS)) == 100
        assert sorted(seen["list"]) == sorted(PAYLOADS)
        assert seen["chart"] == seen["list"][3::4]
        assert sorted(seen["gaps"]) == sorted(PAYLOADS)
        assert PAYLOADS[-1] in opened.page.inner_text("#change-rows")
        assert opened.dialogs == []
        assert opened.violations() == []
        assert opened.page.url.startswith(service.url)


@pytest.mark.slow
def test_the_test_notices_a_page_that_inserts_text_as_markup(open_page):
    broken = {
        "dom.js": lambda text: text.replace("node.textContent = value", "node.innerHTML = value")
    }
    with FakeService(hostile_roads(), patches=broken) as service:
        opened = open_page(service, ready=False)

        opened.page.wait_for_selector("#row-body .row")

        wait_until(lambda: opened.violations() or opened.dialogs, "a script that runs")
