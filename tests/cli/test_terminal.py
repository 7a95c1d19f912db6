"""Tables fit the terminal, and standard output may be closed at any time."""

import io

import pytest

from streamridge.cli import terminal
from streamridge.cli.terminal import StandardOutput, table_text


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


class Broken(io.StringIO):
    """A standard output that fails once it is written to."""

    def __init__(self, error):
        super().__init__()
        self.error, self.writes = error, 0

    def write(self, text):
        self.writes += 1
        raise self.error


def test_a_closed_pipe_stops_only_the_output(monkeypatch):
    broken, printed = Broken(BrokenPipeError()), StandardOutput()
    monkeypatch.setattr(terminal.sys, "stdout", broken)

    printed.print("one\n")
    printed.print("two\n")

    assert not printed.is_open
    assert (printed.error, broken.writes) == (None, 1)


def test_a_full_disk_under_standard_output_is_named(monkeypatch):
    printed = StandardOutput()
    monkeypatch.setattr(terminal.sys, "stdout", Broken(OSError(28, "No space left on device")))

    printed.print("one\n")

    assert printed.error == "standard output must be writable, got: No space left on device."
