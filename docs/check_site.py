"""Checks the built site: links and anchors lead somewhere, and nothing is loaded from outside."""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that a browser follows by itself, and links that a reader follows.
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src")}
FOLLOWED = {("a", "href")}
NOT_LOADED = {"canonical", "alternate", "next", "prev"}


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.followed: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect the targets and the anchors of a tag."""
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        for name, value in given.items():
            if (tag, name) in FOLLOWED:
                self.followed.append(value)
            elif (tag, name) in LOADED and given.get("rel") not in NOT_LOADED:
                self.loaded.append(value)


def problems(site: Path) -> Iterator[str]:
    """Yield a line for each broken link, and for each file that a page loads from outside."""
    read = cache(Page)
    for path in sorted(site.rglob("*.html")):
        page, name = read(path), path.relative_to(site)
        for target in page.loaded:
            if is_outside(target):
                yield f"{name}: loads {target} from outside"
        for target in (*page.loaded, *page.followed):
            if not is_outside(target) and not leads_somewhere(site, path, target, read):
                yield f"{name}: {target} leads nowhere"
    for path in sorted(site.rglob("*.css")):
        for target in re.findall(
            r"""(?:url\(|@import\s*)["']?(https?:[^"')]+|//[^"')]+)""", path.read_text()
        ):
            yield f"{path.relative_to(site)}: loads {target} from outside"


def is_outside(target: str) -> bool:
    """Return whether a link leads to another site."""
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme not in ("", "data", "javascript")


def leads_somewhere(site: Path, page: Path, target: str, read: Callable[[Path], Page]) -> bool:
    """Return whether the file of a link exists, and has its anchor."""
    parts = urlsplit(target)
    if parts.scheme:
        return True
    place = unquote(parts.path)
    file = (
        (site / place.lstrip("/") if place.startswith("/") else page.parent / place)
        if place
        else page
    )
    if file.is_dir():
        file = file / "index.html"
    if not file.is_file():
        return False
    anchor = unquote(parts.fragment)
    return (
        not anchor
        or file.suffix != ".html"
        or anchor.startswith("__")
        or anchor in read(file).anchors
    )


def main(site: Path) -> None:
    """Print the problems of a site, and fail if there are any."""
    found = list(problems(site))
    if found:
        print(*found, sep="\n")
        sys.exit(f"{len(found)} problems in {site}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
