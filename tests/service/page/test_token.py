"""Where the service asks for a token, the page asks for it once, and keeps it for this tab."""

from __future__ import annotations

from tests.service.page.fake_service import FakeService
from tests.service.page.waiting import until, until_page, until_rows

TOKEN = "sr_4f1c9b"


def test_the_form_takes_a_token_and_the_page_opens(open_page):
    with FakeService(token=TOKEN) as service:
        page = open_page(service, ready=False).page
        page.get_by_role("dialog").wait_for()

        page.fill("#token-text", "wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#token-problem:not([hidden])")

        assert page.inner_text("#token-problem") == "The service did not take this token."

        page.fill("#token-text", TOKEN)
        page.get_by_role("button", name="Open the page").click()
        page.wait_for_selector("#headline:not(:empty)")

        assert not page.get_by_role("dialog").is_visible()
        until_page(page, "document.querySelector('#truth-word').textContent === 'Degraded'")
        assert page.evaluate("Object.values(sessionStorage)") == [TOKEN]
        assert TOKEN not in page.evaluate(
            "JSON.stringify(localStorage) + location.href + document.cookie"
        )
        assert not any(TOKEN in path for path in service.asked)

        page.reload()
        page.wait_for_selector("#headline:not(:empty)")

        assert not page.get_by_role("dialog").is_visible()


def test_a_token_that_was_revoked_is_asked_for_again(open_page):
    with FakeService(token=TOKEN) as service:
        page = open_page(service, ready=False).page
        page.fill("#token-text", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector("#headline:not(:empty)")

        until(lambda: service.streams)
        until_page(page, "document.querySelector('#panels .panel') !== null")
        service.token = "sr_other"
        page.get_by_role("button", name="6 stale").click()

        page.get_by_role("dialog").wait_for()
        page.fill("#token-text", "sr_other")
        page.keyboard.press("Enter")
        until_rows(page, 6)
