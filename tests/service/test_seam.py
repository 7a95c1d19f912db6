"""The service uses public names of the library only, and costs other commands nothing."""

import ast
import subprocess
import sys

import pytest

import streamridge
from tests.support.paths import ROOT
from tests.support.tiers import tiered

SOURCES = sorted((ROOT / "src" / "streamridge_service").rglob("*.py"))
PUBLIC = {*streamridge.__all__, "__version__"}
HEAVY = (
    "apsw",
    "litestar",
    "msgspec",
    "pydantic_settings",
    "psycopg",
    "structlog",
    "uvicorn",
    "zstandard",
)


def imported_names(path):
    """Return the modules and names that a file imports from the library."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: "/".join(path.parts[-2:]))
def test_only_public_names_are_imported(path):
    for module, name in imported_names(path):
        if module == "streamridge" or module.startswith("streamridge."):
            assert module in ("streamridge", "streamridge.errors"), module
            assert module != "streamridge" or name is None or name in PUBLIC, name


@pytest.mark.parametrize(
    "arguments",
    tiered(
        [["--help"], ["feed", "--help"], ["verify", "--help"]], quick=lambda words: len(words) == 1
    ),
)
def test_help_does_not_import_the_packages_of_the_service(arguments):
    program = f"""
import sys
from streamridge.cli.main import app
try:
    app({arguments!r})
except SystemExit:
    pass
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stderr.strip() == "[]"
