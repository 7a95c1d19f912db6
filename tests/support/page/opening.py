"""Opens the page of a service in a browser, and records forbidden actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.page.fake_service import FakeService
from tests.support.waiting import LIMIT

# Records violations of the content security policy.
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


@dataclass
class Opened:
    """An open page, and the errors in it.

    It also has the messages of the console, and the addresses of all requests.
    """

    page: Any
    dialogs: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def violations(self) -> list[str]:
        return self.page.evaluate("window.violations")


@contextmanager
def pages(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Return a function that opens a page; at the end, require that no script failed."""
    opened: list[Opened] = []

    def open_(service: FakeService, *, ready: bool = True, **options: Any) -> Opened:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(1000 * LIMIT)
        context.add_init_script(WATCH)
        found = Opened(context.new_page())
        opened.append(found)
        found.page.on("dialog", lambda dialog: _note(found, dialog))
        found.page.on("pageerror", lambda error: found.errors.append(str(error)))
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(service.url)
        if ready:
            found.page.wait_for_selector("#row-body .row")
            found.page.wait_for_selector("#headline:not(:empty)")
        return found

    yield open_
    for each in opened:
        each.page.context.close()
    assert [error for each in opened for error in each.errors] == []


def _note(opened: Opened, dialog: Any) -> None:
    opened.dialogs.append(dialog.message)
    dialog.dismiss()
