"""A file name belongs to one sensor for good, on every file system."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge.files.written_files import LONGEST, RESERVED, file_stem

NAMES = st.text(max_size=40) | st.text("aA~%-. _1", max_size=8)
LONG = st.text(min_size=60, max_size=300)


@given(NAMES | LONG, NAMES | LONG)
def test_two_names_never_share_a_file_even_if_capitals_do_not_count(one, other):
    assert (file_stem(one).lower() == file_stem(other).lower()) == (one == other)


@given(st.text("aA1", min_size=1, max_size=6), st.text("aA1", min_size=1, max_size=6))
def test_capitals_alone_make_another_file(one, other):
    assert (file_stem(one).lower() == file_stem(other).lower()) == (one == other)


@given(NAMES | LONG)
def test_a_file_name_is_safe_on_every_system(name):
    stem = file_stem(name)

    assert re.fullmatch(r"[A-Za-z0-9%_][A-Za-z0-9._+%~-]*|\+[A-Za-z0-9._+%~-]*", stem)
    assert len(stem) <= LONGEST
    assert not RESERVED.fullmatch(stem)


@given(st.text(max_size=11))
def test_a_name_can_be_read_back_from_its_file(name):
    stem = file_stem(name)

    assert unquote("" if stem == "%" else stem.partition("~")[0]) == name


@pytest.mark.parametrize("name", ["ramp-3", "s15_1.up", "mainline-1", "ramp-ohl+"])
def test_a_plain_name_stays(name):
    assert file_stem(name) == name
