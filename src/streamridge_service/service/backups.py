"""Scheduled backups: `streamridge backup` in another process, and the removal of old backups.

A backup reads and checks the whole database. In another process it does not delay requests.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

from streamridge_service.ledger.opening import is_postgres, sqlite_path
from streamridge_service.plan import SECOND, US
from streamridge_service.service.events import EventLog
from streamridge_service.service.health import Health
from streamridge_service.settings import ServiceSettings, bytes_of, duration

# Seconds after which a failed backup is tried again, at most.
RETRY_AFTER = 600.0
# How much the process of a backup yields to others.
NICENESS = 10
TIME_FORMAT = "%Y%m%dT%H%M%SZ"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BackupError(Exception):
    """A backup failed."""


class BackupFolder:
    """The backups of one database in a folder; other files are never touched.

    A name contains the identity of the database, so that several services can share a folder.
    """

    def __init__(self, folder: Path, database: str, identity: str) -> None:
        name = urlsplit(database).path if is_postgres(database) else sqlite_path(database).stem
        self._folder = folder.absolute()
        self._prefix = f"{re.sub(r'[^A-Za-z0-9_-]', '', name)}-{identity[:8]}-"
        self._pattern = re.compile(rf"{re.escape(self._prefix)}(\d{{8}}T\d{{6}}Z)\.db")

    def path_at(self, now: int) -> Path:
        """Return the file of a backup that begins now."""
        return self._folder / f"{self._prefix}{EPOCH + now * US:{TIME_FORMAT}}.db"

    def times(self) -> dict[int, Path]:
        """Return the backups by time, the oldest first."""
        found = {}
        for path in self._folder.iterdir():
            name = self._pattern.fullmatch(path.name)
            if name:
                time = datetime.strptime(name[1], TIME_FORMAT).replace(tzinfo=UTC)
                found[(time - EPOCH) // US] = path
        return dict(sorted(found.items()))

    def remove_old(self, count: int) -> None:
        """Remove all but the newest backups."""
        for path in list(self.times().values())[:-count]:
            path.unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Remove what an interrupted backup has left."""
        for path in self._folder.glob(f"{self._prefix}*.db.part*"):
            path.unlink(missing_ok=True)

    def require_space(self, needed: int) -> None:
        """Raise unless so many bytes are free."""
        free = shutil.disk_usage(self._folder).free
        if free < needed:
            raise BackupError(
                f"it needs {needed / 1e6:.0f} MB, but {free / 1e6:.0f} MB are free in its folder"
            )


class Backups:
    """Makes a backup from time to time, if there is a folder for it."""

    def __init__(
        self,
        settings: ServiceSettings,
        identity: str,
        *,
        events: EventLog,
        health: Health,
        now: Callable[[], int],
    ) -> None:
        self._settings, self._events, self._health, self._now = settings, events, health, now
        self._every = duration(settings.backup_every).total_seconds()
        self._folder: BackupFolder | None = None
        if settings.backup_folder is not None:
            folder = Path(settings.backup_folder)
            self._folder = BackupFolder(folder, settings.database, identity)
        self._due: float | None = None  # when the next backup is due; unknown at first
        self._reason = ""  # why the last backup failed
        self.last: int | None = None  # the time of the last backup
        self.completed = self.failed = 0

    @property
    def age(self) -> float | None:
        """Return the age of the last backup in seconds; None if there is none."""
        return None if self.last is None else (self._now() - self.last) / SECOND

    async def run_if_due(self) -> None:
        """Make a backup if one is due; a failure is an event and a reason, and is tried again."""
        if self._folder is None:
            return
        try:
            if self._due is None:
                self._due = await asyncio.to_thread(self._first_due, self._folder)
            if monotonic() >= self._due:
                await self._back_up(self._folder)
        except (BackupError, OSError) as error:
            self._fail(str(error))

    def _first_due(self, folder: BackupFolder) -> float:
        """Return when the first backup is due, by the age of the last one."""
        now = self._now()
        self.last = max((time for time in folder.times() if time <= now), default=None)
        wait = 0.0 if self.last is None else self._every - (now - self.last) / SECOND
        return monotonic() + max(wait, 0.0)

    async def _back_up(self, folder: BackupFolder) -> None:
        begun, now = monotonic(), self._now()
        path, needed = folder.path_at(now), self._health.disk.get("data", 0)
        await asyncio.to_thread(folder.remove_unfinished)
        folder.require_space(needed + bytes_of(self._settings.min_free))
        try:
            await _run(path, self._settings.database)
        except BaseException:
            path.unlink(missing_ok=True)  # a damaged copy must not replace a good backup
            folder.remove_unfinished()
            raise
        self.last, self._due = now, begun + self._every
        self.completed += 1
        self._reason = ""
        self._health.notes.pop("backup", None)
        self._events.record("backup", None, f"{path.name}, {path.stat().st_size / 1e6:.1f} MB")
        await asyncio.to_thread(folder.remove_old, self._settings.backup_count)

    def _fail(self, reason: str) -> None:
        self.failed += 1
        self._due = monotonic() + min(self._every, RETRY_AFTER)
        self._health.notes["backup"] = "the last backup failed"
        if reason != self._reason:
            self._reason = reason
            self._events.record("backup_failed", None, f"the backup failed: {reason}")


async def _run(path: Path, database: str) -> None:
    """Run `streamridge backup`; raise with its last message if it fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "streamridge", "backup", str(path)),
        env={**os.environ, "STREAMRIDGE_DATABASE": database},  # a password must not be an argument
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    try:
        _, messages = await process.communicate()
    finally:
        if process.returncode is None:  # the service stops
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        lines = messages.decode(errors="replace").strip().splitlines()
        raise BackupError(lines[-1].removeprefix("error: ") if lines else "it was killed")
