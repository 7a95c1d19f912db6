"""The documentation site: its navigation, its reference and its gallery are complete."""

import re
from runpy import run_path

import pytest
import typer

import streamridge
from streamridge.cli.main import app
from tests.support.paths import ROOT
from tests.support.tiers import tiered

DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# The quick suite runs the cheapest, which use the parts of a forecaster directly.
CHEAP = ("hypergradient", "kernels")


@pytest.fixture(scope="module")
def check_site():
    return run_path(str(DOCS / "check_site.py"))


def test_every_page_is_in_the_navigation_once_and_begins_with_what_the_reader_gets():
    llms = run_path(str(DOCS / "write_llms.py"))["llms_text"]()

    named = re.findall(r"^- \[.+?\]\((.+?)\.html\): .{20}", llms, flags=re.MULTILINE)
    pages = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(named) == sorted(pages)


def test_every_public_name_is_in_the_reference_once():
    texts = [path.read_text() for path in (DOCS / "reference").glob("*.md")]

    named = re.findall(r"^::: streamridge\.(\w+)$", "\n".join(texts), flags=re.MULTILINE)
    assert sorted(named) == sorted(streamridge.__all__), "add `::: streamridge.NAME` to a page"


def test_every_command_is_in_the_reference_with_its_help(tmp_path):
    script = run_path(str(DOCS / "write_help.py"))
    commands = [*script["commands"](typer.main.get_command(app))]
    page = (DOCS / "reference" / "commands.md").read_text()

    shown = re.findall(r'^## (.+)\n\n```text\n--8<-- "build/help/(.+)\.txt"', page, re.MULTILINE)
    assert shown == [(" ".join(words), "-".join(words)) for words in commands]
    assert script["help_of"](("token", "list")).startswith("Usage: streamridge token list")


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_in_the_gallery_with_its_figure_and_its_code(script):
    gallery = (DOCS / "gallery.md").read_text()
    title, _, description = script.read_text().split('"""')[1].partition("\n\n")

    assert f"## {title.rstrip('.')}\n\n{description.strip()}\n\n![" in gallery
    assert f"](images/gallery/{script.stem}.png)" in gallery
    assert f'--8<-- "examples/{script.name}"' in gallery
    assert (DOCS / "images" / "gallery" / f"{script.stem}.png").stat().st_size < 200_000


@pytest.mark.parametrize(
    "script", tiered(EXAMPLES, quick=lambda path: path.stem in CHEAP), ids=lambda path: path.stem
)
def test_an_example_draws_its_figure(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")

    run_path(str(script))

    assert [path.name for path in tmp_path.iterdir()] == [f"{script.stem}.png"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="b.html#here">', None),
        ('<a href="https://example.org/">', None),
        ('<img src="data:image/png;base64,">', None),
        ('<a href="c.html">', "a.html: c.html leads nowhere"),
        ('<a href="b.html#there">', "a.html: b.html#there leads nowhere"),
        ('<img src="figure.png">', "a.html: figure.png leads nowhere"),
        (
            '<script src="https://cdn.example.org/x.js">',
            "a.html: loads https://cdn.example.org/x.js from outside",
        ),
        (
            '<link rel="stylesheet" href="//fonts.example.org/css">',
            "a.html: loads //fonts.example.org/css from outside",
        ),
    ],
)
def test_a_broken_link_and_a_file_from_outside_are_noticed(check_site, tmp_path, body, problem):
    (tmp_path / "a.html").write_text(body)
    (tmp_path / "b.html").write_text('<h2 id="here">')

    assert [*check_site["problems"](tmp_path)] == ([] if problem is None else [problem])


def test_a_font_from_outside_is_noticed(check_site, tmp_path):
    (tmp_path / "site.css").write_text("@font-face { src: url(https://fonts.example.org/a.woff2) }")

    assert [*check_site["problems"](tmp_path)] == [
        "site.css: loads https://fonts.example.org/a.woff2 from outside"
    ]
