"""The help of a command: groups of flags, a first view, and the width of the terminal."""

import re

import pytest
import typer

from streamridge.cli.commands import GROUP_OF, GROUPS, RARE
from streamridge.cli.main import app

MANY = ["replay", "compare", "forecast"]


def flags_in(text):
    return re.findall(r"^  (--[\w-]+)", text, flags=re.MULTILINE)


@pytest.mark.parametrize("command", MANY)
def test_the_first_view_has_few_flags_in_groups(command, invoke):
    text = invoke(command, "--help").stdout

    assert len(flags_in(text)) <= 25
    assert re.findall(r"^(\w+):$", text, flags=re.MULTILINE) == ["Arguments", *GROUPS, "Options"]


@pytest.mark.parametrize("command", MANY)
def test_the_whole_view_has_every_flag_in_the_same_groups(command, invoke):
    text = invoke(command, "--help-all").stdout
    flags = typer.main.get_command(app).commands[command].params

    assert set(flags_in(text)) >= {
        each.opts[0] for each in flags if each.param_type_name == "option"
    }
    assert re.findall(r"^(\w+):$", text, flags=re.MULTILINE) == ["Arguments", *GROUPS, "Options"]


def test_every_flag_of_replay_has_a_group():
    flags = {each.name for each in typer.main.get_command(app).commands["replay"].params}

    assert flags - set(GROUP_OF) == {"files", "help_all"}
    assert flags & RARE


@pytest.mark.parametrize("command", ["simulate", "inspect", "demo", "feed", "serve"])
def test_a_command_with_few_flags_has_one_view(command, invoke):
    assert "--help-all" not in invoke(command, "--help").stdout
    assert invoke(command, "--help-all").exit_code in (2, 64)


@pytest.mark.parametrize("columns", [80, 120, 200])
@pytest.mark.parametrize("flag", ["--help", "--help-all"])
def test_help_is_as_wide_as_the_terminal(columns, flag, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))

    typer.main.get_command(app).main(["replay", flag], standalone_mode=False)

    lines = capsys.readouterr().out.splitlines()
    assert columns - 12 <= max(map(len, lines)) <= columns


@pytest.mark.parametrize("command", ["replay", "compare"])
def test_ohl_is_spelled_out(command, invoke):
    words = " ".join(invoke(command, "--help").stdout.split())

    assert "ohl is online hyperparameter learning" in words
