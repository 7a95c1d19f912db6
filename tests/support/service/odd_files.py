"""Odd files as people and programs make them, with what must become of each.

An outcome is a list: for each row that is taken its line and value, for each that is refused its
line, code and column; or it is the code with which the whole file is refused.
"""

from __future__ import annotations

from tests.support.service.request_bodies import CSV, JSON, NDJSON, PARQUET_FILE, TIME, reading

HEAD = "sensor,time,value\n"
ROW, SEMI = f"a,{TIME},", f"a;{TIME};"
UNREADABLE = "sr-unreadable"
BAD_ROW, NO_NUMBER = "sr-bad-row", "sr-not-a-number"

TABLES = [
    ("plain", HEAD + ROW + "1.5\n", [(2, 1.5)]),
    ("no line end", HEAD + ROW + "1", [(2, 1.0)]),
    ("CRLF", HEAD.replace("\n", "\r\n") + ROW + "1\r\n", [(2, 1.0)]),
    ("BOM", "\ufeff" + HEAD + ROW + "1\n", [(2, 1.0)]),
    ("BOM and CRLF and ;", f"\ufeffsensor;time;value\r\n{SEMI}1\r\n", [(2, 1.0)]),
    ("other order", f"value,sensor,time\n1,a,{TIME}\n", [(2, 1.0)]),
    ("quotes", f'"sensor","time","value"\n"a","{TIME}","1"\n', [(2, 1.0)]),
    ("empty value", HEAD + ROW + "\n", [(2, None)]),
    ("empty value in quotes", HEAD + ROW + '""\n', [(2, None)]),
    ("blank lines", "\n" + HEAD + "\n" + ROW + "1\n \n" + ROW + "2\n", [(4, 1.0), (6, 2.0)]),
    ("header alone", HEAD, []),
    ("decimal comma", f"sensor;time;value\n{SEMI}1,5\n", [(2, 1.5)]),
    ("decimal point and ;", f"sensor;time;value\n{SEMI}1.5\n", [(2, 1.5)]),
    (
        "both decimal marks",
        f"sensor;time;value\n{SEMI}1,5\n{SEMI}1.234\n{SEMI}7\n",
        [(2, 1.5), (3, NO_NUMBER, "value"), (4, 7.0)],
    ),
    ("thousands", f"sensor;time;value\n{SEMI}1.234,5\n", [(2, NO_NUMBER, "value")]),
    ("decimal comma and ,", HEAD + ROW + '"1,5"\n', [(2, NO_NUMBER, "value")]),
    ("decimal comma splits a cell", HEAD + ROW + "1,5\n", [(2, BAD_ROW, None)]),
    ("exponent and sign", HEAD + ROW + "+1.5e2\n" + ROW + "-.5\n", [(2, 150.0), (3, -0.5)]),
    ("no header", ROW + "1\n", UNREADABLE),
    ("empty", "", UNREADABLE),
    ("blank", "\n \r\n", UNREADABLE),
    ("unknown column", "sensor,time,value,unit\n", UNREADABLE),
    ("missing column", "sensor,value\n", UNREADABLE),
    ("column twice", "sensor,time,value,value\n", UNREADABLE),
    ("capitals in the header", "Sensor,Time,Value\n", UNREADABLE),
    ("blanks in the header", "sensor, time, value\n", UNREADABLE),
    ("tabs", HEAD.replace(",", "\t"), UNREADABLE),
    ("a hint for a spreadsheet", "sep=;\nsensor;time;value\n", UNREADABLE),
    ("lines end by CR alone", (HEAD + ROW + "1\n").replace("\n", "\r"), UNREADABLE),
    ("a page instead of a table", "<!DOCTYPE html>\n<html>\n", UNREADABLE),
    ("JSON instead of a table", reading().decode(), UNREADABLE),
    ("open quotation mark in the header", '"sensor,time,value\n', UNREADABLE),
    ("a long header", "sensor," * 10_000, UNREADABLE),
    (
        "open quotation mark",
        HEAD + f'"a,{TIME},1\n' + ROW + "2\n",
        [(2, BAD_ROW, None), (3, 2.0)],
    ),
    (
        "line break in a cell",
        HEAD + f'"a\nb",{TIME},1\n',
        [(2, BAD_ROW, None), (3, "sr-bad-name", "sensor")],
    ),
    ("a quotation mark too many", HEAD + f'"a"b,{TIME},1\n', [(2, BAD_ROW, None)]),
    ("too few cells", HEAD + "a\n", [(2, BAD_ROW, None)]),
    ("too many cells", HEAD + ROW + "1,\n", [(2, BAD_ROW, None)]),
    ("a long line", HEAD + ROW + "1" * 10_000, [(2, BAD_ROW, None)]),
    ("the header again", HEAD + HEAD, [(2, "sr-bad-time", "time")]),
    ("empty sensor", HEAD + f",{TIME},1\n", [(2, "sr-bad-name", "sensor")]),
    ("formula as name", HEAD + f"=1+1,{TIME},1\n", [(2, "sr-bad-name", "sensor")]),
    ("NUL in a name", HEAD + f"a\0,{TIME},1\n", [(2, "sr-bad-name", "sensor")]),
    ("empty time", HEAD + "a,,1\n", [(2, "sr-bad-time", "time")]),
    ("time without offset", HEAD + "a,2026-06-13 08:15:00,1\n", [(2, "sr-no-offset", "time")]),
    ("European date", HEAD + "a,13.06.2026 08:15,1\n", [(2, "sr-bad-time", "time")]),
    (
        "values that are no numbers",
        HEAD + "".join(f"{ROW}{value}\n" for value in ("NaN", "inf", "n/a", "-", "1_0", "1e400")),
        [(line, NO_NUMBER, "value") for line in range(2, 8)],
    ),
    (
        "values with blanks, units and other bases",
        HEAD + "".join(f"{ROW}{value}\n" for value in (" 1", "1 ", "5%", "12 veh", "0x10")),
        [(line, NO_NUMBER, "value") for line in range(2, 7)],
    ),
    ("thousands with an apostrophe", HEAD + ROW + "1'234\n", [(2, NO_NUMBER, "value")]),
    ("a name with blanks around it", HEAD + f" a ,{TIME},1\n", [(2, "sr-bad-name", "sensor")]),
    ("too large", HEAD + ROW + "1000000000001\n", [(2, "sr-out-of-range", "value")]),
]
BYTES = [
    ("Latin-1", CSV, f"{HEAD}Z\xfcrich,{TIME},1\n".encode("latin-1"), UNREADABLE),
    ("UTF-16", CSV, f"{HEAD}{ROW}1\n".encode("utf-16"), UNREADABLE),
    ("Parquet instead of a table", CSV, PARQUET_FILE, UNREADABLE),
    ("lines with BOM and CRLF", NDJSON, b"\xef\xbb\xbf" + reading() + b"\r\n", [(1, 1.0)]),
    ("lines of another file", NDJSON, HEAD.encode(), [(1, BAD_ROW, None)]),
    ("array with BOM", JSON, b"\xef\xbb\xbf[" + reading() + b"]", [(1, 1.0)]),
    ("array with a comma too many", JSON, b"[" + reading() + b",]", UNREADABLE),
    ("lines of an array", NDJSON, b"[" + reading() + b"]\n", [(1, BAD_ROW, None)]),
    ("lines instead of a document", JSON, reading() + b"\n" + reading(), UNREADABLE),
]
FILES = [
    *((f"csv: {name}", CSV, text.encode(), right) for name, text, right in TABLES),
    *((f"bytes: {name}", kind, body, right) for name, kind, body, right in BYTES),
]
