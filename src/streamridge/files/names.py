"""File names made from any text."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 80
# Devices on Windows, whatever comes after a dot.
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", flags=re.IGNORECASE)


class FileNames:
    """A source of file names that are safe on every system and never repeat.

    Parameters
    ----------
    taken
        Names without an ending that are in use already.

    Examples
    --------
    >>> names = FileNames()
    >>> names.take("A1/north", ".png"), names.take("a1 north", ".png"), names.take("../..", ".png")
    ('A1_north.png', 'a1_north-2.png', 'sensor.png')
    >>> names.take("NUL", ".sr"), names.take("com1.2", ".sr"), names.take("ramp-ohl+", ".sr")
    ('NUL_.sr', 'com1_.2.sr', 'ramp-ohl+.sr')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in taken}

    def take(self, text: str, ending: str) -> str:
        """Return a new name that resembles the text."""
        safe = re.sub(r"[^A-Za-z0-9._+-]+", "_", text)[:LONGEST]
        stem = safe.lstrip("._+-").rstrip("._-") or "sensor"
        stem = RESERVED.sub(r"\1_\2", stem) if RESERVED.fullmatch(stem) else stem
        name, count = stem, 1
        # To some systems, A.png and a.png are the same file.
        while name.lower() in self._taken:
            count += 1
            name = f"{stem}-{count}"
        self._taken.add(name.lower())
        return name + ending
