"""Pages of a list whose order is any."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from streamridge.service.board import Board
from streamridge.service.ledger.records import SensorRow
from streamridge.service.plan import Plan
from streamridge.service.web.listing import Listing, ordinal

numbers = st.floats(allow_nan=False)


@given(numbers, numbers)
def test_ordinals_sort_as_numbers_do(a, b):
    if a < b:
        assert ordinal(a) < ordinal(b)
        assert ordinal(a, descending=True) > ordinal(b, descending=True)
    assert max(ordinal(a), ordinal(a, descending=True)) <= ordinal(None)


@given(st.lists(st.integers(0, 50), unique=True), st.integers(1, 20), st.integers(2, 5))
def test_pages_hold_what_is_wanted_once_each(ids, limit, part):
    board = Board(Plan(900_000_000))
    for each in ids:
        board.put(SensorRow(each, f"s{each:02}", 0))
    listing, found, cursor = Listing(board), [], None

    while True:
        wanted = listing.page("id", lambda place: place.sensor.id % part == 0, cursor, limit)
        page = asyncio.run(wanted)
        assert len(page.places) <= limit
        found += [place.sensor.id for place in page.places]
        cursor = page.cursor
        if cursor is None:
            break

    assert found == sorted(each for each in ids if each % part == 0)
    assert page.total == len(found)
