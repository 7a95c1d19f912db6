"""Tables fit the terminal, and standard output may be closed at any time."""

import os
import signal
import subprocess
import sys

import pytest

import streamridge_command
from streamridge import Forecaster
from streamridge.cli import main
from streamridge.cli.terminal import table_text
from tests.support.hostile_files import column


@pytest.mark.parametrize("width", [40, 60, 80, 110])
def test_numbers_are_whole_and_names_complete_at_any_width(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    names = [f"motorway-A{i}-northbound-carriageway-exit-7" for i in range(10, 30)]
    numbers = {f"figure {i}": ["123456.789"] * 20 for i in range(9)}

    text = table_text({"sensor": names, **numbers}, names=("sensor",))

    table, _, note = text.partition("Columns omitted")
    head, _, *lines = table.splitlines()
    assert max(map(len, text.splitlines())) <= width
    assert "".join(line.split("  ")[0].strip() for line in lines) == "".join(names)
    omitted = [heading for heading in numbers if heading not in head]
    assert " ".join(note.split()) == (
        f"because the terminal is too narrow: {', '.join(omitted)}. --json shows all."
    )
    rows = [line.split()[1:] for line in lines if "123456.789" in line]
    assert len(rows) == 20
    assert {cell for row in rows for cell in row} == {"123456.789"}
    assert {len(row) for row in rows} == {9 - len(omitted)}


def test_columns_are_omitted_from_the_last_on(monkeypatch):
    columns = {"sensor": ["a"], "RMSE": ["12.34"], "scored": ["96"], "missing": ["0"]}
    texts = []
    for width in (80, 25, 14):
        monkeypatch.setenv("COLUMNS", str(width))
        texts.append(table_text(columns, names=("sensor",)))

    assert "omitted" not in texts[0]
    assert "too narrow: missing." in " ".join(texts[1].split())
    assert "too narrow: scored, missing." in " ".join(texts[2].split())


def test_a_table_in_a_pipe_is_as_wide_as_it_needs_to_be(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    columns = {"sensor": ["a" * 200], **{f"figure {i}": ["1.5"] for i in range(30)}}

    head, _, row = table_text(columns, names=("sensor",)).splitlines()

    assert "figure 29" in head
    assert row.split() == ["a" * 200, *["1.5"] * 30]


def test_a_name_with_square_brackets_is_not_markup():
    assert "[bold]a[/bold] :smile:" in table_text(
        {"sensor": ["[bold]a[/bold] :smile:"], "RMSE": ["1"]}, names=("sensor",)
    )


LINE = "error: standard output must be writable, got: {}.\n"
FULL = "No space left on device"
QUICK = ["replay", "flow.csv", "--method", "last", "--warmup", "0", "--quiet"]
PRINTING = {
    "a table": QUICK,
    "JSON": [*QUICK, "--json"],
    "predictions": [*QUICK, "--predictions", "-"],
    "a file and a table": [*QUICK, "--predictions", "p.csv"],
    "an estimate": [*QUICK, "--dry-run"],
    "a forecast": ["forecast", "a.sr", "--quiet"],
    "a forecast in JSON": ["forecast", "a.sr", "--quiet", "--json"],
    "a forecaster": ["inspect", "a.sr"],
    "the version": ["--version"],
    "the commands": ["--help"],
    "the flags of a command": ["replay", "--help"],
    "tokens": ["token", "--help"],
}


@pytest.fixture
def outcome(tmp_path, monkeypatch):
    """Return a function that runs the command on given streams; it returns its code and errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.csv").write_text(column(*range(3000)))  # more than a buffer holds
    forecaster = Forecaster("1h", sensor="a")
    forecaster.observe("2021-06-13T00:00", 5.0)
    forecaster.save("a.sr")

    def outcome_of(arguments, output, messages="errors"):
        monkeypatch.setattr(sys, "argv", ["streamridge", *arguments])
        monkeypatch.setattr(sys, "stdout", output)
        with open(messages, "w") as errors, monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", errors)
            with pytest.raises(SystemExit) as ended:
                main.run()
            sys.stderr.flush()
        return ended.value.code, (tmp_path / "errors").read_text() if messages == "errors" else ""

    return outcome_of


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("arguments", PRINTING.values(), ids=PRINTING)
def test_a_full_disk_under_standard_output_is_an_error_of_one_line(arguments, outcome):
    with open("/dev/full", "w") as full:
        code, errors = outcome(arguments, full)

    assert code == 3
    assert errors.endswith(LINE.format(FULL))
    assert errors.count("\n") == 1


@pytest.mark.parametrize("arguments", [QUICK, [*QUICK, "--json"], ["inspect", "a.sr"], ["--help"]])
def test_a_closed_standard_output_is_an_error_of_one_line(arguments, outcome):
    assert outcome(arguments, None) == (3, LINE.format("Bad file descriptor"))


@pytest.mark.parametrize("flags", [[], ["--json"], ["--predictions", "-"]])
def test_a_reader_that_leaves_early_is_no_error(flags, outcome):
    reader, writer = os.pipe()
    os.close(reader)

    with open(writer, "w") as pipe:
        assert outcome([*QUICK, *flags], pipe) == (0, "")


def test_a_closed_standard_input_is_named(outcome, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", None)

    with open(tmp_path / "output", "w") as output:
        code, errors = outcome(["replay", "-"], output)

    assert (code, errors) == (2, "error: standard input must be open, got a closed one.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_messages_that_cannot_be_written_change_nothing(outcome, tmp_path):
    with open(tmp_path / "output", "w") as output:
        code, _ = outcome(QUICK[:-1], output, "/dev/full")

    assert code == 0
    assert "RMSE" in (tmp_path / "output").read_text()


DURING_IMPORTS = """
class Press:
    def find_spec(*_):
        signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Press)
"""
WHILE_COMMANDS_ARE_MADE = """
import streamridge.cli.main
def pressed(**_):
    signal.raise_signal(signal.SIGINT)
streamridge.cli.main.app = pressed
"""


@pytest.mark.parametrize("moment", [DURING_IMPORTS, WHILE_COMMANDS_ARE_MADE])
def test_ctrl_c_before_a_command_begins_is_one_line(moment):
    program = f"import signal, sys, streamridge_command\n{moment}\nstreamridge_command.main()"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "Stopped early.\n")


def test_ctrl_c_works_as_usual_once_the_command_is_imported(monkeypatch):
    seen, usual = [], signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(main, "run", lambda: seen.append(signal.getsignal(signal.SIGINT)))

    streamridge_command.main()
    afterwards = signal.signal(signal.SIGINT, usual)

    assert seen == [usual] == [signal.default_int_handler]
    assert afterwards is streamridge_command.stop
