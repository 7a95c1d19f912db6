"""Waits for the content of a page; its security policy forbids Playwright's own waiting."""

from __future__ import annotations

from typing import Any

from tests.support.waiting import wait_until


def until_page(page: Any, claim: str) -> None:
    """Wait until an expression of the page is true."""
    # Each question keeps three processes busy.
    wait_until(lambda: page.evaluate(claim), f"in the page, {claim}", pause=0.05)


def until_rows(page: Any, count: int) -> None:
    """Wait until the list has `count` rows."""
    until_page(page, f"document.querySelectorAll('#row-body .row').length === {count}")


def until_streams(service: Any) -> None:
    """Wait until a page is subscribed to the events of a service."""
    wait_until(lambda: service.streams, "a page that listens to the events")


def until_loaded(page: Any) -> None:
    """Wait until every part of the page has loaded its data."""
    until_page(page, "document.querySelectorAll('#panels .panel').length > 0")
    until_page(page, "document.querySelector('.strip') !== null")
    until_page(page, "document.querySelector('#sensor').ariaBusy !== 'true'")
    until_page(page, "[...document.querySelectorAll('#upcoming b')].every((b) => +b.innerText)")


def let_timers_run(page: Any, milliseconds: int) -> None:
    """Wait until the page's own timers of up to `milliseconds` have run."""
    page.evaluate(f"new Promise((done) => setTimeout(done, {milliseconds}))")
