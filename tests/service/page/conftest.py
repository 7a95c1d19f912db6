"""A real browser for the page."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.support.page.fake_service import FakeService
from tests.support.page.opening import Browser, Opened, pages

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "The tests of the page need a browser. Install Chromium (apt-get install "
    "--no-install-recommends chromium) or name one in CHROMIUM, and pip install playwright."
)


def find_browser() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


# Playwright occupies the event loop of this thread: it must end before other tests run one.
@pytest.fixture(scope="package")
def browser(pytestconfig: pytest.Config) -> Iterator[Browser]:
    """Start a browser once; without one, skip the tests, or fail where one is promised."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError:
        sync_playwright = None
    path = find_browser()
    if sync_playwright is None or path is None:
        _do_without(pytestconfig)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield Browser(started)
        started.close()


def _do_without(config: pytest.Config) -> None:
    if os.environ.get("STREAMRIDGE_NEEDS_BROWSER") == "1":
        pytest.fail(MISSING)
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stderr.write(f"\nSKIPPED: {MISSING}\n")
    pytest.skip(MISSING)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Opened]]:
    with pages(browser) as open_:
        yield open_


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService(beat=1.0) as started:
        yield started
