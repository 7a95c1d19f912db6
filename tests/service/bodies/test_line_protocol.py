"""InfluxDB's line protocol: what Telegraf and Home Assistant send."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge_service.bodies.fields import is_name
from streamridge_service.bodies.line_protocol import (
    LONGEST_LINE,
    MOST_JOINED,
    decode_lines,
    series_name,
)
from streamridge_service.limits import MOST_ROWS
from streamridge_service.problems import Problem
from tests.support.service.request_bodies import outcome

NOW = 1_781_338_500_000_000
SECONDS = NOW // 10**6
HOUR = 3600 * 10**6


def read(text):
    return decode_lines(text.encode(), "s", NOW)


def values(text):
    return {row.sensor: row.value for row in read(text).rows}


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("flow value=12", {"flow": 12.0}),
        ("flow cars=12i", {"flow:cars": 12.0}),
        (
            "flow,road=A2,lane=1 cars=12u,speed=98.5",
            {"flow:cars:lane:1:road:A2": 12.0, "flow:speed:lane:1:road:A2": 98.5},
        ),
        ("flow,lane=1,road=A2 value=-1e2", {"flow:lane:1:road:A2": -100.0}),
        ("flow value=-0", {"flow": 0.0}),
        ("flow value=+.5E-1", {"flow": 0.05}),
        (r"flow,road=A2,note\ 1=x value=1", {"flow:note_x20_1:x:road:A2": 1.0}),
        ('flow value=1,note="a, b=c d"', {"flow": 1.0}),
        (r'flow note="say \"x\", \\",value=1', {"flow": 1.0}),
        ("  flow   value=1   ", {"flow": 1.0}),
        ("# flow value=1", {}),
        ("flow value=1\r\n\r\nramp value=2\r\n", {"flow": 1.0, "ramp": 2.0}),
        ("\ufeffflow value=1", {"flow": 1.0}),
        ("", {}),
    ],
)
def test_numbers_are_readings_of_named_sensors(line, right):
    batch = read(line)

    assert batch.refused == []
    assert values(line) == right


@pytest.mark.parametrize(
    "value", ['"text"', '""', "t", "T", "true", "True", "TRUE", "f", "FALSE", '"a\nb"']
)
def test_texts_and_truth_values_are_counted_as_skipped(value):
    batch = read(f"flow note={value},value=1 {SECONDS}\nramp note={value}")

    assert [row.sensor for row in batch.rows] == ["flow"]
    assert (batch.skipped, batch.refused) == (2, [])


@pytest.mark.parametrize(
    ("precision", "ticks"),
    [
        ("h", SECONDS // 3600),
        ("m", SECONDS // 60),
        ("s", SECONDS),
        ("ms", NOW // 1000),
        ("us", NOW),
        ("ns", NOW * 1000 + 7),
    ],
)
def test_times_have_the_requested_precision(precision, ticks):
    [row] = decode_lines(f"flow value=1 {ticks}".encode(), precision, 0).rows

    assert row.time == (NOW if precision != "h" else NOW // HOUR * HOUR)


def test_a_line_without_a_time_gets_the_current_time():
    [row] = read("flow value=1").rows

    assert row.time == NOW


def test_an_unknown_precision_is_refused():
    with pytest.raises(Problem, match="precision must be one of h, m, s, ms, us, ns") as caught:
        decode_lines(b"", "minutes", NOW)

    assert caught.value.code == "sr-bad-parameter"


@pytest.mark.parametrize(
    ("line", "code", "column"),
    [
        ("flow", "sr-bad-row", None),
        ("flow ", "sr-bad-row", None),
        ("flow value", "sr-bad-row", None),
        ("flow value=", "sr-bad-row", None),
        ("flow =1", "sr-bad-row", None),
        ("flow,road value=1", "sr-bad-row", None),
        ("flow,road= value=1", "sr-bad-row", None),
        ("flow,=A2 value=1", "sr-bad-row", None),
        (",road=A2 value=1", "sr-bad-row", None),
        ("flow,road=A2,road=A4 value=1", "sr-bad-row", None),
        ("flow value=1,value=2", "sr-bad-row", None),
        ("flow value=1,", "sr-bad-row", None),
        ("flow value=1 2 3", "sr-bad-row", None),
        ('flow note="x"y', "sr-bad-row", None),
        ("flow\tvalue=1", "sr-bad-row", None),
        ("flow value=1 now", "sr-bad-time", "time"),
        ("flow value=1 1.5", "sr-bad-time", "time"),
        ("flow value=1 2026-06-13T08:15:00Z", "sr-bad-time", "time"),
        ("flow value=1 99999999999999999999", "sr-bad-time", "time"),
        ("flow value=1 -99999999999", "sr-bad-time", "time"),
        ("flow value=NaN", "sr-not-a-number", "value"),
        ("flow cars=inf", "sr-not-a-number", "cars"),
        ("flow cars=1e400", "sr-not-a-number", "cars"),
        ("flow cars=1.5i", "sr-not-a-number", "cars"),
        ("flow cars=-1u", "sr-not-a-number", "cars"),
        ("flow cars=1_0", "sr-not-a-number", "cars"),
        ("flow cars=0x10", "sr-not-a-number", "cars"),
        ("flow cars=12x", "sr-not-a-number", "cars"),
        ("flow cars=2000000000000i", "sr-out-of-range", "cars"),
    ],
)
def test_a_bad_line_is_refused_by_itself(line, code, column):
    batch = read(f"a value=1\n{line}\nb value=2")

    assert [row.sensor for row in batch.rows] == ["a", "b"]
    assert [(each.line, each.code, each.column) for each in batch.refused] == [(2, code, column)]


def test_one_bad_field_leaves_the_others():
    batch = read("flow cars=1,speed=x,share=3")

    assert [row.sensor for row in batch.rows] == ["flow:cars", "flow:share"]
    assert [each.column for each in batch.refused] == ["speed"]


def test_series_that_differ_in_a_key_alone_have_other_names():
    lines = ["flow,road=A2 value=1", "flow,ramp=A2 value=2", "flow A2=3", "flow,road=A2 road=4"]

    batch = read("\n".join([*lines, *lines]))

    assert len({row.sensor for row in batch.rows}) == len(lines)
    assert batch.refused == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("°C,entity=t value=1", "xB0_C:entity:t"),
        ("% value=1", "x25_"),
        (r"flow,road=A\ 2 value=1", "flow:road:A_x20_2"),
        (r"flow,road=A\,2 value=1", "flow:road:A_x2C_2"),
        (r"flow,road=A\2 value=1", "flow:road:A_x5C_2"),
        ('flow,road="A2" value=1', "flow:road:_x22_A2_x22_"),
        ("disk,path=/ used_percent=1", "disk:used_percent:path:_x2F_"),
        ("flow,mac=a:b value=1", "flow:mac:a_x3A_b"),
        ("温度 value=1", "x6E29__x5EA6_"),
        ("-flow value=1", "x2D_flow"),
        ("_x2F_ value=1", "x5F_x2F_"),
        ("flow,road=_x2F_ value=1", "flow:road:_x5F_x2F_"),
        ("x2F_ value=1", "x78_2F_"),
        ("x2,road=_x value=1", "x2:road:_x"),
    ],
)
def test_characters_that_names_cannot_contain_are_escaped(line, name):
    [row] = read(line).rows

    assert row.sensor == name


def test_a_long_name_ends_with_a_digest():
    names = [read(f"flow,road={'A' * 60}{end} value=1").rows[0].sensor for end in "123"]

    assert {len(name) for name in names} == {64}
    assert {name[:47] for name in names} == {f"flow:road:{'A' * 37}"}
    assert len(set(names)) == 3


TRICKY = st.text(st.sampled_from("_xX2FaA:/ °.-") | st.characters(codec="utf-8"), min_size=1)


def unescape(name):
    """Return the parts of a name that has no digest."""
    first, *others = name.split(":")
    start = re.match("x([0-9A-F]+)_", first)
    head = chr(int(start[1], 16)) if start else ""
    parts = [first[start.end() if start else 0 :], *others]
    parts = [re.sub("_x([0-9A-F]+)_", lambda code: chr(int(code[1], 16)), part) for part in parts]
    return [head + parts[0], *parts[1:]]


@given(st.lists(TRICKY, min_size=1, max_size=4))
def test_series_of_other_parts_have_other_names(parts):
    name = series_name(parts)

    assert is_name(name)
    if len(name) < 64:
        assert unescape(name) == parts


def test_tags_in_another_order_are_the_same_series():
    batch = read("flow,a=1,b=2 value=1\nflow,b=2,a=1 value=2")

    assert [row.sensor for row in batch.rows] == ["flow:a:1:b:2"] * 2


def test_lines_inside_a_string_are_not_readings():
    batch = read('log note="first\n# flow value=1\nflow value=2\n",value=3\nramp value=4')

    assert [(row.line, row.sensor, row.value) for row in batch.rows] == [
        (1, "log", 3.0),
        (5, "ramp", 4.0),
    ]
    assert batch.skipped == 1


@pytest.mark.parametrize(
    "body",
    [
        'flow note="open\nramp value=1',
        'flow note="open\\',
        'flow x,note="open\nramp value=1',
        'flow note="' + "\n." * (MOST_JOINED + 2) + '"',
        "flow note=" + "1" * LONGEST_LINE,
    ],
)
def test_lines_whose_end_cannot_be_found_are_unreadable(body):
    with pytest.raises(Problem, match=r"line 1 (has a string|must have)") as caught:
        read(body)

    assert caught.value.code == "sr-unreadable"


def test_bytes_that_are_not_utf_8_are_no_name():
    batch = decode_lines(b'fl\xff value=1\nflow note="\xff",\xff=x,value=2', "s", NOW)

    assert [row.value for row in batch.rows] == [2.0]
    assert [each.code for each in batch.refused] == ["sr-bad-name", "sr-bad-name"]


def test_too_many_readings_are_refused():
    line = "flow " + ",".join(f"f{i}=1" for i in range(1000))

    with pytest.raises(Problem, match="200,000 rows") as caught:
        read("\n".join([line] * (MOST_ROWS // 1000 + 1)))

    assert caught.value.code == "sr-too-large"


@given(st.binary() | st.text('ab,= \\"1.ite#\n').map(str.encode), st.sampled_from(["s", "ns"]))
def test_any_bytes_give_a_batch_or_a_problem(body, precision):
    outcome(lambda: decode_lines(body, precision, NOW))


@given(
    st.dictionaries(st.text("ab", min_size=1), st.text("cd", min_size=1, max_size=8), max_size=4),
    st.randoms(),
)
def test_the_name_follows_the_sorted_tags(tags, random):
    written = random.sample(sorted(tags.items()), len(tags))
    line = ",".join(["flow", *(f"{key}={value}" for key, value in written)])

    [row] = read(f"{line} cars=1").rows

    parts = ["flow", "cars", *(part for tag in sorted(tags.items()) for part in tag)]
    assert row.sensor == series_name(parts)
