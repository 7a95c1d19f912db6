"""What became of a body, in words short enough for a table."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from streamridge.service.problems import CATALOGUE, Problem
from streamridge.service.rows import MOST_ROWS, Batch

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
PARQUET = "application/vnd.apache.parquet"
TIME = "2026-06-13T08:15:00Z"
MOMENT = 1_781_338_500_000_000


def verdict(decoder, body, content_type):
    """Return "taken", the codes of the refused rows, or the code of the whole request."""
    try:
        batch = decoder(body, content_type)
    except Problem as problem:
        return f"all: {problem.members()['code']}"
    return " ".join(refusal.code for refusal in batch.refused) or "taken"


def outcome(call):
    """Return the batch or the problem of a call; nothing else may come of it."""
    try:
        batch = call()
    except Problem as problem:
        json.dumps(problem.members()).encode()
        return problem
    assert_sound(batch)
    return batch


def assert_sound(batch):
    """Assert what holds for every batch, whatever was sent."""
    assert isinstance(batch, Batch)
    assert len(batch.rows) + len(batch.refused) <= MOST_ROWS
    for row in batch.rows:
        assert row.sensor.isascii()
        assert 0 < len(row.sensor) <= 64
        assert 1800 <= datetime.fromtimestamp(row.time // 10**6, UTC).year <= 2500
        assert row.value is None or abs(row.value) <= 1e6
    for refusal in batch.refused:
        assert refusal.line >= 1
        assert refusal.code in CATALOGUE
        json.dumps(refusal.members(), ensure_ascii=False).encode()


def reading(sensor='"a"', time=f'"{TIME}"', value="1"):
    """Return a reading in JSON of fields that are written as given."""
    return f'{{"sensor": {sensor}, "time": {time}, "value": {value}}}'.encode()


def parquet(sensor=("a", "b"), time=(MOMENT, MOMENT), value=(1.0, None), kinds=(), **options):
    """Return a Parquet file of three columns; `kinds` are types by name."""
    kinds = {"time": pa.timestamp("us", "UTC")} | dict(kinds)
    columns = {"sensor": sensor, "time": time, "value": value}
    table = pa.table({name: pa.array(each, kinds.get(name)) for name, each in columns.items()})
    return parquet_of(table, **options)


def parquet_of(table, **options):
    """Return a Parquet file of a table."""
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()
