"""Sensors a page at a time, in an order that the client chooses."""

from __future__ import annotations

import struct
from asyncio import to_thread
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import ParamSpec, TypeVar

from streamridge.service.board import Board, Place

# A page begins after a cursor: the sort key of the last sensor before it, and its name.
CURSOR = r"^[0-9a-f]{16}\.[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
# For so many seconds an order is good enough: to sort all sensors for every page takes long.
GOOD_FOR = 2.0
# So many sensors take a few milliseconds; for more of them, nobody else should have to wait.
FEW = 500
MASK, SIGN = (1 << 64) - 1, 1 << 63

KEYS: dict[str, Callable[[Place], float | None]] = {
    "id": lambda place: None,
    "error": lambda place: place.standing.scores.error,
    "error_ratio": lambda place: place.standing.scores.ratio,
    "newest": lambda place: float(place.standing.newest),
    "outside": lambda place: place.standing.scores.outside if place.standing.scores.count else None,
}
SORTS = ("id", *(f"{sign}{name}" for name in list(KEYS)[1:] for sign in ("-", "")))

Key = tuple[int, str]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """Some sensors, the cursor of the next ones if there are any, and how many there are in all."""

    places: list[Place]
    cursor: str | None
    total: int


class Listing:
    """The orders of all sensors.

    Parameters
    ----------
    board
        Where they stand.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._orders: dict[str, tuple[float, list[Key], list[Place]]] = {}

    async def page(
        self, sort: str, wanted: Callable[[Place], bool], cursor: str | None, limit: int
    ) -> Page:
        """Return the sensors that are wanted, so many of them after a cursor.

        Where there are many, other requests are answered meanwhile.
        """
        return await beside(len(self._board.places), self._page, sort, wanted, cursor, limit)

    def _page(
        self, sort: str, wanted: Callable[[Place], bool], cursor: str | None, limit: int
    ) -> Page:
        keys, places = self._ordered(sort)
        start = 0 if cursor is None else bisect_right(keys, _key_of(cursor))
        before = sum(map(wanted, places[:start]))
        found = [(key, place) for key, place in _after(start, keys, places) if wanted(place)]
        more = len(found) > limit
        shown = found[:limit]
        last = _cursor_of(shown[-1][0]) if more else None
        return Page([place for _, place in shown], last, before + len(found))

    def _ordered(self, sort: str) -> tuple[list[Key], list[Place]]:
        made, keys, places = self._orders.get(sort, (0.0, [], []))
        if len(places) != len(self._board.places) or monotonic() - made > GOOD_FOR:
            pairs = sorted(
                [(_key(place, sort), place) for place in list(self._board.places.values())],
                key=lambda pair: pair[0],
            )
            keys, places = [key for key, _ in pairs], [place for _, place in pairs]
            self._orders[sort] = monotonic(), keys, places
        return keys, places


async def beside(
    count: int, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
) -> T:
    """Return what a function returns; if it works on many things, in a thread of its own."""
    if count <= FEW:
        return function(*arguments, **options)
    return await to_thread(function, *arguments, **options)


def _after(start: int, keys: list[Key], places: list[Place]) -> Iterable[tuple[Key, Place]]:
    return zip(keys[start:], places[start:], strict=True)


def _key(place: Place, sort: str) -> Key:
    number = KEYS[sort.removeprefix("-")](place)
    return ordinal(number, descending=sort.startswith("-")), place.sensor.name


def ordinal(number: float | None, *, descending: bool = False) -> int:
    """Return a whole number of 64 bits that sorts as a number does; None comes last.

    Examples
    --------
    >>> sorted([None, 1.5, -2.0, 0.0], key=ordinal)
    [-2.0, 0.0, 1.5, None]
    """
    if number is None:
        return MASK
    (bits,) = struct.unpack(">Q", struct.pack(">d", number))
    rising: int = bits ^ (MASK if bits & SIGN else SIGN)
    return MASK ^ rising if descending else rising


def _cursor_of(key: Key) -> str:
    return f"{key[0]:016x}.{key[1]}"


def _key_of(cursor: str) -> Key:
    number, _, name = cursor.partition(".")
    return int(number, 16), name
