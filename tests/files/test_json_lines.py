import json
import math

import pytest

from streamridge import InvalidInputError
from streamridge.files import raw_table
from tests.support.input_files import read_readings, same, written

NAN = math.nan


def ndjson(*records):
    return "\n".join(map(json.dumps, records))


@pytest.mark.parametrize("block", [1, 500_000])
def test_wide_records_are_read_and_an_absent_key_is_missing(block, tmp_path, monkeypatch):
    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", block)
    content = ndjson(
        {"time": "2021-06-13", "a": 1, "b": 2.5},
        {"time": "2021-06-14", "b": None},
        {"time": "2021-06-15", "a": "7"},
    )

    first, second = read_readings(written(content, tmp_path))

    same(first.values, [1, NAN, 7])
    same(second.values, [2.5, NAN, NAN])


def test_long_records_are_read(tmp_path):
    content = ndjson(
        *({"sensor": s, "time": 1623571200 + n, "value": n} for n, s in enumerate("aab"))
    )

    first, second = read_readings(written(content, tmp_path))

    assert (first.values.tolist(), second.values.tolist()) == ([0, 1], [2])
    assert first.time_format.zoned


def test_numbers_of_json_have_decimal_dots(tmp_path):
    content = ndjson({"time": "2021-06-13", "a": 1.195}, {"time": "2021-06-14", "a": 880})

    [readings] = read_readings(written(content, tmp_path))

    same(readings.values, [1.195, 880])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"time": "2021-06-14", "a": {"b": 1}}',
            "line 2, key a: must be a number, a text or null",
        ),
        ('{"time": "2021-06-14", "a": [1]}', "line 2, key a: must be"),
        ('{"time": "2021-06-14", "a": 1', "line 2 must be one JSON object, got"),
        ("[1, 2]", "line 2 must be one JSON object, got"),
        ('{"time": "2021-06-14", "a": true}', "line 2, column a: must be a number, got 'true'"),
        ('{"time": "2021-06-14", "a": "x"}', "line 2, column a: must be a number, got 'x'"),
        ('{"time": "2021-06-14", "a": Infinity}', "line 2, column a: must be a number, got 'inf'"),
    ],
)
def test_a_bad_record_is_named_or_skipped(line, message, tmp_path):
    path = written(ndjson({"time": "2021-06-13", "a": 1}) + "\n" + line, tmp_path)

    with pytest.raises(InvalidInputError, match=message):
        read_readings(path)
    [readings] = read_readings(path, gap="skip")

    assert (readings.values.tolist(), readings.skipped) == ([1], 1)
