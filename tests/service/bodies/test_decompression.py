"""Compressed bodies are decompressed, and never exceed the limit."""

import gzip
import itertools
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from streamridge_service.bodies.decoding import MOST_PARTS, Decompressor, decompress
from streamridge_service.limits import MOST_BYTES
from streamridge_service.problems import Problem

MEGABYTE = bytes(2**20)
# The memory that a body may use: twice the limit, for the bytes as sent and decompressed.
MOST_MEMORY = 2 * MOST_BYTES
PACKERS = {
    None: bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "zstd": zstandard.compress,
}


def chunks_of(body, size):
    return [body[start : start + size] for start in range(0, len(body), size)]


def gzip_bomb():
    """Return the packed form of 1 GB of zeros: one packed megabyte, many times."""
    packer = zlib.compressobj(9, wbits=31)
    first, again = (packer.compress(MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + 1023 * again


def zstd_bomb():
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    return b"".join([*(packer.compress(MEGABYTE) for _ in range(1024)), packer.flush()])


def many_frames():
    return zstandard.compress(bytes(10**6)) * 1024


def refusal(body, encoding, size=2**16):
    with pytest.raises(Problem, match=r"must have at most|stream") as caught:
        decompress(chunks_of(body, size), encoding)
    return caught.value.code


@given(
    st.sampled_from(list(PACKERS)),
    st.lists(st.binary(), min_size=1, max_size=4),
    st.integers(1, 50),
)
def test_compressed_bodies_are_decompressed(encoding, parts, size):
    body = b"".join(map(PACKERS[encoding], parts))

    assert decompress(chunks_of(body, size), encoding) == b"".join(parts)


@pytest.mark.parametrize("encoding", ["deflate", "br", "gzip, gzip", "zstd;q=1", "\x00", "*"])
def test_an_unknown_encoding_is_refused(encoding):
    with pytest.raises(Problem, match="Content-Encoding") as caught:
        Decompressor(encoding)

    assert (caught.value.code, caught.value.status) == ("sr-unsupported-type", 415)


@pytest.mark.parametrize("encoding", [" GZip ", "ZSTD", "", "Identity"])
def test_an_encoding_is_known_however_it_is_written(encoding):
    packer = PACKERS[encoding.strip().lower() or None]

    assert decompress([packer(b"readings")], encoding) == b"readings"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_truncated_body_is_unreadable(encoding):
    packed = PACKERS[encoding](b"readings" * 100)

    for end in range(len(packed)):
        assert refusal(packed[:end], encoding) == "sr-unreadable"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize(
    "garbage", [b"\0", b"x", b"garbage after the end", b"\x1f\x8b", b"\x28\xb5"]
)
def test_garbage_after_the_end_is_unreadable(encoding, garbage):
    packed = PACKERS[encoding](b"readings" * 100)

    assert refusal(packed + garbage, encoding) == "sr-unreadable"
    assert refusal(packed + garbage, encoding, size=1) == "sr-unreadable"


@given(st.sampled_from(["gzip", "zstd"]), st.data())
def test_a_damaged_body_is_unreadable_or_itself(encoding, data):
    content = bytes(range(256)) * 4
    packed = bytearray(PACKERS[encoding](content))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))

    try:
        unpacked = decompress([bytes(packed)], encoding)
    except Problem as problem:
        unpacked = content if problem.code == "sr-unreadable" else None

    # Some bytes of the header of gzip say nothing of the content; zstandard adds no checksum.
    assert unpacked == content or encoding == "zstd"


def test_a_large_window_is_refused():
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()

    assert refusal(packer.compress(b"a") + packer.flush(), "zstd") == "sr-unreadable"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_too_many_parts_are_refused(encoding):
    assert refusal(PACKERS[encoding](b"") * (MOST_PARTS + 1), encoding) == "sr-unreadable"


@pytest.mark.parametrize(
    ("encoding", "bomb"), [("gzip", gzip_bomb), ("zstd", zstd_bomb), ("zstd", many_frames)]
)
@pytest.mark.parametrize("size", [2**16, 2**30])
def test_a_decompression_bomb_stays_within_the_memory_limit(encoding, bomb, size, record_property):
    body = bomb()
    record_property("row", "B12")
    record_property("cases", 1)

    tracemalloc.start()
    try:
        code = refusal(body, encoding, size)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(body) < 2**21
    assert code == "sr-too-large"
    assert peak < MOST_MEMORY
    record_property("peak", peak)


@pytest.mark.parametrize(
    ("encoding", "chunk", "code"),
    [
        ("identity", bytes(2**16), "sr-too-large"),
        ("gzip", gzip.compress(bytes(2**16)), "sr-too-large"),
        ("gzip", gzip.compress(b""), "sr-unreadable"),
    ],
    ids=["plain", "packed", "packed nothing"],  # gzip stores the time of compression
)
def test_an_endless_body_is_refused(encoding, chunk, code, record_property):
    record_property("row", "B12")
    record_property("cases", 1)

    with pytest.raises(Problem, match=r"must have at most|stream") as caught:
        decompress(itertools.repeat(chunk), encoding)

    assert caught.value.code == code


def test_a_body_of_64_megabytes_is_refused(record_property):
    record_property("row", "B12")
    record_property("cases", 1)

    assert refusal(bytes(64 * 2**20), None) == "sr-too-large"


def test_a_body_of_exactly_the_limit_is_accepted():
    assert len(decompress([bytes(MOST_BYTES)])) == MOST_BYTES
