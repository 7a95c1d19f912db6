"""Files of other kinds, told by how they begin, each with a way to turn it into one of ours."""

from __future__ import annotations

import re
from typing import NamedTuple

from streamridge.errors import InvalidInputError


class Kind(NamedTuple):
    """A kind of file that is not read: how it begins, what it is, and the way out."""

    begins: bytes
    what: str
    way_out: str


_PANDAS = "Convert it, for example with pandas: {}(...).to_parquet(...)"
_UNPACK = "Unpack it on the way: {} | streamridge replay -"
_NO_TABLE = "Pass the table itself, as CSV, NDJSON or Parquet"

_KINDS = (
    Kind(rb"ARROW1", "an Arrow file (Feather)", _PANDAS.format("pandas.read_feather")),
    Kind(rb"FEA1", "an old Feather file", _PANDAS.format("pandas.read_feather")),
    Kind(rb"ORC", "an ORC file", _PANDAS.format("pandas.read_orc")),
    Kind(rb"Obj\x01", "an Avro file", "Convert it to CSV or Parquet"),
    Kind(
        rb"PK\x03\x04(?s:.{26,60}?)(\[Content_Types\]|_rels/|xl/|docProps/)",
        "an Excel workbook",
        "Save it as CSV, or convert it with pandas: pandas.read_excel(...).to_csv(...)",
    ),
    Kind(rb"PK\x03\x04", "a zip archive", _UNPACK.format("unzip -p FILE.zip")),
    Kind(rb"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save it as CSV"),
    Kind(rb"BZh[1-9]1AY", "a bzip2 file", _UNPACK.format("bzip2 -dc FILE.bz2")),
    Kind(rb"\xfd7zXZ\0", "an xz file", _UNPACK.format("xz -dc FILE.xz")),
    Kind(rb"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK.format("zstd -dc FILE.zst")),
    Kind(rb"\x04\x22\x4d\x18", "an lz4 file", _UNPACK.format("lz4 -dc FILE.lz4")),
    Kind(rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK.format("7z x -so FILE.7z")),
    Kind(rb"\x1f\x8b", "gzip within gzip", _UNPACK.format("gzip -dc FILE.gz")),
    Kind(
        rb"SQLite format 3\0",
        "an SQLite database",
        "Take a table out of it: "
        "sqlite3 -header -csv FILE.db 'SELECT * FROM readings' | streamridge replay -",
    ),
    Kind(rb"\x89HDF\r\n\x1a\n", "an HDF5 or netCDF file", _PANDAS.format("pandas.read_hdf")),
    Kind(rb"CDF[\x01\x02\x05]", "a netCDF file", "Convert it to CSV or Parquet"),
    Kind(rb"\x93NUMPY", "a file of NumPy", "Write it as CSV with a column of times"),
    Kind(rb"MATLAB \d", "a file of MATLAB", "Write it as CSV with a column of times"),
    Kind(rb"\x80[\x02-\x05][\x95}\]c(K]", "a Python pickle", _PANDAS.format("pandas.read_pickle")),
    Kind(rb"%PDF-", "a PDF document", _NO_TABLE),
    Kind(rb"\x89PNG|\xff\xd8\xff|GIF8|BM.{4}\0\0\0\0", "a picture", _NO_TABLE),
    Kind(rb"(?s:.{257})ustar", "a tar archive", _UNPACK.format("tar -xOf FILE.tar")),
)
_TEXT_KINDS = (
    Kind(
        rb"\s*<(!doctype html|html|head|body|table|!--)",
        "an HTML page",
        "An address often answers with a page where a login or another address is needed. "
        "Download the table itself, as CSV, NDJSON or Parquet",
    ),
    Kind(
        rb"\s*<[?!A-Za-z]",
        "XML",
        "Convert it, for example with pandas: pandas.read_xml(...).to_csv(...)",
    ),
    Kind(
        rb'\s*\[\s*([\[{"\d-]|\])',
        "a JSON array",
        "Write one record a line (NDJSON), for example with: "
        "jq -c '.[]' FILE.json | streamridge replay -",
    ),
)


def require_own_bytes(head: bytes, name: str) -> None:
    """Raise if the first bytes of a file are those of another kind of file."""
    _refuse(_KINDS, head, name)


def require_own_text(head: str, name: str) -> None:
    """Raise if the first text of a file is that of another kind of file."""
    _refuse(_TEXT_KINDS, head.lower().encode(), name)


def _refuse(kinds: tuple[Kind, ...], head: bytes, name: str) -> None:
    for kind in kinds:
        if re.match(kind.begins, head):
            raise InvalidInputError(
                f"{name} must be CSV, NDJSON or Parquet, packed with gzip or not, "
                f"got what looks like {kind.what}. {kind.way_out}."
            )
