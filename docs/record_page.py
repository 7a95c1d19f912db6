"""Takes the pictures of the live page that the documents show.

It opens the page of a running service in Chromium and leaves docs/images/page-*.png. The pictures
are of the demo, a minute after `make serve-demo`:

    python docs/record_page.py http://127.0.0.1:8321/

Playwright drives the browser that CHROMIUM names, or `chromium` on the path.
"""

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).with_name("images")
# Charts are drawn when their answers have come; the page says nothing of that.
READY = (
    "#row-body .row",
    "#headline:not(:empty)",
    "#sensor:not([aria-busy])",
    "#tuning:not([aria-busy])",
    "#panels .panel",
    ".strip",
)
PATIENCE = 15_000
# Some figures come from the event stream, which needs a few steps.
SETTLING = 10_000


@dataclass(frozen=True)
class View:
    """A picture: its size, its look, and how much of the page is on it."""

    name: str
    width: int
    height: int
    look: str
    whole: bool = False
    scale: int = 1


VIEWS = (
    View("light", 1280, 900, "light", whole=True),
    View("dark", 1280, 900, "dark"),
    View("phone", 390, 844, "light", scale=2),
    View("wall", 2560, 1440, "dark"),
)


def main() -> None:
    """Take every picture of the service whose address is given."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="address of the page")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    parser.add_argument("--token", help="token, where the service asks for one")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for view in VIEWS:
            take(browser, view, options)
        browser.close()


def chromium() -> str:
    """Return where Chromium is."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if found is None:
        sys.exit("error: there is no Chromium. Install it, or name one in CHROMIUM.")
    return found


def take(browser: Any, view: View, options: argparse.Namespace) -> None:
    """Take one picture."""
    context = browser.new_context(
        viewport={"width": view.width, "height": view.height},
        color_scheme=view.look,
        device_scale_factor=view.scale,
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(options.url)
    if options.token:
        page.fill("#token-text", options.token)
        page.keyboard.press("Enter")
    for selector in READY:
        page.wait_for_selector(selector)
    page.wait_for_timeout(SETTLING)
    file = options.out / f"page-{view.name}.png"
    page.screenshot(path=file, full_page=view.whole)
    context.close()
    sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main()
