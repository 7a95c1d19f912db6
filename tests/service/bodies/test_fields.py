"""Times: exact to the microsecond, or refused with the code that says why."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge_service.bodies.decoding import decode
from streamridge_service.bodies.fields import FieldError, parse_iso_time, parse_ticks
from tests.support.service.request_bodies import CSV, JSON, NDJSON, reading, result_code

EXTREME = [
    '"9999-12-31T23:59:59-01:00"',
    '"0001-01-01T00:00:00+01:00"',
    '"2016-12-31T23:59:60Z"',
    '"0000-01-01T00:00:00Z"',
    "1e300",
    "253402300800",
    '"+12026-06-13T08:15:00Z"',
    '"0999-12-31T23:59:59Z"',
    '"2501-01-01T00:00:00Z"',
    '"2026-02-30T00:00:00Z"',
    '"2026-06-13T24:00:00Z"',
    '"2026-06-13T08:15:00+24:00"',
]
JUNK = [
    "",
    "now",
    "2026-06-13",
    "2026-06-13T08Z",
    "20260613T081500Z",
    "2026-W24-6T08:15Z",
    "2026-06-13T08:15:00 Z",
    " 2026-06-13T08:15:00Z",
    "2026-06-13T08:15:00Z\n",
    "2026-06-13T08:15:00z",
    "2026-06-13T08:15:00.Z",
    "2026-06-13T08:15:00.1234567890Z",
    "2026-06-13T08:15:00+02:0",
    "2026-06-13T08:15:00[Europe/Berlin]",
    "2026-06-13T08:15:00+02:60",
    "\u0662026-06-13T08:15:00Z",
    "2026-06-13T08:15:00Z\0",
    "13.06.2026 08:15",
    "1781338500",
]


@pytest.mark.parametrize("time", EXTREME)
def test_an_extreme_time_is_refused(time, record_property):
    record_property("row", "B15")
    record_property("cases", 1)

    assert result_code(decode, reading(time=time), JSON) == "sr-bad-time"
    assert result_code(decode, reading(time=time), NDJSON) == "sr-bad-time"
    line = f"a,{time},1".encode()
    assert result_code(decode, b"sensor,time,value\n" + line, CSV) == "sr-bad-time"


@pytest.mark.parametrize("time", JUNK)
def test_other_texts_are_not_times(time):
    with pytest.raises(FieldError, match="ISO 8601") as caught:
        parse_iso_time(time)

    assert (caught.value.code, caught.value.column) == ("sr-bad-time", "time")


@pytest.mark.parametrize(
    "time", ["2026-06-13T08:15:00", "2026-06-13 08:15", "1000-01-01T00:00:00.5"]
)
def test_a_time_without_offset_is_refused_as_such(time):
    with pytest.raises(FieldError, match="Z or an offset") as caught:
        parse_iso_time(time)

    assert caught.value.code == "sr-no-offset"


@given(
    st.datetimes(datetime(1000, 1, 2), datetime(2500, 12, 30)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59),
    st.sampled_from("T "),
)
def test_a_time_in_iso_8601_keeps_its_moment(time, offset, between):
    aware = time.replace(tzinfo=timezone(timedelta(minutes=offset)))

    moment = parse_iso_time(aware.isoformat(between))

    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment) == aware


@given(st.text() | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([+-]\d\d:\d\d|Z)?"))
def test_any_text_is_a_moment_or_refused(time):
    code = moment = None
    try:
        moment = parse_iso_time(time)
    except FieldError as error:
        code = error.code

    if moment is None:
        assert code in ("sr-bad-time", "sr-no-offset")
    else:
        assert moment == datetime.fromisoformat(time).timestamp() * 10**6


@pytest.mark.parametrize(
    ("ticks", "unit", "moment"),
    [(1, "s", 10**6), (1, "ms", 1000), (-1, "us", -1), (1999, "ns", 1), (-1, "ns", -1)],
)
def test_ticks_are_moments_rounded_down(ticks, unit, moment):
    assert parse_ticks(ticks, unit) == moment


@pytest.mark.parametrize("ticks", [2**63 - 1, -(2**63), None, "1"])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_ticks_far_away_are_refused(ticks, unit):
    with pytest.raises(FieldError, match=f"whole number of {unit}") as caught:
        parse_ticks(ticks, unit)

    assert caught.value.code == "sr-bad-time"
