"""Parquet files that would not fit into memory are refused before they are unpacked."""

import numpy as np
import pyarrow as pa
import pytest

from streamridge.service.bodies import parquet_pages, parquet_rows
from streamridge.service.bodies.decoding import decode
from streamridge.service.bodies.parquet_footer import footer_of
from streamridge.service.bodies.parquet_pages import MOST_PAGES, require_small_pages
from streamridge.service.bodies.thrift import ThriftError, ThriftReader
from streamridge.service.problems import Problem
from streamridge.service.rows import MOST_BYTES, MOST_ROWS
from tests.service.bodies.verdicts import MOMENT, PARQUET, parquet, parquet_of, verdict


def of_sensors(sensors, **options):
    """Return a file with a reading of each sensor."""
    count = len(sensors)
    times = pa.array(np.full(count, MOMENT), pa.timestamp("us", "UTC"))
    columns = {"sensor": sensors, "time": times, "value": np.zeros(count)}
    return parquet_of(pa.table(columns), **options)


def large_file():
    """Return a small file that is larger than allowed when it is unpacked."""
    texts = pa.array([f"{i:01000d}" for i in range(MOST_BYTES // 1000)])
    return of_sensors(texts, compression="zstd", use_dictionary=False)


def test_as_many_rows_as_allowed_are_taken():
    body = of_sensors(pa.array([f"s{i}" for i in range(MOST_ROWS)]))

    assert len(decode(body, PARQUET).rows) == MOST_ROWS


def test_too_many_rows_are_refused(record_property):
    record_property("row", "B12")
    record_property("cases", 1)

    assert (
        verdict(decode, of_sensors(pa.array(["a"] * (MOST_ROWS + 1))), PARQUET)
        == "all: sr-too-large"
    )


def test_a_file_that_says_it_is_too_large_is_refused(record_property):
    body = large_file()
    record_property("row", "B12")
    record_property("cases", 1)

    assert len(body) < MOST_BYTES / 10
    assert verdict(decode, body, PARQUET) == "all: sr-too-large"


def test_a_file_that_lies_about_its_size_is_refused(monkeypatch, record_property):
    body = large_file()
    honest = parquet_rows.footer_of
    monkeypatch.setattr(parquet_rows, "footer_of", lambda body: honest(body)._replace(size=0))
    record_property("row", "B12")
    record_property("cases", 1)

    with pytest.raises(Problem, match="bytes unpacked, in at most") as caught:
        decode(body, PARQUET)

    assert caught.value.code == "sr-too-large"


def test_too_many_pages_are_refused():
    chunk = footer_of(parquet()).chunks[0]

    with pytest.raises(Problem, match="10,000 pages") as caught:
        require_small_pages(parquet(), [chunk] * MOST_PAGES)

    assert caught.value.code == "sr-too-large"


def test_texts_as_differences_are_refused():
    body = parquet(use_dictionary=False, column_encoding={"sensor": "DELTA_BYTE_ARRAY"})

    with pytest.raises(Problem, match="DELTA_BYTE_ARRAY"):
        decode(body, PARQUET)


def test_a_dictionary_of_more_texts_than_rows_is_refused(monkeypatch):
    monkeypatch.setattr(parquet_pages, "MOST_ROWS", 1)

    with pytest.raises(Problem, match="rows"):
        decode(parquet(), PARQUET)


def test_a_long_text_that_is_there_many_times_is_kept_once(record_property):
    texts = pa.DictionaryArray.from_arrays(np.zeros(MOST_ROWS, np.int32), ["a" * 10**4])
    body = of_sensors(texts, store_schema=False)
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    record_property("row", "B12")
    record_property("cases", 1)

    batch = decode(body, PARQUET)

    assert {refusal.code for refusal in batch.refused} == {"sr-bad-name"}
    assert len(batch.refused) == MOST_ROWS
    # All of them would take 2 GB.
    assert pool.max_memory() - before < MOST_BYTES


@pytest.mark.parametrize("field", ["rows", "groups", "columns", "path", "values", "offset"])
def test_a_footer_that_contradicts_itself_is_refused(field, monkeypatch):
    changes = {
        "rows": lambda footer: footer.update({3: 3}),
        "groups": lambda footer: footer[4].clear(),
        "columns": lambda footer: footer[4][0][1].pop(),
        "path": lambda footer: footer[4][0][1][0][3].update({3: [b"time"]}),
        "values": lambda footer: footer[4][0][1][0][3].update({5: 3}),
        "offset": lambda footer: footer[4][0][1][0][3].update({9: 10**6}),
    }
    whole = ThriftReader.structure

    def changed(self, depth=0):
        footer = whole(self, depth)
        if depth == 0:
            changes[field](footer)
        return footer

    monkeypatch.setattr(ThriftReader, "structure", changed)

    with pytest.raises(ValueError, match=r"rows|columns|value for each|outside"):
        footer_of(parquet())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x15",
        b"\x1c" * 40,
        b"\x15" + b"\xff" * 11,
        b"\x1b\x00",
        b"\x18\x7f",
        b"\x19\xfc\xff\x7f",
    ],
)
def test_bytes_that_are_no_structure_are_refused(data):
    with pytest.raises(ThriftError, match=r"bytes|nested|kind"):
        ThriftReader(data).structure()


def test_without_pyarrow_the_type_is_not_supported(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(parquet_rows, "import_module", missing)

    assert verdict(decode, b"", PARQUET) == "all: sr-unsupported-type"
