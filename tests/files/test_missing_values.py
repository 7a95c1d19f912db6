import math

import pytest

from streamridge import InvalidInputError
from tests.support.input_files import column, read_readings, same, values, written

NAN = math.nan
FLOWS = ["12", "880", "0", "31", "7"]

REFUSED = {
    "the usual one": (
        [*FLOWS, "-9999"],
        "sensor a: -9999 appears 1 time and looks like a missing-value marker: .* Pass "
        "--missing -9999 .* --missing none",
    ),
    "one less digit": ([*FLOWS, "-999", "-999"], "--missing -999 "),
    "with a decimal": ([*FLOWS, "-99.9"], "--missing -99.9 "),
    "-1 among counts": ([*FLOWS, "-1", "-1"], "--missing -1 "),
    "beside values below zero": (
        ["-5.5", "3.1", "12", "-99"],
        "all others go from -5.5 to 12",
    ),
    "high and far": (["12", "31", "9999", "9999"], "--missing 9999 "),
    "all bits set": (["12", "31", "65535", "65535"], "--missing 65535 "),
    "nothing else": (["-999", "-999"], "appears 2 times .*: there is no other value"),
}
READ = {
    "a single -1": [*FLOWS, "-1"],
    "-1 among other values below zero": ["-1", "-1", "-3", "5"],
    "-1 among fractions": ["-1", "-1", "0.5", "2.25"],
    "a high number near others": ["880", "950", "999", "999", "0"],
    "a high number once": ["12", "31", "999"],
    "no number of note": ["-17", "4", "12"],
}


@pytest.mark.parametrize(("cells", "message"), REFUSED.values(), ids=REFUSED)
def test_a_missing_value_marker_is_refused(cells, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        values(written(column(cells), tmp_path))


@pytest.mark.parametrize("cells", READ.values(), ids=READ)
def test_other_numbers_are_values(cells, tmp_path):
    same(values(written(column(cells), tmp_path)), [float(cell) for cell in cells])


@pytest.mark.parametrize(("cells", "_"), REFUSED.values(), ids=REFUSED)
def test_every_number_may_be_declared_a_value(cells, _, tmp_path):
    path = written(column(cells), tmp_path)

    same(values(path, missing="none"), [float(cell) for cell in cells])


@pytest.mark.parametrize("missing", [-9999, "-9999", [-9999.0], ["n/a", -9999]], ids=repr)
def test_a_marker_is_missing_in_every_column(missing, tmp_path):
    path = written("time,a,rain\n2021-06-13,-9999.0,1\n2021-06-14,5,-9999\n", tmp_path)

    [readings] = read_readings(path, extras=["rain"], missing=missing)

    same(readings.values, [NAN, 5])
    same(readings.extras["rain"], [1, NAN])


def test_a_text_may_mark_a_missing_value(tmp_path):
    path = written(column(["n/a", "5", "-", "1e400"]), tmp_path)

    same(values(path, missing=["n/a", "-", "1e400"]), [NAN, 5, NAN, NAN])


def test_markers_in_extras_are_refused(tmp_path):
    path = written("time,a,rain\n2021-06-13,1,0\n2021-06-14,5,-9999\n", tmp_path)

    with pytest.raises(InvalidInputError, match="column rain: -9999"):
        read_readings(path, extras=["rain"])


def test_each_sensor_of_a_long_file_is_checked_for_markers(tmp_path):
    rows = "a,2021-06-13,-5\na,2021-06-14,-7\nb,2021-06-13,3\nb,2021-06-14,-999\n"

    with pytest.raises(InvalidInputError, match="sensor b: -999 appears"):
        read_readings(written(f"sensor,time,value\n{rows}", tmp_path))
