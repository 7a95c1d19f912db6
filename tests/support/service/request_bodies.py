"""Builders of request bodies, and short descriptions of their results."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from streamridge_service.http.responses import problem_answer
from streamridge_service.limits import LARGEST, MOST_ROWS
from streamridge_service.problems import CATALOGUE, Problem
from streamridge_service.rows import Batch

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
PARQUET = "application/vnd.apache.parquet"
TIME = "2026-06-13T08:15:00Z"
MOMENT = 1_781_338_500_000_000
# The first bytes of a Parquet file.
PARQUET_FILE = b"PAR1\x15\x04\x15\x00"


def result_code(decoder, body, content_type):
    """Return "taken", the codes of the refused rows, or the code of the whole request."""
    try:
        batch = decoder(body, content_type)
    except Problem as problem:
        return f"all: {problem.code}"
    return " ".join(refusal.code for refusal in batch.refused) or "taken"


def outcome(call):
    """Return the batch or the problem of a call; it must not raise anything else."""
    try:
        batch = call()
    except Problem as problem:
        msgspec.json.encode(problem_answer(problem))
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
        assert 1000 <= datetime.fromtimestamp(row.time // 10**6, UTC).year <= 2500
        assert row.value is None or abs(row.value) <= LARGEST
    for refusal in batch.refused:
        assert refusal.line >= 1
        assert refusal.code in CATALOGUE
        msgspec.json.encode(refusal)


def reading(sensor='"a"', time=f'"{TIME}"', value="1"):
    """Return a reading in JSON of fields that are written as given."""
    return f'{{"sensor": {sensor}, "time": {time}, "value": {value}}}'.encode()
