"""A file layer for SQLite that notes what it is asked to do, and can fail or forget.

`disk_after` makes the files that a loss of power leaves: what was synced, and of the rest nothing,
or some.
"""

# ruff: noqa: N802 - SQLite names these functions

from contextlib import contextmanager
from pathlib import Path

import apsw

SYSTEM = apsw.vfs_names()[0]


class Journal:
    """The calls of a file layer in order, and the call that fails.

    Parameters
    ----------
    fail
        Takes a call's name and number, and returns the code of an error, or zero.
    """

    def __init__(self, fail=lambda call, number: 0):
        self.calls = []
        self._fail = fail
        self._numbers = {}

    def note(self, call, *details):
        number = self._numbers[call] = self._numbers.get(call, 0) + 1
        code = self._fail(call, number)
        if code:
            raise apsw.exception_for(code)
        self.calls.append((call, *details))

    def count(self, call):
        return self._numbers.get(call, 0)


class NotedFile(apsw.VFSFile):
    def __init__(self, vfs, name, flags, journal):
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._file, self._journal = Path(path).name, journal
        super().__init__(vfs, name, flags)

    def xWrite(self, data, offset):
        self._journal.note("write", self._file, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, size):
        self._journal.note("truncate", self._file, size)
        super().xTruncate(size)

    def xSync(self, flags):
        self._journal.note("sync", self._file)
        super().xSync(flags)

    def xLock(self, level):
        try:
            super().xLock(level)
        except apsw.IOError:  # a reader may not lock others out, which SQLite only tries
            raise apsw.BusyError from None

    def excepthook(self, *error):
        """Print nothing: SQLite reports the error."""


class NotedFiles(apsw.VFS):
    def __init__(self, journal):
        self._journal = journal
        super().__init__("noted", SYSTEM, makedefault=True)

    def xOpen(self, name, flags):
        return NotedFile(SYSTEM, name, flags, self._journal)

    def xDelete(self, path, sync_folder):
        if Path(path).exists():
            self._journal.note("delete", Path(path).name)
            super().xDelete(path, sync_folder)


@contextmanager
def noted(journal):
    """Let every database be reached by a noted file layer."""
    files = NotedFiles(journal)
    try:
        yield
    finally:
        files.unregister()


def disk_after(calls, folder, keep=None):
    """Write the files that are left when power is lost after some calls.

    Parameters
    ----------
    calls
        The calls of the file layer, in order.
    folder
        The folder of the files.
    keep
        A random generator, by which half of what was not synced survives; without one nothing.
    """
    synced, pending = {}, {}
    for call, file, *details in calls:
        if call == "sync":
            apply(synced.setdefault(file, bytearray()), pending.pop(file, []))
        elif call == "delete":
            synced.pop(file, None)
            pending.pop(file, None)
        elif call in ("write", "truncate"):
            pending.setdefault(file, []).append((call, details))
    for file, changes in pending.items():
        survive = [change for change in changes if keep is not None and keep.random() < 0.5]
        apply(synced.setdefault(file, bytearray()), survive)
    for file, content in synced.items():
        (folder / file).write_bytes(content)


def apply(content, changes):
    """Change the content of a file as calls asked."""
    for call, details in changes:
        if call == "truncate":
            del content[details[0] :]
        else:
            offset, data = details
            content.extend(bytes(max(0, offset - len(content))))
            content[offset : offset + len(data)] = data
