"""Pages of sensors in any order."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from streamridge_service.http.pagination import SensorPages, ordinal
from streamridge_service.ledger.records import SensorRow
from streamridge_service.plan import Plan
from streamridge_service.service.sensor_status import SensorStatuses

numbers = st.floats(allow_nan=False)


@given(numbers, numbers)
def test_ordinals_have_the_order_of_their_numbers(a, b):
    if a < b:
        assert ordinal(a) < ordinal(b)
        assert ordinal(a, descending=True) > ordinal(b, descending=True)
    assert max(ordinal(a), ordinal(a, descending=True)) <= ordinal(None)


@given(st.lists(st.integers(0, 50), unique=True), st.integers(1, 20), st.integers(2, 5))
def test_pages_contain_each_wanted_sensor_once(ids, limit, part):
    statuses = SensorStatuses(Plan(900_000_000))
    for each in ids:
        statuses.put(SensorRow(each, f"s{each:02}", 0))
    pages, found, cursor = SensorPages(statuses, lambda: 0, asyncio.to_thread), [], None

    while True:
        wanted = pages.page("id", lambda status: status.sensor.id % part == 0, cursor, limit)
        page = asyncio.run(wanted)
        assert len(page.statuses) <= limit
        found += [status.sensor.id for status in page.statuses]
        cursor = page.cursor
        if cursor is None:
            break

    assert found == sorted(each for each in ids if each % part == 0)
    assert page.total == len(found)
