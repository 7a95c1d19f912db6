"""The page asks for a token if the service needs one, and keeps it for this tab."""

from __future__ import annotations

from tests.support.page.fake_service import FakeService
from tests.support.page.waiting import until_page, until_rows, until_streams

TOKEN = "sr_4f1c9b"


def test_a_token_in_the_form_opens_the_page(open_page):
    with FakeService(token=TOKEN) as service:
        page = open_page(service, ready=False).page
        page.get_by_role("dialog").wait_for()

        page.fill("#token-text", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#token-problem:not([hidden])")

        assert page.inner_text("#token-problem") == "The service refused this token."

        page.fill("#token-text", TOKEN)
        page.get_by_role("button", name="Open the page").click()
        page.wait_for_selector("#headline:not(:empty)")

        assert not page.get_by_role("dialog").is_visible()
        until_page(page, "document.querySelector('#status-word').textContent === 'Degraded'")
        assert page.evaluate("Object.values(sessionStorage)") == [TOKEN]
        assert TOKEN not in page.evaluate(
            "JSON.stringify(localStorage) + location.href + document.cookie"
        )
        assert not any(TOKEN in path for path in service.asked)

        page.reload()
        page.wait_for_selector("#headline:not(:empty)")

        assert not page.get_by_role("dialog").is_visible()


def test_the_page_asks_again_after_a_token_was_revoked(open_page):
    with FakeService(token=TOKEN) as service:
        page = open_page(service, ready=False).page
        page.fill("#token-text", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector("#headline:not(:empty)")

        until_streams(service)
        until_page(page, "document.querySelector('#panels .panel') !== null")
        service.token = "sr_other"
        page.get_by_role("button", name="6 stale").click()

        page.get_by_role("dialog").wait_for()
        page.fill("#token-text", "sr_other")
        page.keyboard.press("Enter")
        until_rows(page, 6)
