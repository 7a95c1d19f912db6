"""How messages show what was got."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 60
MOST = 10


def shown(value: object) -> str:
    """Return a value as Python writes it, cut when it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def listed(names: Iterable[str]) -> str:
    """Return up to ten names, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed("abcdefghijkl")
    "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j' and 2 more"
    """
    every = [shown(name) for name in names]
    more = f" and {len(every) - MOST} more" if len(every) > MOST else ""
    return (", ".join(every[:MOST]) or "none") + more
