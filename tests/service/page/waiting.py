"""Waiting for what a page shows; a page's own policy keeps Playwright from doing it inside."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 20.0


def until(claim: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "It did not come about in time."
        time.sleep(0.03)


def until_page(page: Any, claim: str) -> None:
    """Wait until an expression is true in the page."""
    until(lambda: page.evaluate(claim))


def until_rows(page: Any, count: int) -> None:
    """Wait until the list has as many rows."""
    until_page(page, f"document.querySelectorAll('#row-body .row').length === {count}")
