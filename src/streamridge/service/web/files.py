"""The files of the page, all of them known before the first is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
FOLDERS = ("streamridge.service.page", "streamridge.service.web.reference")


@dataclass(frozen=True)
class PageFile:
    """A file as it is sent."""

    content: bytes
    media_type: str
    tag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Return the files that may be asked for, by name; no other name is ever looked for."""
    found = {}
    for folder in FOLDERS:
        package, _, name = folder.rpartition(".")
        for each in (files(package) / name).iterdir():
            kind = TYPES.get(_suffix(each))
            if kind is not None and each.is_file():
                found[each.name] = _read(each, kind)
    return found


def _read(file: Traversable, kind: str) -> PageFile:
    content = file.read_bytes()
    return PageFile(content, kind, f'"{blake2b(content, digest_size=12).hexdigest()}"')


def _suffix(file: Traversable) -> str:
    return f".{file.name.rpartition('.')[2]}"
