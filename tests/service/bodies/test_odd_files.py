"""Odd files are read as they were meant, or refused with line and column."""

import random

import pytest

from streamridge_service.bodies.decoding import decode
from streamridge_service.problems import Problem
from tests.support.service.odd_files import FILES
from tests.support.service.request_bodies import outcome

# Bytes that mean something in one of the formats.
SPECIAL = b'\x00\xff\x80"\\,;{}[]:\n\r\te+-.0 9='


def found(body, content_type):
    """Return what became of a file, as the table writes it."""
    try:
        batch = decode(body, content_type)
    except Problem as problem:
        return problem.code
    taken = [(row.line, row.value) for row in batch.rows]
    refused = [(each.line, each.code, each.column) for each in batch.refused]
    return sorted(taken + refused, key=lambda each: each[0])


def mutated(body, rng):
    """Return a file in which some bytes were changed, cut out or doubled."""
    changed = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            changed[place : place + 1] = bytes([rng.choice(SPECIAL)])
        elif kind == 1:
            changed[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 2:
            del changed[place : place + rng.randint(1, 40)]
        else:
            changed[place:place] = changed[place : place + rng.randint(1, 40)]
    return bytes(changed)


@pytest.mark.parametrize(
    ("content_type", "body", "right"), [pytest.param(*case, id=name) for name, *case in FILES]
)
def test_an_odd_file_is_read_or_refused_with_its_place(content_type, body, right, record_property):
    record_property("row", "B14")
    record_property("cases", 1)

    assert found(body, content_type) == right


def test_there_are_at_least_sixty_files():
    assert len(FILES) >= 60


@pytest.mark.parametrize(
    "seed", [pytest.param(0), *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))]
)
def test_a_mutated_file_gives_a_batch_or_a_problem(seed, record_property):
    rng = random.Random(seed)
    cases = 250
    record_property("row", "B14")
    record_property("cases", cases)

    for _ in range(cases):
        name, content_type, body, _ = rng.choice(FILES)
        file = mutated(body, rng)

        assert outcome(lambda: decode(file, content_type)) is not None, (seed, name, file)  # noqa: B023
