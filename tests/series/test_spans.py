"""Spans of time as people name them."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.series.lengths import DAY
from streamridge.series.spans import Span, parse_range, parse_spans, spans_of_sensor, within
from streamridge.series.time_format import NAIVE, TimeFormat

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("given", "zone", "text"),
    [
        ("2021-06-13T08:00/2021-06-14", None, "2021-06-13T08:00:00/2021-06-14T23:59:59.999999"),
        ("2021-06-13/2021-06-13", None, "2021-06-13T00:00:00/2021-06-13T23:59:59.999999"),
        ("10/25", None, "10/25"),
        ((-3, np.int64(4)), None, "-3/4"),
        ("2021-06-13T08:00/2021-06-14", BERLIN, "2021-06-13T06:00:00/2021-06-14T21:59:59.999999"),
        ("2021-06-13T08:00Z/2021-06-14T00:00Z", BERLIN, "2021-06-13T08:00:00/2021-06-14T00:00:00"),
        (
            (date(2021, 6, 13), datetime(2021, 6, 14, 5, tzinfo=UTC)),
            BERLIN,
            "2021-06-12T22:00:00/2021-06-14T05:00:00",
        ),
        (
            (np.datetime64("2021-06-13"), "2021-06-14"),
            None,
            "2021-06-13T00:00:00/2021-06-14T23:59:59.999999",
        ),
    ],
)
def test_the_ends_of_a_span_are_in_utc(given, zone, text):
    assert str(Span.of(given, zone)) == text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("2021-06-13", "exclude must be START/END, such as .*, got '2021-06-13'"),
        ("a/b/c", "exclude must be START/END, such as .*, got 'a/b/c'"),
        (("2021-06-13",), "exclude must be START/END, such as .*, got "),
        (7, "exclude must be START/END, such as .*, got 7"),
        ("2021-06-14/2021-06-13", "exclude must not end before it starts, got '2021-06-14/2021"),
        ((True, False), "exclude must be START/END, such as .*, got 'True/False'"),
        ("10/2021-06-13", "exclude must be START/END, such as .*, got '10/2021-06-13'"),
        ("2021-06-14/", "exclude must be START/END, such as .*, got '2021-06-14/'"),
        ("noon/2021-06-13", "exclude must be START/END, such as .*, got 'noon/2021-06-13'"),
    ],
)
def test_a_bad_span_is_an_error(given, message):
    with pytest.raises(InvalidInputError, match=message):
        Span.of(given)


def test_one_text_is_one_span():
    assert parse_spans("2021-06-13/2021-06-14", None) == (Span.of("2021-06-13/2021-06-14"),)


def test_both_ends_lie_within():
    times = np.arange("2021-06-13T00", "2021-06-13T08", dtype="M8[h]").astype("M8[us]")
    spans = parse_spans(["2021-06-13T01:00/2021-06-13T02:00", "2021-06-13T06:30/2021-06-14"], None)

    inside = within(spans, times)

    assert np.flatnonzero(inside).tolist() == [1, 2, 7]


def test_a_span_without_an_offset_is_in_the_local_time_of_the_readings():
    spans = parse_spans(["2021-06-13T08:00/2021-06-13T09:00"], None)

    [in_berlin] = spans_of_sensor("a", DAY, TimeFormat(zoned=True, zone=BERLIN.key), spans)
    [as_written] = spans_of_sensor("a", DAY, NAIVE, spans)

    assert str(in_berlin) == "2021-06-13T06:00:00/2021-06-13T07:00:00"
    assert as_written == spans[0]


def test_a_span_with_an_offset_needs_times_with_one():
    spans = parse_spans(["2021-06-13T08:00Z/2021-06-13T09:00Z"], None)

    assert spans_of_sensor("a", DAY, TimeFormat(zone=BERLIN.key), spans) == spans
    with pytest.raises(InvalidInputError, match="a: exclude must have no offset, as the times of"):
        spans_of_sensor("a", DAY, NAIVE, spans)
    with pytest.raises(InvalidInputError, match="exclude must be START/END"):
        parse_spans(["2021-06-13T08:00Z/2021-06-13T09:00"], None)


@pytest.mark.parametrize(
    ("to", "last"),
    [
        ("2021-06-13", "2021-06-13T23:59:59.999999"),
        ("20210613", "2021-06-13T23:59:59.999999"),
        (date(2021, 6, 13), "2021-06-13T23:59:59.999999"),
        (np.datetime64("2021-06-13"), "2021-06-13T23:59:59.999999"),
        ("2021-06-13T00:00", "2021-06-13T00:00"),
        (datetime(2021, 6, 13), "2021-06-13T00:00"),
        (np.datetime64("2021-06-13T00:00"), "2021-06-13T00:00"),
    ],
)
def test_a_last_date_means_its_whole_day(to, last):
    assert parse_range(None, to, None) == (None, np.datetime64(last))
    by_zone = parse_range(None, to, BERLIN)[1]
    assert by_zone == np.datetime64(last) - np.timedelta64(2, "h")
