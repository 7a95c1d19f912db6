import math

import pytest

from streamridge import InvalidInputError
from streamridge.files import raw_table
from tests.support.input_files import column, same, values, written

NAN = math.nan
NARROW, THIN, FIXED = "\u202f", "\u2009", "\u00a0"

# The delimiter, the cells, and their values, or a part of the message.
COLUMNS = {
    "thousands beside decimal commas": (";", ["1.195", "880", "12,5"], [1195, 880, 12.5]),
    "thousands and decimals in one cell": (";", ["1.195,5", "1.195"], [1195.5, 1195]),
    "two marks between thousands": (";", ["1.195", "1.195.000"], [1195, 1195000]),
    "decimal dots by semicolons": (";", ["1.195", "0.5"], [1.195, 0.5]),
    "decimal commas by semicolons": (";", ["1,195", "0,195", "12"], [1.195, 0.195, 12]),
    "three digits after a comma by semicolons": (";", ["1,195", "12,204"], [1.195, 12.204]),
    "three digits after a dot by commas": (",", ["1.195", "12.204", "7"], [1.195, 12.204, 7]),
    "quoted thousands beside decimal dots": (",", ['"1,195"', "12.5"], [1195, 12.5]),
    "quoted thousands in both places": (",", ['"1,195.5"', '"1,195"'], [1195.5, 1195]),
    "quoted millions": (",", ['"1,195,000"', '"1,195"'], [1195000, 1195]),
    "quoted decimal commas": (",", ['"12,5"', "7"], [12.5, 7]),
    "dots between thousands by commas": (",", ["1.195", '"12,5"'], [1195, 12.5]),
    "decimal commas by tabs": ("\t", ["12,5", "1.195"], [12.5, 1195]),
    "spaces between thousands": (";", ["1 195", "1 195,5", "880"], [1195, 1195.5, 880]),
    "fixed spaces": (";", [f"1{FIXED}195,5", f"1{NARROW}195", f"{FIXED}7"], [1195.5, 1195, 7]),
    "thin spaces": (",", [f"1{THIN}195.5"], [1195.5]),
    "apostrophes": (",", ["1'195.5", "1\u2019195"], [1195.5, 1195]),
    "signs": (";", ["-1.195", "+2,5"], [-1195, 2.5]),
    "exponents": (";", ["1,5e3", "2E2"], [1500, 200]),
    "words for no value": (",", ["nan", "NULL", "None", "1"], [NAN, NAN, NAN, 1]),
    "a thousand in doubt": (
        ";",
        ["1.195", "880"],
        r"line 2, .* got '1.195', which is 1.195 or 1195",
    ),
    "a thousand alone": (";", ["1.195", "1.204"], r"Pass --decimal \. or --decimal ,"),
    "a thousand in doubt by tabs": ("\t", ["1,195"], "which is 1195 or 1.195"),
    "a thousand in doubt by commas": (",", ["880", "1.195"], r"line 3, .* which is 1.195 or 1195"),
    "a quoted thousand in doubt": (",", ['"1,195"', "880"], "which is 1195 or 1.195"),
    "a comma in doubt by semicolons": (";", ["1,195", "880"], "which is 1195 or 1.195"),
    "both marks in doubt": (";", ["1,195", "1.195"], "read in one way only, got '1,195'"),
    "both marks as decimals": (";", ["12,5", "2.5"], r"line 3, .*, got '2.5'"),
    "both marks the other way": (
        ";",
        ["2.5", "12,5"],
        r"line 3, column a: must be a number with the decimal mark '.', as '2.5' above, got '12,5'",
    ),
    "groups of two": (",", ['"1,19"', "2.5"], "got '2.5'"),
    "wrong groups": (",", ["1.5", '"1,19,500"'], "got '1,19,500'"),
    "a group that begins with zero": (";", ["12,5", "0.195"], "got '0.195'"),
    "spaces anywhere": (",", ["1 19"], "got '1 19'"),
    "percent": (",", ["12%"], r"got '12%'\. Pass --gap skip .*, or --missing 12% .* if"),
    "a unit": (",", ["12 km/h"], "got '12 km/h'.*--missing '12 km/h' .* if"),
    "currency": (",", ["€12"], "got '€12'"),
    "a spreadsheet's error": (",", ["1", "#N/A"], "line 3, .* got '#N/A'.*--missing '#N/A' .* if"),
    "a dash": (",", ["-"], "got '-'.*--missing - .* if"),
    "two dashes": (",", ["--"], "got '--'"),
    "a question mark": (",", ["?"], "got '[?]'"),
    "true": (",", ["TRUE"], "got 'TRUE'"),
    "infinity": (",", ["inf"], "got 'inf'"),
    "beyond all numbers": (",", ["1e400"], "got '1e400'"),
    "hexadecimal": (",", ["0x1f"], "got '0x1f'"),
    "underscores": (",", ["1_000"], "got '1_000'"),
    "wide digits": (",", ["\uff11\uff12"], "got '\uff11\uff12'"),
    "Arabic digits": (",", ["١٢"], "got '١٢'"),
    "a null character": (",", ["1\0"], r"got '1\\x00'"),
    "a word of Fortran": (",", ["1d5"], "got '1d5'"),
}


@pytest.mark.parametrize(("delimiter", "cells", "expected"), COLUMNS.values(), ids=COLUMNS)
@pytest.mark.parametrize("block", [1, 500_000], ids=["row by row", "at once"])
def test_a_whole_column_decides_how_its_numbers_are_read(
    delimiter, cells, expected, block, tmp_path, monkeypatch
):
    monkeypatch.setattr(raw_table, "CELLS_IN_A_PART", block)
    path = written(column(cells, delimiter), tmp_path)

    if isinstance(expected, str):
        with pytest.raises(InvalidInputError, match=expected):
            values(path)
        return

    same(values(path), expected)


@pytest.mark.parametrize(
    ("decimal", "delimiter", "cells", "expected"),
    [
        (",", ";", ["1.195", "880"], [1195, 880]),
        (".", ";", ["1.195", "880"], [1.195, 880]),
        (".", ",", ['"1,195"', "880"], [1195, 880]),
        (",", ",", ['"1,195"', "880"], [1.195, 880]),
    ],
)
def test_the_decimal_mark_can_be_given(decimal, delimiter, cells, expected, tmp_path):
    path = written(column(cells, delimiter), tmp_path)

    same(values(path, decimal=decimal), expected)


def test_a_cell_with_another_decimal_mark_than_given_is_refused(tmp_path):
    path = written(column(["1.195", "2.5"], ";"), tmp_path)

    with pytest.raises(InvalidInputError, match=r"line 3, column a: must be .* got '2\.5'"):
        values(path, decimal=",")


def test_each_column_decides_for_itself(tmp_path):
    path = written("time;a;b\n2021-06-13;1.195;2.5\n2021-06-14;12,5;3\n", tmp_path)

    same(values(path, sensors="a"), [1195, 12.5])
    same(values(path, sensors="b"), [2.5, 3])
