"""Which SQLite libraries are safe to use."""

from __future__ import annotations

from streamridge.service.ledger.base import LibraryError

# Before these, two connections that write and fold in the log at the same instant can damage it.
# The first is on the main line; the others are branches that got the repair too.
REPAIRED = (3, 51, 3)
REPAIRED_BRANCHES = {(3, 44): 6, (3, 50): 7}


def is_safe(version: str) -> bool:
    """Return whether a version of SQLite does not damage its write-ahead log.

    Examples
    --------
    >>> is_safe("3.51.2"), is_safe("3.50.7"), is_safe("3.54.1")
    (False, True, True)
    """
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    if (major, minor) in REPAIRED_BRANCHES:
        return patch >= REPAIRED_BRANCHES[major, minor]
    return (major, minor, patch) >= REPAIRED


def require_safe(version: str) -> None:
    """Refuse a version of SQLite that can damage its write-ahead log."""
    if not is_safe(version):
        raise LibraryError(
            f"SQLite must be 3.51.3 or later, got {version}, which can damage a database that is "
            "read while it is written. Install a current apsw, which brings its own."
        )
