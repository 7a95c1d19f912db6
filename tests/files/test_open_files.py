import gzip
import io
import sys

import pytest

from streamridge import InvalidInputError
from streamridge.files import open_files
from tests.support.input_files import read_readings, written

HEAD = b"time,a\n2021-06-13,1\n"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(open_files, "ALWAYS_ALLOWED", 100_000)
    monkeypatch.setattr(open_files, "LONGEST_LINE", 50_000)


@pytest.mark.parametrize("stream", [False, True], ids=["file", "standard input"])
def test_a_bomb_is_refused_before_it_unpacks(stream, small, tmp_path, monkeypatch):
    path = written(gzip.compress(HEAD + b"\n" * 5_000_000), tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))

    with pytest.raises(InvalidInputError, match=r"must unpack to at most \d+ bytes, .*--largest"):
        read_readings("-" if stream else path)


def test_the_limit_of_unpacked_bytes_can_be_changed(small, tmp_path):
    path = written(gzip.compress(HEAD + b"\n" * 400_000), tmp_path)

    assert len(read_readings(path, largest="1MB")) == 1
    with pytest.raises(InvalidInputError, match="must unpack to at most 300000 bytes"):
        read_readings(path, largest="300kB")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_line_that_is_too_long_is_refused_with_its_number(pack, small, tmp_path):
    path = written(pack(HEAD + b"7" * 300_000), tmp_path)

    with pytest.raises(InvalidInputError, match="line 3 must be at most 0 MiB long"):
        read_readings(path, largest="1GB")
