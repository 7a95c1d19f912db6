import bz2
import gzip
import io
import lzma
import pickle
import sqlite3
import sys
import zipfile

import pandas as pd
import pytest

from streamridge import InvalidInputError
from tests.support.input_files import read_readings, same, values, written

CSV = "time,a\n2021-06-13,1\n"
FRAME = pd.DataFrame({"time": ["2021-06-13"], "a": [1]})


def zipped(name):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, CSV)
    return content.getvalue()


def feather():
    content = io.BytesIO()
    FRAME.to_feather(content)
    return content.getvalue()


def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE readings (time TEXT, a REAL)")
    content = connection.serialize()
    connection.close()
    return content


FOREIGN = {
    "Feather": (feather(), "an Arrow file .*read_feather"),
    "Excel": (zipped("[Content_Types].xml"), "an Excel workbook.*Save it as CSV"),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook"),
    "zip": (zipped("flow.csv"), "a zip archive.*unzip -p"),
    "bzip2": (bz2.compress(CSV.encode()), "a bzip2 file.*bzip2 -dc"),
    "xz": (lzma.compress(CSV.encode()), "an xz file.*xz -dc"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00", "a zstd file.*zstd -dc"),
    "gzip twice": (gzip.compress(gzip.compress(CSV.encode())), "gzip within gzip"),
    "SQLite": (database(), "an SQLite database.*sqlite3 -header -csv"),
    "HDF5": (b"\x89HDF\r\n\x1a\n\0", "an HDF5 or netCDF file"),
    "PDF": (b"%PDF-1.7\n", "a PDF document"),
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0\0", "a picture"),
    "pickle": (pickle.dumps(FRAME), "a Python pickle"),
    "HTML": ("<!DOCTYPE html>\n<html></html>", "an HTML page.*login"),
    "XML": ('<?xml version="1.0"?><a/>', "XML.*read_xml"),
    "a JSON array": ('[{"time": "2021-06-13", "a": 1}]', r"a JSON array.*jq -c '\.\[\]'"),
    "a JSON document": ('{\n  "time": ["2021-06-13"]\n}', "one JSON object a line .NDJSON.*jq -c"),
    "other bytes": (b"time\x01\xff\xfe\x80\n", "got bytes that are no text in line 1"),
    "two bytes a letter": (CSV.encode("utf-16-le"), "--encoding utf-16-le"),
    "two bytes the other way": (CSV.encode("utf-16-be"), "--encoding utf-16-be"),
    "latin letters": (
        "time,b\n2021-06-13,1\n2021-06-14,ä".encode("latin-1"),
        "line 3 must be text in UTF-8, got byte 0xe4.*--encoding latin-1",
    ),
}


@pytest.mark.parametrize(("content", "message"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("stream", [False, True], ids=["file", "standard input"])
def test_a_file_of_another_format_is_named(content, message, stream, tmp_path, monkeypatch):
    path = written(content, tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))

    with pytest.raises(InvalidInputError, match=message):
        read_readings("-" if stream else path)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (CSV.encode("utf-8-sig"), {}),
        (CSV.encode("utf-16"), {}),
        (CSV.encode("utf-32"), {}),
        (CSV.encode("utf-16"), {"encoding": "utf-16"}),
        (CSV.encode("utf-16-le"), {"encoding": "utf-16-le"}),
        (CSV.replace("a", "ä").encode("latin-1"), {"encoding": "latin-1"}),
        ("# made by hand\n" + CSV, {}),
        ("# time,a\n2021-06-13,1\n", {}),
        ("sep=;\n" + CSV.replace(",", ";"), {}),
        (CSV.replace("\n", "\r\n"), {}),
    ],
)
def test_text_of_many_kinds_is_read(content, options, tmp_path):
    same(values(written(content, tmp_path), **options), [1])


def test_a_byte_order_mark_of_another_encoding_than_given_is_refused(tmp_path):
    path = written(CSV.encode("utf-16"), tmp_path)

    with pytest.raises(InvalidInputError, match="got the byte order mark of utf-16"):
        read_readings(path, encoding="latin-1")
