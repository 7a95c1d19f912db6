"""Accepted and refused JSON rows, with the exact codes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge_service.bodies.decoding import decode
from streamridge_service.bodies.fields import parse_iso_time
from streamridge_service.bodies.json_rows import decode_json_lines
from streamridge_service.limits import MOST_REFUSALS, MOST_ROWS
from streamridge_service.problems import Problem
from streamridge_service.rows import Batch, Row
from tests.support.service.request_bodies import (
    CSV,
    JSON,
    MOMENT,
    NDJSON,
    PARQUET,
    PARQUET_FILE,
    TIME,
    outcome,
    reading,
    result_code,
)
from tests.support.service.request_list import REQUESTS
from tests.support.tiers import tiered


def wrong(decoder):
    """Return the names of the requests of the list that a decoder answers wrongly."""
    found = []
    for name, content_type, body, right in REQUESTS:
        try:
            given = result_code(decoder, body, content_type)
        except Exception as error:
            given = f"500: {error}"
        if given != right:
            found.append(name)
    return found


def decode_by_json_loads(body, content_type):
    """Decode as services do that trust the standard library: the check must notice."""
    texts = body.splitlines() if content_type == NDJSON else [body]
    try:
        values = [value for text in texts for value in _listed(json.loads(text))]
    except json.JSONDecodeError:
        raise Problem("sr-unreadable", "not JSON.") from None
    rows = [
        Row(line, each["sensor"], parse_iso_time(each["time"]), float(each["value"]))
        for line, each in enumerate(values, 1)
    ]
    return Batch(rows, [])


def _listed(value):
    return value if isinstance(value, list) else [value]


def test_the_list_of_requests_gets_the_exact_codes(record_property):
    record_property("row", "B8")
    record_property("cases", len(REQUESTS))

    assert len(REQUESTS) == 24
    assert wrong(decode) == []


def test_the_list_notices_a_lenient_decoder(record_property):
    record_property("row", "B8")
    record_property("cases", 1)

    missed = set(wrong(decode_by_json_loads))

    assert {"NaN", "1e400", "number in quotes", "true", "field twice", "NUL in a name"} <= missed
    assert {"broken UTF-8", "100,000 brackets", "time without offset", "null"} <= missed


@pytest.mark.parametrize("written", ["-0", "-0.0", "0", "0e5"])
@pytest.mark.parametrize("content_type", [JSON, NDJSON])
def test_minus_zero_is_zero(written, content_type):
    [row] = decode(reading(value=written), content_type).rows

    assert str(row.value) == "0.0"


ROW_REFUSALS = [
    (b"5", "sr-bad-row"),
    (b"null", "sr-bad-row"),
    (b'"a"', "sr-bad-row"),
    (b"[]", "sr-bad-row"),
    (b"{}", "sr-bad-row"),
    (b'{"sensor": "a", "time": "2026-06-13T08:15:00Z"}', "sr-bad-row"),
    (b'{"Sensor": "a", "time": "2026-06-13T08:15:00Z", "value": 1}', "sr-bad-row"),
    (reading(value='1, "value": 1'), "sr-bad-row"),
    (reading(sensor='"a", "sensor": "a"'), "sr-bad-row"),
    (reading(sensor="5"), "sr-bad-name"),
    (reading(sensor="null"), "sr-bad-name"),
    (reading(sensor='""'), "sr-bad-name"),
    (reading(sensor='"-a"'), "sr-bad-name"),
    (reading(sensor='"a/../b"'), "sr-bad-name"),
    (reading(sensor=r'"a\"b"'), "sr-bad-name"),
    (reading(sensor='"\u0664"'), "sr-bad-name"),
    (reading(time="null"), "sr-bad-time"),
    (reading(time="[[1]]"), "sr-bad-time"),
    (reading(value="false"), "sr-not-a-number"),
    (reading(value='""'), "sr-not-a-number"),
    (reading(value="{}"), "sr-not-a-number"),
    (reading(value="1000000000000.1"), "sr-out-of-range"),
    (reading(value="-1e13"), "sr-out-of-range"),
    (reading(value="1000000000000"), "taken"),
    (reading(value="-1e12"), "taken"),
    (reading(sensor=r'"\u0061"'), "taken"),
]


@pytest.mark.parametrize(("body", "right"), ROW_REFUSALS)
def test_a_row_has_the_same_result_in_every_form_of_json(body, right):
    # A body that is an array holds rows.
    assert body == b"[]" or result_code(decode, body, JSON) == right
    assert result_code(decode, b"[" + body + b"]", JSON) == right
    assert result_code(decode, b' {"readings" : [' + body + b"] }\n", JSON) == right
    assert result_code(decode, body, NDJSON) == right
    assert result_code(decode, body + b"\r\n", "application/jsonl") == right


UNREADABLE = [
    b"",
    b" ",
    b"[",
    b"[1",
    b"[1,]",
    b"[1 2]",
    b"[]]",
    b"[] x",
    b'{"readings": []',
    b'{"readings": []]',
    b'{"readings": [], "more": 1}',
    b'{"readings": [],}',
    b"[,]",
    b'["\xff"]',
    b'[1, "\xed\xa0\x80"]',
    b'["a\nb"]',
    b"\xff\xfe[\x00]\x00",
    b'[{"a": ' * 50_000,
    b"[" + b" " * 10_000,
    b'["' + b"x" * 10_000 + b'"]',
    b"nan",
    b"[01]",
]


@pytest.mark.parametrize("body", UNREADABLE)
def test_a_document_that_cannot_be_read_is_refused_with_its_place(body):
    with pytest.raises(Problem, match=r"byte \d+ \(line \d+\)") as caught:
        decode(body, JSON)

    assert (caught.value.code, caught.value.status) == ("sr-unreadable", 400)


def test_a_broken_line_is_refused_by_itself(record_property):
    broken = [b"{", b"[" * 100_000, b'{"sensor": "\xff"}', b"x" * 70_000, reading() + reading()]
    body = b"\xef\xbb\xbf" + b"\n\n".join([reading(), *broken, b" \t", reading()])
    record_property("row", "B12")
    record_property("cases", len(broken))

    batch = decode(body, NDJSON)

    assert [row.line for row in batch.rows] == [1, 15]
    assert [(each.line, each.code) for each in batch.refused] == [
        (line, "sr-bad-row") for line in (3, 5, 7, 9, 11)
    ]


@pytest.mark.parametrize(
    "body",
    [
        reading().replace(b", ", b",\n"),
        reading() + reading(),
        # As many lines as readings.
        reading().replace(b", ", b",\n", 1) + reading(),
        reading().replace(b'"a", ', b'"a",\n') + b"\r" + reading(),
    ],
)
def test_a_line_is_one_reading(body):
    batch = decode(body, NDJSON)

    assert batch.rows == []
    assert {each.code for each in batch.refused} == {"sr-bad-row"}


NAMES = st.sampled_from(['"a"', '"b:1"', '"\u00e9"', r'"\u0061"'])
TIMES = st.sampled_from([f'"{TIME}"', '"2026-06-13 10:15:00.5+0200"', '"2026-06-13"'])
VALUES = st.sampled_from(["1", "-0.0", "null", "1e13", "-2e12"])
# Fields of the right types, which are decoded in one call; and fields of any type.
TYPED = st.tuples(NAMES, TIMES, VALUES)
ANY = st.tuples(
    NAMES | st.sampled_from(["1", r'"a\"b"', '"a", "sensor": "b"']),
    TIMES | st.just("0"),
    VALUES | st.sampled_from(['"5"', "NaN", "1e999", "true"]),
)


@given(st.lists(TYPED) | st.lists(ANY), st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
def test_lines_decoded_together_equal_single_lines(fields, end):
    lines = [reading(*each) for each in fields]
    step = 2 if end == b"\n\n" else 1

    whole = decode_json_lines(end.join(lines))
    document = decode(b"[" + b",".join(lines) + b"]", JSON)
    single = [decode_json_lines(line) for line in lines]

    rows = {i: batch.rows[0] for i, batch in enumerate(single) if batch.rows}
    refused = {i: batch.refused[0] for i, batch in enumerate(single) if batch.refused}
    for batch, spread in (whole, step), (document, 1):
        assert [(r.line, r.sensor, r.time, repr(r.value)) for r in batch.rows] == [
            (spread * i + 1, row.sensor, row.time, repr(row.value)) for i, row in rows.items()
        ]
        assert [(r.line, r.code, r.column) for r in batch.refused] == [
            (spread * i + 1, each.code, each.column) for i, each in refused.items()
        ]


@pytest.mark.parametrize(
    ("content_type", "right"),
    [
        (None, "all: sr-unsupported-type"),
        ("", "all: sr-unsupported-type"),
        ("text/plain", "all: sr-unsupported-type"),
        ("application/xml", "all: sr-unsupported-type"),
        ("application/json; charset=latin-1", "all: sr-unsupported-type"),
        ('application/json; charset="utf-16"', "all: sr-unsupported-type"),
        ("application/json; charset=UTF-8", "taken"),
        ('Application/JSON;charset="utf-8"', "taken"),
        ("application/json; boundary=x", "taken"),
        ("application/json;", "taken"),
        ("application/ndjson", "taken"),
        ("application/jsonl", "taken"),
    ],
)
def test_the_content_type_decides(content_type, right):
    assert result_code(decode, reading(), content_type) == right


def test_parquet_is_refused_with_the_command_that_sends_it():
    with pytest.raises(Problem, match="streamridge feed") as caught:
        decode(PARQUET_FILE, PARQUET)

    assert (caught.value.code, caught.value.status) == ("sr-unsupported-type", 415)


@pytest.mark.parametrize(
    ("content_type", "row"),
    tiered([JSON, NDJSON, CSV], [b"1", reading()], quick=lambda _, row: row == b"1"),
)
def test_too_many_rows_are_refused(content_type, row):
    rows = [row] * (MOST_ROWS + 1)
    bodies = {
        JSON: b"[" + b",".join(rows) + b"]",
        NDJSON: b"\n".join(rows),
        CSV: b"\n".join([b"sensor,time,value", *rows]),
    }

    with pytest.raises(Problem, match="200,000 rows") as caught:
        decode(bodies[content_type], content_type)

    assert caught.value.code == "sr-too-large"


@pytest.mark.parametrize(
    ("content_type", "before", "between", "after"),
    [(NDJSON, b"", b"\n", b"\n"), (JSON, b"[", b",", b"]"), (JSON, b'{"readings":[', b",", b"]}")],
)
def test_the_largest_number_of_rows_is_accepted(content_type, before, between, after):
    body = before + between.join([reading()] * MOST_ROWS) + after

    assert len(decode(body, content_type).rows) == MOST_ROWS


def test_every_refusal_is_counted_and_the_first_are_described():
    batch = decode(b"1\n" * 1000, NDJSON)

    assert len(batch.refused) == 1000
    assert all("got 1.0" in each.detail for each in batch.refused[:MOST_REFUSALS])
    assert len({each.detail for each in batch.refused[MOST_REFUSALS:]}) == 1


@given(st.sampled_from([JSON, NDJSON, CSV]), st.binary() | st.text().map(str.encode))
def test_any_bytes_give_a_batch_or_a_problem(content_type, body):
    outcome(lambda: decode(body, content_type))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["sensor", "time", "value", "readings", "x"]), inner)
        ),
        max_leaves=8,
    )
)
def test_any_json_gives_a_batch_or_a_problem(value):
    body = json.dumps(value).encode()

    for content_type in (JSON, NDJSON):
        outcome(lambda kind=content_type: decode(body, kind))


def test_times_are_moments_in_utc():
    [row] = decode(reading(), JSON).rows

    assert row == Row(1, "a", MOMENT, 1.0)
