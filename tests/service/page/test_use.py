"""Using the page: filters, search, keyboard, themes, screen sizes and text sizes."""

from __future__ import annotations

import pytest

from tests.support.page.fake_service import FakeService
from tests.support.page.opening import pages
from tests.support.page.simulated import Roads
from tests.support.page.waiting import until_loaded, until_page, until_rows
from tests.support.waiting import wait_until

# The contrast of each text colour with its background, as WCAG defines it.
CONTRASTS = """() => {
  const linear = (part) => (part <= 10 ? part / 3294 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const probe = document.getElementById("probe");
  const lightness = (tone) => {
    probe.style.color = `var(--${tone})`;
    const [red, green, blue] = getComputedStyle(probe).color.match(/\\d+/g).map(Number).map(linear);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const card = lightness("card");
  const tones = ["ink", "soft", "accent", "good", "warn", "bad", "info"];
  return Object.fromEntries(tones.map((tone) => {
    const text = lightness(tone);
    return [tone, Math.max(text, card) / Math.min(text, card)];
  }));
}"""


@pytest.fixture(scope="module")
def shared(browser):
    """Open a page of which tests change only the theme."""
    with FakeService(beat=1.0) as service, pages(browser) as open_:
        yield open_(service).page


def overflow(page):
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def test_a_click_on_a_state_filters_the_list_and_the_gaps(service, open_page):
    page = open_page(service).page

    page.get_by_role("button", name="6 stale").click()

    until_rows(page, 6)
    until_page(page, "document.querySelectorAll('.strip').length === 6")
    assert page.get_by_role("button", name="6 stale").get_attribute("aria-pressed") == "true"
    # The selected sensor stays.
    assert page.inner_text("#sensor-name") == "A2 km 35.1"

    page.get_by_role("button", name="6 stale").click()

    until_page(page, "document.querySelectorAll('#row-body .row').length > 6")


def test_search_finds_names_and_reports_no_match(service, open_page):
    page = open_page(service).page

    page.keyboard.press("/")
    page.keyboard.type("s100 km 2")
    until_rows(page, 2)
    page.keyboard.type("xyz")
    page.get_by_text("No sensor is called “s100 km 2xyz”.", exact=True).wait_for()

    page.keyboard.press("Escape")

    until_page(page, "document.querySelectorAll('#row-body .row').length > 2")


def test_arrow_keys_select_sensors_and_page_keys_change_the_page(service, open_page):
    page = open_page(service).page
    names = page.locator("#row-body bdi").all_inner_texts()
    second = page.get_attribute("#row-body .row >> nth=1", "data-id")

    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    until_page(page, f"document.querySelector('#sensor-name').textContent === '{names[1]}'")

    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert page.url.endswith(f"#{second}")

    page.keyboard.press("PageDown")
    until_page(page, f"document.querySelector('#row-body bdi').textContent !== '{names[0]}'")

    assert page.inner_text("#range").startswith(f"{len(names) + 1}\N{EN DASH}")

    page.get_by_role("button", name="Show the worst again").click()

    until_page(page, "document.querySelector('#sensor-name').textContent === 'A2 km 35.1'")


def test_tab_visits_the_parts_in_order_with_a_visible_focus(service, open_page):
    page = open_page(service).page
    until_loaded(page)
    visited = []
    for _ in range(32):
        page.keyboard.press("Tab")
        visited.append(
            page.evaluate(
                """() => { const node = document.activeElement;
                   const part = node.closest('section')?.id ?? node.id ?? '';
                   return [part, getComputedStyle(node).outlineStyle]; }"""
            )
        )

    parts = [part for part, _ in visited]
    order = [
        part for part in dict.fromkeys(parts) if part in ("states", "sensors", "sensor", "changes")
    ]
    assert order == ["states", "sensors", "sensor", "changes"]
    assert all(outline != "none" for _, outline in visited)


def test_the_map_is_offered_if_positions_are_known(service, open_page):
    page = open_page(service).page

    page.get_by_role("button", name="Map").click()
    page.wait_for_selector("#map canvas[aria-label='Map of 40 sensors']")
    painted = page.evaluate(
        """() => { const canvas = document.querySelector('#map canvas');
           const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
           return data.filter((value, i) => i % 4 === 3 && value > 0).length; }"""
    )

    assert painted > 2000


def test_there_is_no_map_without_positions(open_page):
    roads = Roads()
    for sensor in roads.sensors:
        sensor.position = None
    with FakeService(roads) as service:
        page = open_page(service).page

        assert not page.is_visible("#as-map")


def test_the_theme_follows_the_system_and_the_button(service, open_page):
    page = open_page(service, color_scheme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"

    assert page.evaluate(background) == "rgb(15, 20, 26)"

    page.click("#look")

    assert page.inner_text("#look") == "Theme: light"
    assert page.evaluate(background) == "rgb(244, 246, 248)"

    page.reload()

    assert page.evaluate(background) == "rgb(244, 246, 248)"


@pytest.mark.parametrize("look", ["light", "dark"])
def test_text_has_enough_contrast(shared, look):
    shared.emulate_media(color_scheme=look)

    ratios = shared.evaluate(CONTRASTS)

    assert min(ratios.values()) >= 4.5, ratios


@pytest.mark.parametrize(
    ("width", "height", "text"),
    [(360, 740, 100), (768, 1024, 100), (2560, 1440, 100), (1280, 900, 200)],
)
def test_nothing_is_cut_off_on_small_and_large_screens_or_with_large_text(
    shared, width, height, text
):
    shared.set_viewport_size({"width": width, "height": height})
    shared.evaluate(f"document.documentElement.style.fontSize = '{text}%'")
    shared.wait_for_selector("#panels .panel")
    until_page(shared, f"innerWidth === {width}")

    wait_until(lambda: overflow(shared) == 0, "a layout in which nothing is cut off")
    assert shared.is_visible("#headline")


def test_a_link_selects_its_sensor_and_an_unknown_one_shows_the_worst(service, open_page):
    page = open_page(service).page

    page.goto(f"{service.url}#A9-17.2")
    until_page(page, "document.querySelector('#sensor-name').textContent === 'A9 km 17.2'")
    page.goto(f"{service.url}#nowhere")

    until_page(page, "document.querySelector('#sensor-name').textContent === 'A2 km 35.1'")
    assert page.url == service.url
