"""Files that lie, break or puzzle: each is read as it was meant, or refused with its place."""

import bz2
import gzip
import io
import lzma
import pickle
import sqlite3
import tarfile
import tracemalloc
import zipfile
from math import nan

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
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
UMLAUT = GOOD.replace("a", "zähler")
FRAME = pd.DataFrame({"time": pd.date_range("2021-06-01", periods=3), "a": [1.0, 2.0, 3.0]})
SKIP = ("--gap", "skip")


def in_memory(write):
    """Return the bytes that something writes to a file."""
    content = io.BytesIO()
    write(content)
    return content.getvalue()


def zipped(name):
    def write(content):
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(name, GOOD)

    return in_memory(write)


def tarred():
    def write(content):
        with tarfile.open(fileobj=content, mode="w") as archive:
            member = tarfile.TarInfo("flow.csv")
            member.size = len(GOOD)
            archive.addfile(member, io.BytesIO(GOOD.encode()))

    return in_memory(write)


def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE readings (time TEXT, a REAL)")
    content = connection.serialize()
    connection.close()
    return content


def parquet(times, values):
    table = pa.table({"time": times, "a": values})
    return in_memory(lambda content: pq.write_table(table, content))


def records(*lines):
    return "\n".join(lines)


PARQUET = in_memory(FRAME.to_parquet)
PARQUET_WITHOUT_ROWS = in_memory(FRAME[:0].to_parquet)

ENCODINGS = {
    "UTF-8 with a byte order mark": read(GOOD.encode("utf-8-sig"), [1, 2, 3]),
    "UTF-16 with a byte order mark": read(GOOD.encode("utf-16"), [1, 2, 3]),
    "UTF-16 the other way, with a mark": read(b"\xfe\xff" + GOOD.encode("utf-16-be"), [1, 2, 3]),
    "UTF-16 without a mark": refused(GOOD.encode("utf-16-le"), "Pass --encoding utf-16-le"),
    "UTF-16 without a mark, the other way": refused(
        GOOD.encode("utf-16-be"), "Pass --encoding utf-16-be"
    ),
    "UTF-16 without a mark, as said": read(
        GOOD.encode("utf-16-le"), [1, 2, 3], "--encoding", "utf-16-le"
    ),
    "Latin-1 in the header": refused(
        UMLAUT.encode("latin-1"),
        "flow.csv line 1 must be text in UTF-8, got byte 0xe4. Pass the right encoding, such as "
        "--encoding latin-1",
    ),
    "Latin-1 as said": read(UMLAUT.encode("latin-1"), [1, 2, 3], "--encoding", "latin-1"),
    "a cell in CP1252": refused(column(1, "€2").encode("cp1252"), "line 3 must be text in UTF-8"),
    "broken UTF-8 in the last line": refused(
        GOOD.encode() + b"2021-06-04,\xc3\n", "flow.csv line 5 must be text in UTF-8, got byte 0xc3"
    ),
    "an encoding that nobody knows": refused(
        GOOD, "encoding must be one that Python knows", "--encoding", "klingon"
    ),
    "an encoding of names, not of files": refused(
        GOOD, "encoding must be one that Python knows", "--encoding", "idna"
    ),
    "another encoding of names": refused(
        GOOD, "encoding must be one that Python knows", "--encoding", "punycode"
    ),
    "a null character in a cell": refused(column(1, "2\0"), r"line 3, column a: must be a number"),
    "a null character in a name": refused(
        column(1, name="a\0b"), "flow.csv must be CSV, NDJSON or Parquet with rows, got null"
    ),
    "nothing but null characters": refused(b"\0" * 100, "got null characters"),
    "null characters at the end": refused(
        GOOD.encode() + b"\0" * 99, "flow.csv line 5 must have 2 cells like the first line, got 1"
    ),
    "null characters at the end, skipped": read(
        GOOD.encode() + b"\0" * 99, [1, 2, 3], *SKIP, said="1 skipped"
    ),
    "lines that end in CR": read(GOOD.replace("\n", "\r"), [1, 2, 3]),
    "lines that end in CR LF": read(GOOD.replace("\n", "\r\n"), [1, 2, 3]),
}

FOREIGN = {
    "an Excel workbook": refused(zipped("xl/workbook.xml"), "an Excel workbook. Save it as CSV"),
    "a zip archive": refused(zipped("flow.csv"), "a zip archive. Unpack it on the way"),
    "Feather": refused(in_memory(FRAME.to_feather), "an Arrow file (Feather)"),
    "SQLite": refused(database(), "an SQLite database. Take a table out of it"),
    "HDF5": refused(b"\x89HDF\r\n\x1a\n\0", "an HDF5 or netCDF file"),
    "a PDF document": refused(b"%PDF-1.7\n", "a PDF document"),
    "a picture": refused(b"\x89PNG\r\n\x1a\n\0\0\0", "a picture"),
    "a page that asks for a login": refused("<!DOCTYPE html>\n<html></html>", "an HTML page"),
    "XML": refused('<?xml version="1.0"?><a/>', "got what looks like XML"),
    "a pickle": refused(pickle.dumps(FRAME), "a Python pickle"),
    "bzip2": refused(bz2.compress(GOOD.encode()), "a bzip2 file. Unpack it on the way"),
    "xz": refused(lzma.compress(GOOD.encode()), "an xz file. Unpack it on the way"),
    "zstd": refused(b"\x28\xb5\x2f\xfd\x04\x00", "a zstd file. Unpack it on the way"),
    "a tar archive": refused(tarred(), "a tar archive. Unpack it on the way"),
    "a tar archive in gzip": refused(gzip.compress(tarred()), "a tar archive"),
    "an empty file": refused("", "got an empty file"),
    "blank lines alone": refused("\n \n\n", "got an empty file"),
    "gzip of nothing": refused(gzip.compress(b""), "got an empty file"),
    "gzip that was cut short": refused(
        gzip.compress((GOOD * 50).encode())[:-12],
        "flow.csv must be a file that can be read, got: Compressed file ended before",
    ),
    "gzip that was altered": refused(
        gzip.compress(GOOD.encode())[:-6] + b"\0" * 6, "flow.csv must be a file that can be read"
    ),
    "gzip with more behind it": refused(
        gzip.compress(GOOD.encode()) + b"more", "flow.csv must be a file that can be read"
    ),
    "gzip in two pieces": read(
        gzip.compress(GOOD.encode()) + gzip.compress(b"2021-06-04,4\n"), [1, 2, 3, 4]
    ),
    "gzip beyond the size allowed": refused(
        gzip.compress(GOOD.encode() + b"\n" * 300_000),
        "flow.csv must unpack to at most 100000 bytes, got more. Pass --largest",
        *("--largest", "100kB"),
    ),
    "Parquet named CSV": read(PARQUET, [1, 2, 3]),
    "Parquet that was cut short": refused(PARQUET[:-20], "flow.csv must be a whole Parquet file"),
    "the first bytes of Parquet": refused(b"PAR1", "flow.csv must be a whole Parquet file"),
    "Parquet with other bytes within": refused(
        PARQUET[:60] + b"\xff" * 40 + PARQUET[100:], "flow.csv must be a whole Parquet file"
    ),
}

DAYS_IN_PARQUET = pa.array([18779, 18780, 18781], pa.date32())
NANOSECONDS = pa.array(FRAME.time.astype("datetime64[ns]"), pa.timestamp("ns"))
PARQUETS = {
    "times in nanoseconds": read(
        parquet(NANOSECONDS, [1, 2, 3]),
        [1, 2, 3],
        times=[f"2021-06-0{day}T00:00:00" for day in (1, 2, 3)],
    ),
    "dates": read(parquet(DAYS_IN_PARQUET, [1, 2, 3]), [1, 2, 3]),
    "times at an odd offset": read(
        parquet(pa.array([0, 3600], pa.timestamp("s", tz="+05:45")), [1, 2]),
        [1, 2],
        times=["1970-01-01T05:45:00+05:45", "1970-01-01T06:45:00+05:45"],
    ),
    "times in a zone that nobody knows": refused(
        parquet(pa.array([0, 3600], pa.timestamp("s", tz="Mars/Olympus")), [1, 2]),
        "the zone of column time must be one that is known, such as Europe/London, got 'Mars/",
    ),
    "times beyond the year 9999": refused(
        parquet(pa.array([2**62], pa.timestamp("us")), [1]), "flow.csv row 0, column time: must be"
    ),
    "a row without a time": refused(
        parquet(pa.array([0, None], pa.timestamp("s")), [1, 2]), "flow.csv row 1, column time"
    ),
    "durations for times": refused(
        parquet(pa.array([1, 2], pa.duration("s")), [1, 2]), "flow.csv row 0, column time"
    ),
    "decimal numbers": read(
        parquet(DAYS_IN_PARQUET, pa.array([1, 2, 3], pa.decimal128(9, 2))), [1, 2, 3]
    ),
    "numbers as words of a dictionary": read(
        parquet(DAYS_IN_PARQUET, pa.array(["1", "2", "3"]).dictionary_encode()), [1, 2, 3]
    ),
    "records in a column": refused(
        parquet(DAYS_IN_PARQUET, [{"x": 1}] * 3), "flow.csv row 0, column a: must be a number"
    ),
    "bytes in a column": refused(
        parquet(DAYS_IN_PARQUET, [b"1"] * 3), "flow.csv row 0, column a: must be a number"
    ),
    "truth in a column": refused(
        parquet(DAYS_IN_PARQUET, [True] * 3), "flow.csv row 0, column a: must be a number"
    ),
    "nothing in a column": refused(
        parquet(DAYS_IN_PARQUET, pa.nulls(3)), "must have values, got none in 'a'"
    ),
    "no rows": refused(PARQUET_WITHOUT_ROWS, "flow.csv must have at least one reading, got none"),
}

JSON = {
    "a JSON array": refused('[{"time": "2021-06-01", "a": 1}]', "a JSON array. Write one record"),
    "records, one a line": read(
        records('{"time":"2021-06-01","a":1}', '{"time":"2021-06-02","a":2}'), [1, 2]
    ),
    "numbers in quotes": read(
        records('{"time":"2021-06-01","a":"1"}', '{"time":"2021-06-02","a":"2.5"}'), [1, 2.5]
    ),
    "null and NaN": read(
        records(
            '{"time":"2021-06-01","a":1}',
            '{"time":"2021-06-02","a":null}',
            '{"time":"2021-06-03","a":NaN}',
            '{"time":"2021-06-04","a":4}',
        ),
        [1, nan, nan, 4],
    ),
    "an infinite number": refused(
        records('{"time":"2021-06-01","a":1}', '{"time":"2021-06-02","a":Infinity}'),
        "flow.csv line 2, column a: must be a number, got 'inf'",
    ),
    "true": refused(
        records('{"time":"2021-06-01","a":1}', '{"time":"2021-06-02","a":true}'),
        "flow.csv line 2, column a: must be a number, got 'true'",
    ),
    "a key twice in a record": refused(
        records('{"time":"2021-06-01","a":1}', '{"time":"2021-06-02","a":2,"a":3}'),
        "flow.csv line 2, key a: must have one value, got more than one",
    ),
    "a record within a record": refused(
        '{"time":"2021-06-01","a":{"v":1}}', "line 1, key a: must be a number, a text or null"
    ),
    "a record that was cut short": refused(
        records('{"time":"2021-06-01","a":1}', '{"time":'), "line 2 must be one JSON object"
    ),
    "a record over several lines": refused(
        '{\n"time": "2021-06-01"\n}', "must have one JSON object a line (NDJSON)"
    ),
    "a number of 5000 digits": refused(
        records('{"time":"2021-06-01","a":1}', '{"time":"2021-06-02","a":' + "9" * 5000 + "}"),
        "flow.csv line 2 must be one JSON object",
    ),
    "brackets without end": refused('{"time":' + "[" * 100_000, "must have one JSON object a line"),
}

HEADERS = {
    "no header": refused(
        "2021-06-01,1\n2021-06-02,2\n",
        "flow.csv line 1 must be a header that names the columns, got '2021-06-01', '1'",
    ),
    "no header above numbers": refused("1,2\n2,3\n", "line 1 must be a header"),
    "a name twice": refused(
        "time,a,a\n2021-06-01,1,2\n", "columns with distinct names, got more than one named 'a'"
    ),
    "a header alone": refused("time,a\n", "flow.csv must have at least one reading, got none"),
    "one column": refused("a\n1\n2\n", "must have a time column and a column for each sensor"),
    "spaces between columns": refused(
        "time a\n2021-06-01 1\n", "got 'time a'. Put a comma, a semicolon, a tab or | between"
    ),
    "blank lines anywhere": read("\n\ntime,a\n\n2021-06-01,1\n\n2021-06-02,2\n\n", [1, 2]),
    "comments above": read(
        "# by hand\n" + GOOD, [1, 2, 3], said="lines with # before the header are skipped"
    ),
    "a comment between rows": refused(
        "time,a\n2021-06-01,1\n# battery changed\n2021-06-02,2\n",
        "flow.csv line 3 must have 2 cells like the first line, got 1",
    ),
    "a delimiter after every row": read("time,a,\n2021-06-01,1,\n2021-06-02,2,\n", [1, 2]),
    "a delimiter after rows but not the header": refused(
        "time,a\n2021-06-01,1,\n", "flow.csv line 2 must have 2 cells like the first line, got 3"
    ),
    "a row with a cell too few": refused(
        "time,a,b\n2021-06-01,1\n", "flow.csv line 2 must have 3 cells like the first line, got 2"
    ),
    "a row with a cell too few, skipped": read(
        "time,a\n2021-06-01,1\n2021-06-02\n2021-06-03,3\n2021-06-04,4\n",
        [1, nan, 3, 4],
        *SKIP,
        said="1 skipped",
    ),
    "a line break within quotes": read(
        'time,a,note\n2021-06-01,1,"x\ny"\n2021-06-02,2,z\n', [1, 2], "--sensor", "a"
    ),
    "a quote left open": refused(
        'time,a\n2021-06-01,"1\n2021-06-02,2\n', "flow.csv line 3, column a: must be a number"
    ),
    "units below the header": refused(
        "time,a\n,veh/h\n2021-06-01,1\n", "flow.csv line 2, column time: must be an ISO 8601 time"
    ),
    "units below the header, skipped": read(
        "time,a\n,veh/h\n2021-06-01,1\n2021-06-02,2\n", [1, 2], *SKIP, said="1 skipped"
    ),
    "tabs": read(GOOD.replace(",", "\t"), [1, 2, 3]),
    "bars": read(GOOD.replace(",", "|"), [1, 2, 3]),
    "a delimiter that the first line names": read("sep=;\n" + column(1, "2,5", by=";"), [1, 2.5]),
    "values under no name": read(
        "time,,b\n2021-06-01,7,1\n2021-06-02,8,2\n",
        [1, 2],
        said="column 2 has no name and is left out",
    ),
    "no name above the times": read(GOOD.replace("time", ""), [1, 2, 3]),
    "3000 columns": read(
        "time," + ",".join(f"c{at}" for at in range(3000)) + "\n"
        "2021-06-01" + ",1" * 3000 + "\n2021-06-02" + ",2" * 3000 + "\n",
        [1, 2],
        *("--sensor", "c2999"),
    ),
}

NUMBERS = {
    "thousands that another cell explains": read(
        column('"1,200"', "12.5"), [1200, 12.5], said="',' is read as a separator of thousands"
    ),
    "thousands or decimals": refused(
        column('"1,200"', "900"),
        "flow.csv line 2, column a: must be a number that can be read in one way only, got "
        "'1,200', which is 1200 or 1.2. Pass --decimal . or --decimal ,",
    ),
    "decimals as said": read(column('"1,200"', "900"), [1.2, 900], "--decimal", ","),
    "decimal commas by semicolons": read(column("1,5", "2,25", by=";"), [1.5, 2.25]),
    "spaces between thousands": read(column("1 234", "900"), [1234, 900]),
    "fixed spaces between thousands": read(column("1\u00a0234,5", "2", by=";"), [1234.5, 2]),
    "units": refused(column("5 km/h"), "line 2, column a: must be a number, got '5 km/h'"),
    "percent": refused(column(1, "6%"), "line 3, column a: must be a number, got '6%'"),
    "hexadecimal": refused(column("0x1F"), "got '0x1F'"),
    "underscores": refused(column("1_000"), "got '1_000'"),
    "Arabic digits": refused(column("١٢"), "got '١٢'"),
    "wide digits": refused(column("\uff11\uff12"), "got '\uff11\uff12'"),
    "infinity": refused(column(1, "inf"), "line 3, column a: must be a number, got 'inf'"),
    "infinity, skipped": read(column(1, 2, "-inf", 4), [1, 2, nan, 4], *SKIP, said="1 skipped"),
    "beyond all numbers": refused(column(1, "1e400"), "got '1e400'"),
    "words for true and false": refused(column("true", "false"), "got 'true'"),
    "words for no value": read(column(1, "NA", "nan", "", "null", "None", 7), [1, *[nan] * 5, 7]),
    "another word for no value": refused(
        column(1, "n/a"), "line 3, column a: must be a number, got 'n/a'. Pass --gap skip"
    ),
    "another word for no value, as said": read(
        column(1, "n/a", 3), [1, nan, 3], "--missing", "n/a"
    ),
    "a number for no value": refused(
        column(5, 6, -9999, 7),
        "-9999 appears 1 time and looks like a missing-value marker: all others go from 5",
    ),
    "a number for no value, as said": read(
        column(5, 6, -9999, 7), [5, 6, nan, 7], "--missing", "-9999"
    ),
    "a number that looks like no value": read(
        column(5, 6, -9999, 7), [5, 6, -9999, 7], "--missing", "none"
    ),
    "nines that come again": refused(column(5, 999, 6, 999), "Pass --missing 999 "),
    "the sign of mathematics for minus": refused(column(1, "\u22125"), "got '\u22125'"),
    "parentheses for minus": refused(column(1, "(5)"), "got '(5)'"),
    "a formula": refused(column(1, "=1+1"), "got '=1+1'"),
    "zeros before a number": read(column("007", "010"), [7, 10]),
    "signs and bare points": read(column("+7", "+.5", "5."), [7, 0.5, 5]),
    "exponents": read(column("1e3", "1E+02"), [1000, 100]),
    "two points": refused(column("1.2.3"), "got '1.2.3'"),
    "a cell of two quotes": read(column(1, '""', 3), [1, nan, 3]),
}

DAYS = ("2021-06-05T00:00:00", "2021-06-13T00:00:00", "2021-06-21T00:00:00")
HOURS = ("2021-06-13T11:00:00", "2021-06-13T12:00:00", "2021-06-13T13:00:00")
BERLIN = ("--tz", "Europe/Berlin")
TWICE = ("2021-10-31T01:00", "2021-10-31T02:00", "2021-10-31T02:00", "2021-10-31T03:00")

DATES = {
    "day or month first": refused(
        stamps("05/06/2021", "06/06/2021"),
        "flow.csv line 2, column time: must be a date that can be read in one way only, got "
        "'05/06/2021', and no cell of the column tells",
    ),
    "day or month first, as said": read(
        stamps("05/06/2021", "06/06/2021"),
        [5, 6],
        *("--date-format", "dayfirst"),
        times=["2021-06-05T00:00:00", "2021-06-06T00:00:00"],
    ),
    "day first, as a later cell shows": read(
        stamps("05/06/2021", "13/06/2021", "21/06/2021"),
        [5, 6, 7],
        said="dates are read as day/month/year, as '13/06/2021' shows",
        times=DAYS,
    ),
    "month first, as a later cell shows": read(
        stamps("06/05/2021", "06/13/2021", "06/21/2021"),
        [5, 6, 7],
        said="dates are read as month/day/year, as '06/13/2021' shows",
        times=DAYS,
    ),
    "both orders in one column": refused(
        stamps("13/06/2021", "06/14/2021"),
        "flow.csv line 3, column time: must be a time written as '13/06/2021' above",
    ),
    "years of two digits": refused(stamps("13/06/21"), "or --date-format %d/%m/%y"),
    "years of two digits, as said": read(
        stamps("13/06/21", "14/06/21"),
        [5, 6],
        *("--date-format", "%d/%m/%y"),
        times=["2021-06-13T00:00:00", "2021-06-14T00:00:00"],
    ),
    "names of months": refused(stamps("13 Jun 2021"), "or --date-format '%d %b %Y'"),
    "names of months, as said": read(
        stamps("13 Jun 2021", "14 Jun 2021"), [5, 6], "--date-format", "%d %b %Y"
    ),
    "AM and PM": read(
        stamps("06/13/2021 11:00 AM", "06/13/2021 12:00 PM", "06/13/2021 01:00 PM"),
        [5, 6, 7],
        times=HOURS,
    ),
    "13 o'clock PM": refused(
        stamps("2021-06-13 11:00 AM", "2021-06-13 13:00 PM"), "line 3, column time"
    ),
    "seconds since 1970": read(
        stamps(1623542400, 1623546000),
        [5, 6],
        said="times are read as seconds since 1970, in UTC",
        times=["2021-06-13T00:00:00+00:00", "2021-06-13T01:00:00+00:00"],
    ),
    "milliseconds since 1970": read(
        stamps(1623542400000, 1623546000000),
        [5, 6],
        said="times are read as milliseconds since 1970, in UTC",
        times=["2021-06-13T00:00:00+00:00", "2021-06-13T01:00:00+00:00"],
    ),
    "seconds since 1970 under another name": refused(
        stamps(1623542400, name="clock"), "or --date-format epoch-s"
    ),
    "times with an offset and without": refused(
        stamps("2021-06-13T08:00Z", "2021-06-13T09:00"), "or all have none, got both"
    ),
    "offsets that differ": read(
        stamps("2021-06-13T08:00+02:00", "2021-06-13T08:00+01:00", "2021-06-13T08:00Z"),
        [5, 6, 7],
        times=[
            "2021-06-13T08:00:00+02:00",
            "2021-06-13T08:00:00+01:00",
            "2021-06-13T08:00:00+00:00",
        ],
    ),
    "an offset of 25 hours": refused(stamps("2021-06-13T08:00+25:00"), "line 2, column time"),
    "the name of a zone": refused(stamps("2021-06-13T08:00 CEST"), "line 2, column time"),
    "the hour that comes twice": read(stamps(*TWICE), [5, 6, 8], said="1 conflict"),
    "the hour that comes twice, in its zone": read(stamps(*TWICE), [5, 6, 7, 8], *BERLIN),
    "the hour that is skipped": refused(
        stamps("2021-03-28T01:00", "2021-03-28T02:00", "2021-03-28T03:00"),
        "time must exist in Europe/Berlin, got 2021-03-28T02:00:00, which clocks skip there. Pass "
        "--gap skip",
        *BERLIN,
    ),
    "the hour that is skipped, left out": read(
        stamps("2021-03-28T00:00", "2021-03-28T01:00", "2021-03-28T02:00", "2021-03-28T03:00"),
        [5, 6, 8],
        *(*BERLIN, *SKIP),
    ),
    "24 o'clock": read(
        stamps("2021-06-13T23:00", "2021-06-13T24:00"),
        [5, 6],
        times=["2021-06-13T23:00:00", "2021-06-14T00:00:00"],
    ),
    "half past 24": refused(stamps("2021-06-13T23:30", "2021-06-13T24:30"), "line 3, column time"),
    "a leap second": refused(stamps("2016-12-31T23:59:60"), "line 2, column time"),
    "30 February": refused(stamps("2021-02-28", "2021-02-30"), "got '2021-02-30'"),
    "a leap day of no leap year": refused(stamps("1900-02-29"), "got '1900-02-29'"),
    "the year 1": read(stamps("0001-01-01", "0001-01-02"), [5, 6]),
    "the year 9999": read(stamps("9999-12-30", "9999-12-31"), [5, 6]),
    "the year 10000": refused(stamps("10000-01-01"), "line 2, column time"),
    "a date of zeros": refused(stamps("2021-06-01", "0000-00-00"), "line 3, column time"),
    "no time in a row": refused(stamps("2021-06-01", "", "2021-06-03"), "line 3, column time"),
    "times without a date": refused(stamps("08:00", "09:00"), "line 2, column time"),
    "rows out of order": read(
        stamps("2021-06-03", "2021-06-01", "2021-06-02"), [6, 7, 5], said="2 out of order"
    ),
    "a row twice": read(
        "time,a\n2021-06-01,1\n2021-06-01,1\n2021-06-02,2\n", [1, 2], said="1 duplicate"
    ),
    "two values of one time": read(
        "time,a\n2021-06-01,1\n2021-06-01,9\n2021-06-02,2\n", [1, 2], said="1 conflict"
    ),
    "a stamp of 1970 among those of today": refused(
        stamps("2021-06-01T00:00", "2021-06-01T00:01", "2021-06-01T00:02", "1970-01-01T00:00"),
        "stamps must be less than 1000 days apart, got 2021-06-01T00:00:00 after 1970-01-01",
    ),
    "a stamp of 1970 left out": read(
        stamps("2021-06-01T00:00", "2021-06-01T00:01", "2021-06-01T00:02", "1970-01-01T00:00"),
        [5, 6, 7],
        *("--from", "2021-06-01"),
    ),
    "date and hour apart": read(
        "date,hour,a\n2021-06-13,11,1\n2021-06-13,12,2\n2021-06-13,13,3\n",
        [1, 2, 3],
        said="columns date and hour are read as one time",
        times=HOURS,
    ),
    "an hour 25": refused(
        "date,hour,a\n2021-06-13,24,1\n2021-06-13,25,2\n", "line 3, column date and hour"
    ),
    "dates of eight digits": read(
        stamps(20210613, 20210614), [5, 6], times=["2021-06-13T00:00:00", "2021-06-14T00:00:00"]
    ),
    "dates and hours of twelve digits": refused(
        stamps(202106130800), "or --date-format %Y%m%d%H%M"
    ),
    "days as a spreadsheet counts them": refused(stamps("44360.5"), "line 2, column time"),
    "hours of ten digits": refused(stamps(2021061308), "or --date-format %Y%m%d%H "),
    "one bad cell among seconds since 1970": refused(
        stamps(1623542400, "x", 1623549600),
        "line 3, column time: must be seconds since 1970, as the others, got 'x'",
    ),
    "milliseconds among seconds since 1970": refused(
        stamps(1623542400, 1623546000, 1623549600000), "line 4, column time: must be seconds"
    ),
    "one bad cell in an index": refused(
        stamps(0, 1, "x", 3),
        "line 4, column time: must be a whole number of at most 7 digits, as the others, got 'x'",
    ),
    "one bad cell in an index, skipped": read(
        stamps(0, 1, "x", 2), [5, 6, 8], *SKIP, said="1 skipped"
    ),
    "an index of 17 digits": refused(stamps(0, 1, 10**17), "line 4, column time: must be a whole"),
    "an index with a gap": read(stamps(0, 1, 3), [5, 6, nan, 7], times=["0", "1", "2", "3"]),
    "an index below zero": refused(stamps(-2, -1), "line 2, column time"),
}


def hourly(hours):
    return [f"2021-06-13T{hour:02}:00" for hour in range(hours)]


GRIDS = {
    "a finer step than there is": read(
        stamps(*hourly(2)), [5, nan, 6], "--step", "30min", said="1 missing"
    ),
    "a coarser step without a way": refused(
        stamps(*hourly(6)),
        "aggregate must be sum, mean or last to make steps of 2h",
        "--step",
        "2h",
    ),
    "a coarser step": read(stamps(*hourly(6)), [11, 15, 19], "--step", "2h", "--aggregate", "sum"),
    "a step between": refused(
        stamps(*hourly(6)),
        "step must be a multiple of the readings' own 1h, got 90min",
        *("--step", "90min", "--aggregate", "sum"),
    ),
    "steps of 7 minutes": read(
        stamps("2021-06-13T00:00", "2021-06-13T00:07", "2021-06-13T00:14"),
        [5, 6, 7],
        said="3 steps of 7min",
    ),
    "no step at all": refused(
        stamps(*(f"2021-06-13T0{time}" for time in ("0:00", "0:07", "0:31", "1:17", "3:02"))),
        "readings must be equally far apart",
    ),
    "stamps a little off": read(
        stamps("2021-06-13T00:00:02", "2021-06-13T00:14:59", "2021-06-13T00:30:01"),
        [5, 6, 7],
        said="3 off grid",
    ),
    "one reading": refused(stamps("2021-06-13"), "step must be given for a single reading"),
    "one reading and its step": read(stamps("2021-06-13"), [5], "--step", "1d"),
    "two readings": read(stamps("2021-06-13", "2021-06-14"), [5, 6]),
    "two readings of one time": refused(
        stamps("2021-06-13", "2021-06-13"), "step must be given for a single reading"
    ),
    "no value anywhere": refused(column("", "", ""), "must have values, got none in 'a'"),
    "no value in one column": read(
        "time,a,b\n2021-06-01,1,\n2021-06-02,2,\n", [1, 2], said="b: no values, left out"
    ),
    "one value throughout": read(column(*[5] * 10), [5] * 10),
    "zero throughout": read(column(*[0] * 10), [0] * 10),
    "below zero": read(column(-3, -2, -3.5), [-3, -2, -3.5]),
    "the largest size": read(column("1e12", "2"), [1e12, 2]),
}

TABLES = {
    "encoding": ENCODINGS,
    "foreign": FOREIGN,
    "parquet": PARQUETS,
    "json": JSON,
    "header": HEADERS,
    "number": NUMBERS,
    "date": DATES,
    "grid": GRIDS,
}
ROWS = {f"{kind}: {name}": row for kind, table in TABLES.items() for name, row in table.items()}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_file_is_read_correctly_or_refused(row, invoke, tmp_path):
    written(row.content, tmp_path / "flow.csv")

    result = invoke("replay", "flow.csv", *SHOWN, *row.flags)

    require_contract(result, row.code, row.said)
    if row.code == 0:
        require_readings(result, row.values, row.times)


BOMBS = {
    "blank lines": b"\n" * 20_000_000,
    "a line without end": b"7" * 20_000_000,
    "rows that are all alike": b"2021-06-01,1\n" * 1_500_000,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_takes_little_memory(bomb, invoke, tmp_path):
    written(gzip.compress(GOOD.encode() + bomb, 6), tmp_path / "flow.csv")

    tracemalloc.start()
    result = invoke("replay", "flow.csv", *SHOWN, "--largest", "200kB")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    require_contract(result, 2, "flow.csv must unpack to at most 200000 bytes, got more")
    assert peak < 25e6


# The files, and a part of what is said; the first is good.
TOGETHER = {
    "times with an offset": (stamps("2021-06-04T00:00Z"), "or all have none, got both"),
    "an index": (stamps(0, 1), "must all be dates or all be whole numbers, got both"),
    "an empty file": ("", "other.csv must be CSV, NDJSON or Parquet with rows, got an empty file"),
    "words": (column("x"), "other.csv line 2, column a: must be a number, got 'x'"),
    "a picture": (b"\x89PNG\r\n\x1a\n", "other.csv must be CSV"),
}


@pytest.mark.parametrize(("content", "said"), TOGETHER.values(), ids=TOGETHER)
def test_files_that_do_not_fit_together_are_refused(content, said, invoke, tmp_path):
    written(GOOD, tmp_path / "flow.csv")
    written(content, tmp_path / "other.csv")

    result = invoke("replay", "flow.csv", "other.csv", *SHOWN)

    require_contract(result, 2, said)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "standard input must be CSV"), (b"\x89PNG\r\n\x1a\n", "a picture")],
    ids=["nothing", "a picture"],
)
def test_a_problem_of_standard_input_is_named(content, said, invoke):
    require_contract(invoke("replay", "-", *SHOWN, input=content), 2, said)
