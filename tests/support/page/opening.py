"""Opens the page of a service in a browser, and records forbidden actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.page.fake_service import FakeService
from tests.support.waiting import LIMIT

VIEWPORT = {"width": 1280, "height": 900}

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


@dataclass
class Browser:
    """A running browser with the tabs that tests have left.

    To open the page takes 1.5 s of processor time in a new tab, and 0.6 s in a used one.
    """

    started: Any
    idle: list[Any] = field(default_factory=list)

    def tab(self, options: dict[str, Any]) -> Any:
        """Return an empty tab; one with options is new."""
        if self.idle and not options:
            return self.idle.pop()
        context = self.started.new_context(
            reduced_motion="reduce", **{"viewport": VIEWPORT, **options}
        )
        context.set_default_timeout(1000 * LIMIT)
        context.add_init_script(WATCH)
        return context.new_page()

    def leave(self, tab: Any, options: dict[str, Any]) -> None:
        """Close a tab with options; empty another one for the next test."""
        if options:
            tab.context.close()
            return
        tab.evaluate("localStorage.clear(); sessionStorage.clear()")
        tab.goto("about:blank")
        tab.mouse.move(0, 0)
        tab.set_viewport_size(VIEWPORT)
        tab.emulate_media(color_scheme="light")
        self.idle.append(tab)


@contextmanager
def pages(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Return a function that opens a page; at the end, require that no script failed."""
    opened: list[Opened] = []
    with ExitStack() as tabs:

        def open_(service: FakeService, *, ready: bool = True, **options: Any) -> Opened:
            tab = browser.tab(options)
            tabs.callback(browser.leave, tab, options)
            found = Opened(tab)
            opened.append(found)
            watched = {
                "dialog": lambda dialog: _note(found, dialog),
                "pageerror": lambda error: found.errors.append(str(error)),
                "console": lambda message: found.said.append(message.text),
                "request": lambda request: found.asked.append(request.url),
            }
            for event, note in watched.items():
                tab.on(event, note)
                tabs.callback(tab.remove_listener, event, note)
            tab.goto(service.url)
            if ready:
                tab.wait_for_selector("#row-body .row")
                tab.wait_for_selector("#headline:not(:empty)")
            return found

        yield open_
    assert [error for each in opened for error in each.errors] == []


def _note(opened: Opened, dialog: Any) -> None:
    opened.dialogs.append(dialog.message)
    dialog.dismiss()
