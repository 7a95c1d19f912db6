import gzip
import io
import sys

import pytest

from streamridge import InvalidInputError
from streamridge.files import guards
from streamridge.files.dialect import Dialect
from streamridge.files.reading import read_readings
from tests.files.writing import written

HEAD = b"time,a\n2021-06-13,1\n"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(guards, "ALWAYS_ALLOWED", 100_000)
    monkeypatch.setattr(guards, "LONGEST_LINE", 50_000)


@pytest.mark.parametrize("stream", [False, True], ids=["file", "standard input"])
def test_a_bomb_is_refused_before_it_unpacks(stream, small, tmp_path, monkeypatch):
    path = written(gzip.compress(HEAD + b"\n" * 5_000_000), tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))

    with pytest.raises(InvalidInputError, match=r"must unpack to at most \d+ bytes, .*--largest"):
        read_readings("-" if stream else path)


def test_the_cap_can_be_raised_and_lowered(small, tmp_path):
    path = written(gzip.compress(HEAD + b"\n" * 400_000), tmp_path)

    assert len(read_readings(path, largest="1MB")) == 1
    with pytest.raises(InvalidInputError, match="must unpack to at most 300000 bytes"):
        read_readings(path, largest="300kB")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_line_without_end_is_refused_with_its_number(pack, small, tmp_path):
    path = written(pack(HEAD + b"7" * 300_000), tmp_path)

    with pytest.raises(InvalidInputError, match="line 3 must be at most 0 MiB long"):
        read_readings(path, largest="1GB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"largest": "much"}, "largest must be a size such as 500MB or 20GB, got 'much'"),
        ({"decimal": ";"}, "decimal must be . or , got ';'"),
        ({"encoding": "utf-9"}, "encoding must be one that Python knows, .* got 'utf-9'"),
        ({"encoding": "rot13"}, "encoding must be one that Python knows"),
        ({"date_format": "yyyy-mm-dd"}, "date_format must be a pattern with a year, such as"),
        ({"date_format": "%H:%M"}, "date_format must be a pattern with a year"),
        ({"date_format": "%Q%Y"}, "date_format must be a pattern with a year"),
    ],
)
def test_what_is_said_about_a_source_is_checked(options, message):
    with pytest.raises(InvalidInputError, match=message):
        Dialect(**options)
