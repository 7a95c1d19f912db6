"""Documents are tests: their code runs, what they name exists, and imports stay light."""

import re
import shlex
import subprocess
import sys
from contextlib import suppress
from runpy import run_path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

import streamridge
from streamridge.cli.main import app
from tests.support.paths import ROOT
from tests.support.tiers import tiered

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


BLOCKS = re.compile(r"```(python|sh)\n(.*?)```", flags=re.DOTALL)


def name_of(document):
    """Return the path of a document in the source tree."""
    return document.relative_to(ROOT).as_posix()


# `make test-adapters` runs its code, where the other libraries are installed.
OTHER_LIBRARIES = ("docs/adapters.md",)


# Tutorials and guides take a while, and a cluster is started; that they parse is checked on every
# change.
LONG = re.compile(r"docs/(engines\.md|index\.md|(tutorial|howto|explanation|coming-from)/.*)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_blocks_parse(document):
    for language, block in BLOCKS.findall(document.read_text()):
        if language == "python":
            compile(block, document.name, "exec")
        else:
            for words in commands_of(block):
                parse(words)


@pytest.fixture
def figures(request):
    """Write blank pictures in the quick suite, as commands do there; the whole suite draws them."""
    if "not slow" in request.config.option.markexpr:
        request.getfixturevalue("quick_figures")


@pytest.mark.parametrize(
    "document",
    tiered(
        [path for path in DOCUMENTS if name_of(path) not in OTHER_LIBRARIES],
        quick=lambda path: not LONG.fullmatch(name_of(path)),
    ),
    ids=name_of,
)
@pytest.mark.usefixtures("figures")
def test_blocks_run_in_order_in_one_folder(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for language, block in BLOCKS.findall(document.read_text()):
        if language == "python":
            exec(compile(block, document.name, "exec"), namespace)
        else:
            for words in commands_of(block):
                result = CliRunner().invoke(app, words)
                assert result.exit_code == 0, f"{words}\n{result.output}"


def commands_of(block):
    """Return the words of the lines of a block that call the command, joined where they go on."""
    lines = block.replace("\\\n", " ").splitlines()
    calls = [line for line in lines if line.startswith("streamridge ")]
    return [shlex.split(line, comments=True)[1:] for line in calls]


def recording(prefix=""):
    """Return what a page shows of the main commands, and the script that recorded it.

    The prefix PATH_ is that of a newcomer's path.
    """
    script = run_path(str(ROOT / "docs" / "record_guide.py"))
    _, begin, rest = script[f"{prefix}PAGE"].read_text().partition(script[f"{prefix}BEGIN"])
    text, end, _ = rest.partition(script[f"{prefix}END"])
    assert begin, "the page has a place for the recording"
    assert end, "the recording has an end"
    return text, script


@pytest.mark.parametrize("prefix", ["", "PATH_"])
def test_recorded_lines_fit_a_terminal(prefix):
    text, script = recording(prefix)

    assert len(text.splitlines()) > 25
    assert max(map(len, text.splitlines())) <= script["COLUMNS"]


@pytest.mark.parametrize(("prefix", "refused"), [("", 1), ("PATH_", 0)])
def test_recorded_commands_are_those_of_the_script_and_parse(prefix, refused):
    text, script = recording(prefix)

    shown = re.findall(r"^\$ ((?:.*\\\n)*.*)", text, flags=re.MULTILINE)
    assert tuple(shown) == script[f"{prefix}COMMANDS"]
    assert text.count("(exit code ") == refused
    for command in shown:
        parse(script["words_of"](command)[1:])


def parse(words):
    """Parse the words of a command as the command line does, without doing anything."""
    group = typer.main.get_command(app)
    with suppress(typer.Exit), group.make_context("streamridge", words) as context:
        name, command, rest = group.resolve_command(context, words)
        command.make_context(name, rest, parent=context)


def test_a_recorded_command_that_does_not_exist_is_noticed():
    for words in (["reply", "roads.csv"], ["replay", "roads.csv", "--sensors", "ramp-3"]):
        with pytest.raises(Exception, match="No such"):
            parse(words)


def test_a_newcomer_gets_from_an_export_to_a_picture_in_three_commands():
    text, script = recording("PATH_")

    assert len(script["PATH_COMMANDS"]) == 3
    assert "Figure: tomorrow.png" in text
    assert script["PICTURE"].read_bytes().startswith(b"\x89PNG")


def test_a_recording_is_folded_and_shortened_as_a_terminal_would():
    _, script = recording()

    assert script["folded"](["", "a" * 81]) == ["", "a" * 80, "a"]
    lines = [str(number) for number in range(100)]
    assert script["shortened"](lines)[17:20] == ["17", "(76 lines more)", "94"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_to_files_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_equation_names_a_function_that_exists():
    table = (ROOT / "docs" / "notation.md").read_text()
    named = re.findall(r"`((?:\w+/)*\w+\.py)`[^|]*\|[^|]*?`(\w+(?:\.\w+)?)`", table)

    assert len(named) >= 15
    for file, name in named:
        source = (ROOT / "src" / "streamridge" / file).read_text()
        assert re.search(rf"(def|class) {name.rpartition('.')[2]}\b", source), f"{file}: {name}"


def test_every_public_name_has_a_docstring_and_is_in_the_list():
    for name in streamridge.__all__:
        assert getattr(streamridge, name).__doc__, name
        is_module = isinstance(getattr(streamridge, name), ModuleType)
        assert is_module == (name in ("datasets", "tuners")), name


@pytest.mark.parametrize("package", ["streamridge", "streamridge_service"])
def test_every_package_is_on_the_map(package):
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    parts = [path.stem for path in (ROOT / "src" / package).iterdir() if path.suffix in ("", ".py")]

    missing = [part for part in parts if f"`{part}`" not in architecture]
    assert set(missing) <= {"__init__", "__main__", "__pycache__", "py", "page"}


def test_the_map_fits_a_page():
    lines = (ROOT / "ARCHITECTURE.md").read_text().splitlines()

    assert max(map(len, lines)) <= 120


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys; from streamridge import *; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()

    heavy = {"matplotlib", "pandas", "polars", "scipy.signal", "scipy.stats", "typer", "rich"}
    assert not heavy & set(loaded)
