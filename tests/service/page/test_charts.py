"""Charts of the page: zoom, movement, cursor, themes, and the library that draws them."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.support.page.fake_service import VENDOR, FakeService
from tests.support.page.opening import pages
from tests.support.page.simulated import STEP
from tests.support.page.waiting import until_loaded, until_page, until_streams
from tests.support.waiting import wait_until

SHOWN = """(selector) => {
  const { min, max } = document.querySelector(selector).plot.scales.x;
  return [min / 1000, max / 1000];
}"""
# Colours of a canvas, as often as they occur.
COLOURS = """(selector) => {
  const canvas = document.querySelector(`${selector} canvas`);
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const brush = copy.getContext("2d", { willReadFrequently: true });
  brush.drawImage(canvas, 0, 0);
  const { data } = brush.getImageData(0, 0, canvas.width, canvas.height);
  const found = {};
  for (let i = 0; i < data.length; i += 4) {
    const name = `${data[i]} ${data[i + 1]} ${data[i + 2]} ${data[i + 3]}`;
    found[name] = (found[name] ?? 0) + 1;
  }
  return found;
}"""
DAY, REACH = 86_400, 4 * STEP


@pytest.fixture(scope="module")
def service():
    with FakeService() as started:
        yield started


@pytest.fixture(scope="module")
def opened(browser, service):
    """Open a page of which tests change only the charts."""
    with pages(browser) as open_:
        found = open_(service)
        until_loaded(found.page)
        yield found
        assert found.violations() == []
        assert found.said == []


@pytest.fixture
def page(opened):
    """Return the page with whole ranges and without a cursor."""
    opened.page.mouse.move(1, 1)
    for node in ("chart", "tuning"):
        if opened.page.is_visible(f"#{node}-whole"):
            opened.page.click(f"#{node}-whole")
    opened.page.evaluate("document.activeElement.blur()")
    return opened.page


def shown(page, selector="#chart"):
    """Return the first and the last shown second."""
    return page.evaluate(SHOWN, selector)


def at(page, share, selector="#chart"):
    """Return a position in the area of a chart."""
    page.locator(selector).first.scroll_into_view_if_needed()
    box = page.locator(f"{selector} .u-over").first.bounding_box()
    return box["x"] + share * box["width"], box["y"] + 0.4 * box["height"]


def drag(page, start, end, selector="#chart"):
    page.mouse.move(*at(page, start, selector))
    page.mouse.down()
    page.mouse.move(*at(page, (start + end) / 2, selector))
    page.mouse.move(*at(page, end, selector))
    page.mouse.up()


def until_shown(page, first, last, within=STEP):
    """Wait until the chart shows a time range."""
    until_page(
        page,
        f"(() => {{ const [a, b] = ({SHOWN})('#chart');"
        f" return Math.abs(a - {first}) <= {within} && Math.abs(b - {last}) <= {within}; }})()",
    )


def test_a_drag_zooms_and_a_double_click_shows_everything(page):
    first, last = shown(page)
    assert last - first == DAY + REACH

    drag(page, 0.25, 0.5)

    until_shown(page, first + 0.25 * (last - first), first + 0.5 * (last - first))
    assert page.inner_text("#chart-whole") == "Show the whole range"

    page.mouse.dblclick(*at(page, 0.5))

    until_shown(page, first, last, within=0)
    assert not page.is_visible("#chart-whole")


def test_a_click_does_not_zoom(page):
    page.mouse.click(*at(page, 0.5))

    assert not page.is_visible("#chart-whole")


def test_a_zoomed_chart_moves_by_shift_drag_and_by_wheel(page):
    drag(page, 0.5, 0.75)
    page.wait_for_selector("#chart-whole:visible")
    first, last = shown(page)
    width = last - first

    page.keyboard.down("Shift")
    drag(page, 0.25, 0.75)
    page.keyboard.up("Shift")

    until_shown(page, first - width / 2, last - width / 2, within=60)

    page.mouse.move(*at(page, 0.5))
    page.mouse.wheel(page.locator("#chart .u-over").bounding_box()["width"] / 2, 0)

    until_shown(page, first, last, within=60)


def test_the_chart_cannot_be_moved_beyond_its_data(page):
    whole = shown(page)
    drag(page, 0.5, 0.75)
    page.wait_for_selector("#chart-whole:visible")
    first, last = shown(page)

    page.mouse.move(*at(page, 0.5))
    page.mouse.wheel(100_000, 0)

    until_shown(page, whole[1] - (last - first), whole[1], within=1)


def test_control_and_wheel_zoom_and_the_wheel_alone_scrolls_the_page(page):
    first, last = shown(page)
    page.mouse.move(*at(page, 0.5))
    middle = (first + last) / 2

    page.keyboard.down("Control")
    page.mouse.wheel(0, -1000)
    page.keyboard.up("Control")

    page.wait_for_selector("#chart-whole:visible")
    zoomed = shown(page)
    assert zoomed[1] - zoomed[0] < (last - first) / 4
    assert zoomed[0] < middle < zoomed[1]

    before = page.evaluate("scrollY")
    page.mouse.wheel(0, 200)

    until_page(page, f"scrollY > {before}")
    assert shown(page) == zoomed


def test_the_cursor_shows_values_local_time_and_utc(page):
    page.mouse.move(*at(page, 0.2))

    page.wait_for_selector("#tip:visible")
    tip = page.inner_text("#tip")
    assert re.search(r"\d\d:\d\d CES?T\s+\d\d:\d\d UTC", tip)
    for word in ("measured", "forecast", "interval", "by the model", "last week"):
        assert word in tip

    page.mouse.move(1, 1)

    page.wait_for_selector("#tip", state="hidden")


def test_keys_zoom_move_and_read_the_chart(page):
    whole = shown(page)
    words = "document.querySelector('#chart-words').textContent"
    page.focus("#chart")

    page.keyboard.press("ArrowLeft")

    until_page(page, f"{words}.startsWith('Tue 17 Nov 08:30 CET 07:30 UTC measured 527 veh/15min')")

    page.keyboard.press("+")
    page.keyboard.press("+")

    until_page(page, f"{words}.startsWith('Shown: Tue 17 Nov 0')")
    zoomed = shown(page)
    assert zoomed[1] - zoomed[0] == pytest.approx((DAY + REACH) / 4)

    page.keyboard.press("Shift+ArrowLeft")

    until_shown(page, *(bound - (zoomed[1] - zoomed[0]) / 4 for bound in zoomed), within=1)

    # The shown part follows the cursor.
    page.keyboard.press("Home")

    until_page(page, f"{words}.startsWith('Mon 16 Nov 08:30 CET')")
    until_shown(page, whole[0], whole[0] + (DAY + REACH) / 4, within=1)

    page.keyboard.press("0")

    until_shown(page, *whole, within=0)


def test_panels_of_the_tuning_zoom_together(page):
    first, last = shown(page, ".line-panel .plot")

    drag(page, 0.25, 0.75, ".line-panel .plot")

    until_page(page, "!document.querySelector('#tuning-whole').hidden")
    ranges = {tuple(shown(page, f".{kind} .plot")) for kind in ("line-panel", "stack-panel")}
    assert len(ranges) == 1
    [(left, right)] = ranges
    assert right - left < 0.6 * (last - first)
    assert page.is_hidden("#chart-whole")

    page.click("#tuning-whole")

    until_page(page, "document.querySelector('#tuning-whole').hidden")
    assert shown(page, ".stack-panel .plot") == [first, last]


def test_values_of_a_panel_are_read_with_the_keyboard(page):
    page.focus(".line-panel .plot")

    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")

    words = page.inner_text("#chart-words")
    assert re.fullmatch(
        r"\w{3} \d+ \w{3} \d\d:\d\d CES?T \d\d:\d\d UTC drifting rate .* changed by \w+", words
    )
    label = page.get_attribute(".line-panel .plot", "aria-label")
    assert label.startswith("drifting rate over 30 days. ")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_lines_have_the_colours_of_the_theme(page, look):
    ink, accent = {
        "light": ("27 36 48 255", "11 106 162 255"),
        "dark": ("230 235 241 255", "91 180 234 255"),
    }[look]

    page.emulate_media(color_scheme=look)

    until_page(page, f"({COLOURS})('#chart')['{ink}'] > 100")
    found = page.evaluate(COLOURS, "#chart")
    assert found[accent] > 100
    assert page.evaluate(COLOURS, ".line-panel .plot")[accent] > 50


def test_two_fingers_zoom(page):
    first, last = shown(page)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})

    def touch(kind, *shares):
        spots = [at(page, share) for share in shares]
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(spots)]
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.4, 0.6)
    touch("touchMove", 0.3, 0.7)
    touch("touchMove", 0.2, 0.8)
    touch("touchEnd")

    third = (last - first) / 3
    until_shown(page, first + third, last - third)
    devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    devtools.detach()


def test_forecasts_of_other_sources_are_joined_to_those_of_the_model(page):
    made = [(None, None), ("model", 1), ("model", 2), ("seasonal", 3), ("model", 4), ("model", 5)]
    rows = [{"at": i, "source": each, "forecast": value} for i, (each, value) in enumerate(made)]

    columns = page.evaluate(
        "(rows) => import('/page/sensor-chart.js').then((m) => m.columnsOf(rows))", rows
    )

    _, _, _, _, model, other, _ = columns
    assert model == [None, 1, 2, None, 4, 5]
    assert other == [None, None, 2, 3, 4, None]


def test_a_short_past_is_shown_with_a_shortest_time(page):
    found = page.evaluate(
        """async () => {
          const { TimeWindow } = await import("/page/time-window.js");
          const shown = new TimeWindow();
          shown.cover(100, 100, 4);
          return [shown.min, shown.max];
        }"""
    )

    assert found == [96, 100]


@pytest.mark.parametrize(
    ("zoom", "moved"),
    [
        pytest.param((20, 40), (20, 40), id="stays"),
        pytest.param((80, 100), (90, 110), id="follows the newest time"),
        pytest.param((0, 20), (10, 30), id="stays inside"),
        pytest.param((38, 40), (37, 41), id="has a shortest time"),
        pytest.param((-50, 150), (10, 110), id="is not wider than the range"),
    ],
)
def test_a_zoom_outlives_new_data(page, zoom, moved):
    found = page.evaluate(
        """async ([min, max]) => {
          const { TimeWindow } = await import("/page/time-window.js");
          const shown = new TimeWindow();
          shown.cover(0, 100, 4);
          shown.zoom(min, max);
          shown.cover(10, 110, 4);
          return [shown.min, shown.max];
        }""",
        zoom,
    )

    assert tuple(found) == moved


def test_new_readings_keep_the_zoom(page, service):
    until_streams(service)
    last = shown(page)[1]
    drag(page, 0.25, 0.5)
    page.wait_for_selector("#chart-whole:visible")
    zoomed = shown(page)

    service.move_on()

    until_page(
        page, f"document.querySelector('#chart').plot.data[0].at(-1) === {1000 * (last + STEP)}"
    )
    assert shown(page) == zoomed

    # Everything is loaded again, for the same sensor.
    service.asked.clear()
    service.push("resync", {})

    wait_until(lambda: any("/history" in path for path in list(service.asked)), "a new request")
    until_loaded(page)
    assert shown(page) == zoomed


def test_another_sensor_and_another_range_are_shown_as_a_whole(page):
    drag(page, 0.25, 0.5)
    page.wait_for_selector("#chart-whole:visible")

    page.click("#row-body .row >> nth=6")

    page.wait_for_selector("#chart-whole", state="hidden")
    until_loaded(page)
    drag(page, 0.25, 0.5)
    page.wait_for_selector("#chart-whole:visible")

    page.select_option("#time-range", "72")

    page.wait_for_selector("#chart-whole", state="hidden")
    until_page(page, f"(([a, b]) => b - a === {3 * DAY + REACH})(({SHOWN})('#chart'))")


def test_the_library_is_the_published_one():
    rows = re.findall(r"\| `(.+)` \| `(\w{64})` \|", (VENDOR / "README.md").read_text())
    version = re.search(r"uPlot ([\d.]+)", (VENDOR / "README.md").read_text())[1]

    found = {file.name for file in VENDOR.iterdir()}

    assert found == {"README.md", *(name for name, _ in rows)}
    for name, digest in rows:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    assert f"(v{version})" in (VENDOR / "uPlot.iife.min.js").read_text()[:100]
