"""Files that leave nothing to forecast, and encodings that were named by half."""

import pytest

from tests.support.hostile_files import (
    SHOWN,
    column,
    read,
    refused,
    require_contract,
    require_readings,
    stamps,
    written,
)

GOOD = column(1, 2, 3)
BACKWARDS = column("x", "y", "z")
NO_TIMES = stamps("a", "b", "c")
EQUAL = stamps(*[5] * 60, name="index")
EQUAL_DATES = stamps(*["2021-06-01"] * 60)

ROWS = {
    "an index all equal": refused(
        EQUAL, "there must be one reading at a time, got 59 of 60 that differ"
    ),
    "an index all equal, with a step": refused(
        EQUAL, "there must be one reading at a time, got 59 of 60", "--step", "5"
    ),
    "an index all equal, with a way to combine": refused(
        EQUAL, "there must be one reading at a time", "--aggregate", "mean"
    ),
    "an index all equal, with both": refused(
        EQUAL, "there must be one reading at a time", "--step", "5", "--aggregate", "mean"
    ),
    "an index all equal, and all values": read(
        "index,a\n" + "5,1\n" * 60, [1], said="59 duplicates"
    ),
    "an index all equal, in order of arrival": refused(
        EQUAL, "there must be one reading at a time", "--arrival-order"
    ),
    "one date": refused(EQUAL_DATES, "step must be given for a single reading"),
    "one date, with a step": refused(
        EQUAL_DATES, "there must be one reading at a time", "--step", "1d"
    ),
    "UTF-16 without a mark": refused(
        GOOD.encode("utf-16-le"),
        "got what looks like UTF-16-LE without a byte order mark. Pass --encoding utf-16-le",
        *("--encoding", "utf-16"),
    ),
    "UTF-16 of the other order without a mark": refused(
        GOOD.encode("utf-16-be"), "Pass --encoding utf-16-be", "--encoding", "utf-16"
    ),
    "UTF-16 of other letters without a mark": refused(
        ("\u65f6\u95f4,\u5317\u95e8" * 40).encode("utf-16-le"),
        "must begin with the byte order mark of utf-16, got none",
        *("--encoding", "utf-16"),
    ),
    "UTF-32 without a mark": refused(
        GOOD.encode("utf-32-le"),
        "must begin with the byte order mark of utf-32, got none. Pass --encoding utf-32-le",
        *("--encoding", "utf-32"),
    ),
    "UTF-8 that is said to be UTF-16": refused(
        GOOD, "must begin with the byte order mark of utf-16, got none", "--encoding", "utf-16"
    ),
    "UTF-16 with its order": read(GOOD.encode("utf-16-le"), [1, 2, 3], "--encoding", "utf-16-le"),
    "UTF-16 with a mark and its name": read(
        GOOD.encode("utf-16"), [1, 2, 3], "--encoding", "utf-16"
    ),
    "no number at all": refused(BACKWARDS, "must be a number, got 'x'"),
    "no number at all, all skipped": refused(
        BACKWARDS,
        'got none after --gap skip (gap="skip" in Python) dropped 3 cells that could not be read',
        *("--gap", "skip"),
    ),
    "no time at all, all skipped": refused(
        NO_TIMES, "dropped 3 cells that could not be read. Leave it out to see", "--gap", "skip"
    ),
    "no time and no number, all skipped": refused(
        "time,a,b\nfoo,x,y\n", "that could not be read. Leave it out to see", "--gap", "skip"
    ),
    "some numbers, the others skipped": read(
        column(1, "x", 3, 4, 5), [1, float("nan"), 3, 4, 5], "--gap", "skip", said="1 skipped"
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_cannot_be_used_is_refused_with_its_reason(row, invoke, tmp_path):
    written(row.content, tmp_path / "flow.csv")

    result = invoke("replay", "flow.csv", *SHOWN, *row.flags)

    require_contract(result, row.code, row.said)
    if row.values is not None:
        require_readings(result, row.values, row.times)
