"""Writes llms.txt: every page of the site with its first sentences, for language models."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def llms_text() -> str:
    """Return the text: a heading for each tab of the site, and a line for each of its pages."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    parts = [f"# {settings['site_name']}", f"> {settings['site_description']}"]
    for entry in settings["nav"]:
        [(title, content)] = entry.items()
        lines = [line_of(page) for page in pages_of(content)]
        parts.append("\n".join([f"## {title}", "", *lines]))
    return "\n\n".join(parts) + "\n"


def pages_of(entry: Any) -> Iterator[str]:
    """Yield the pages of an entry of the navigation, in order."""
    if isinstance(entry, str):
        yield entry
    else:
        for inner in entry.values() if isinstance(entry, dict) else entry:
            yield from pages_of(inner)


def line_of(page: str) -> str:
    """Return a link to a page with its first paragraph."""
    text = (ROOT / "docs" / page).read_text()
    found = re.search(r"^# ([^\n]+)\n\n(.+?)\n\n", text, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{page} must begin with a title and a paragraph.")
    lead = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(found[2].split()))
    return f"- [{found[1]}]({page.removesuffix('.md')}.html): {lead}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(llms_text())
