"""Every command of docs/service.md is run against a service, and its tables are what they say.

So is the program of the tutorial.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import chdir, contextmanager

import httpx
import pytest
import typer
import yaml
from litestar import Litestar
from typer.testing import CliRunner

from streamridge.cli.main import app
from streamridge_service.bodies.line_protocol import decode_lines
from streamridge_service.cli import serving
from streamridge_service.http.app import HANDLERS
from streamridge_service.http.openapi import document_of
from streamridge_service.problems import CATALOGUE
from streamridge_service.settings import ServiceSettings
from tests.support.paths import ROOT
from tests.support.waiting import LIMIT, wait_until

PAGE = (ROOT / "docs" / "service.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorial" / "service.md").read_text()
WRITTEN = "http://127.0.0.1:8321"
# Settings in addition to the page: a free port, and a smaller fit, so that the tour takes seconds.
SETTINGS = {
    "STREAMRIDGE_CLOCK": "stream",
    "STREAMRIDGE_PORT": "0",
    "STREAMRIDGE_WORKERS": "1",
    "STREAMRIDGE_TRAIN_SIZE": "192",
}


def chapters():
    """Return the commands of each chapter that has any; those come last that make a token."""
    found = []
    for chapter in re.split(r"^## ", PAGE, flags=re.MULTILINE):
        blocks = re.findall(r"```console\n(.*?)```", chapter, flags=re.DOTALL)
        if blocks:
            found.append((chapter.partition("\n")[0], steps_of("".join(blocks))))
    return sorted(found, key=lambda each: each[0] == "Tokens")


def steps_of(text):
    """Return the commands of blocks, each with what the page shows of its output."""
    steps = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            steps[-1] = (steps[-1][0], f"{steps[-1][1]}{line}\n")
    return steps


CHAPTERS = chapters()
COMMANDS = [command for _, steps in CHAPTERS for command, _ in steps]


class Tour:
    """A reader of the page at a terminal."""

    def __init__(self, folder, address):
        self.folder, self.address = folder, address
        self.variables = {}
        self.environment = {**SETTINGS, "STREAMRIDGE_URL": address, "COLUMNS": "100"}

    def run(self, command, shown):
        """Do what the page says; the service runs already."""
        words = self._words(command)
        if words[0] == "curl":
            self._ask(words[1:], self._expected(command), shown)
        elif words[:2] != ["streamridge", "serve"]:
            self._call(command.replace(WRITTEN, self.address))

    def _words(self, command):
        for name, value in self.variables.items():
            command = command.replace(f"${name}", value)
        return shlex.split(command.replace(WRITTEN, self.address), comments=True)

    def _expected(self, command):
        told = re.search(r"  # (\d{3})$", command)
        return int(told[1]) if told else 200

    def _ask(self, words, expected, shown):
        request = request_of(words, self.folder)
        with httpx.Client(timeout=LIMIT) as client, client.stream(**request) as answer:
            endless = "event-stream" in answer.headers.get("content-type", "")
            content = next(answer.iter_bytes()) if endless else answer.read()
        assert answer.status_code == expected, content[:500]
        if shown.startswith("{"):
            assert json.loads(shown).keys() == json.loads(content).keys()

    def _call(self, command):
        """Run a command as a shell does; `NAME=$(...)` keeps its output.

        One of ours is run in this process: to start another takes longer than most commands do.
        """
        kept = re.fullmatch(r"(\w+)=\$\((.*)\)", command)
        program, *words = shlex.split(kept[2] if kept else command, comments=True)
        if program != "streamridge":
            subprocess.run(command, shell=True, cwd=self.folder, check=True)
            return
        with chdir(self.folder):
            done = CliRunner().invoke(app, words, env=self.environment)
        assert done.exit_code == 0, f"{command}\n{done.output}"
        if kept:
            self.variables[kept[1]] = done.stdout.strip()

    def wait_for_models(self):
        """Wait until every sensor has a model."""
        wait_until(self._has_models, "a model of every sensor")

    def _has_models(self):
        summary = httpx.get(f"{self.address}/v1/summary", timeout=LIMIT).json()
        return 0 < summary["total"] == summary["sensors"]["good"]


def request_of(words, folder=None):
    """Return the request that a call of curl makes; without a folder, without its files."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("url")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("--data-binary")
    parser.add_argument("-o", dest="output")
    parser.add_argument("-N", action="store_true")
    given = parser.parse_args(words)
    headers = dict(header.split(": ", 1) for header in given.headers)
    content = None if given.json is None else given.json.encode()
    if given.json is not None:
        headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    if given.data_binary is not None:
        content = (folder / given.data_binary.removeprefix("@")).read_bytes() if folder else b""
    method = given.method or ("GET" if content is None else "POST")
    return {"method": method, "url": given.url, "headers": headers, "content": content}


@contextmanager
def served(folder):
    """Serve in a process of its own, as the page says, and give the address."""
    log = folder / "serve.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamridge", "serve"],
            cwd=folder,
            env={**os.environ, **SETTINGS}, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield address_in(log, process)
    finally:
        process.terminate()
        process.wait(LIMIT)


def address_in(log, process):
    def told():
        assert process.poll() is None, log.read_text()
        return re.search(r"serves (http://\S+)\n", log.read_text())

    return wait_until(told, "the address of the service")[1]


def output_of_the_tutorial(address, capsys):
    """Run the program of docs/tutorial/service.md, and return what it prints."""
    program = re.search(r"<!-- program -->\n```text\n(.*?)```", TUTORIAL, flags=re.DOTALL)[1]
    exec(program.replace(WRITTEN, address), {})
    return capsys.readouterr().out


@pytest.mark.slow
def test_the_page_can_be_followed_from_the_first_command_to_the_last(
    tmp_path, monkeypatch, subtests, capsys
):
    monkeypatch.delenv("STREAMRIDGE_TOKEN", raising=False)
    with served(tmp_path) as address:
        tour = Tour(tmp_path, address)
        for title, steps in CHAPTERS:
            for command, shown in steps:
                with subtests.test(f"{title}: {command}"):
                    tour.run(command, shown)
                if command.startswith("streamridge feed"):
                    tour.wait_for_models()
                    with subtests.test("the program of the tutorial"):
                        assert "'value': 75.0" in output_of_the_tutorial(address, capsys)
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


def test_commands_with_flags_of_serve_are_right():
    named = re.findall(
        r"""`?(?<!\w)streamridge serve((?: --[\w-]+(?: "[^"]+"| [\w:/.]+)?)*)""", PAGE
    )

    assert len(named) > 3
    for flags in named:
        serve_command().make_context("serve", shlex.split(flags))


def test_every_command_that_is_named_exists():
    group = typer.main.get_command(app)
    named = set(re.findall(r"(?:`|\$ |\()streamridge ([a-z-]+)(?: ([a-z]+))?", PAGE))

    for name, more in named:
        assert name in group.commands
        if name == "token":
            assert more in group.commands["token"].commands


def test_every_route_has_its_curl():
    document = document_of(Litestar(HANDLERS, openapi_config=None))
    routes = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    called = [shlex.split(each, comments=True)[1:] for each in COMMANDS if each.startswith("curl ")]
    asked = {(each["method"], httpx.URL(each["url"]).path) for each in map(request_of, called)}

    assert asked
    assert {route_of(each, routes) for each in asked} == routes


def route_of(asked, routes):
    """Return the route that a request is for: one without a parameter, if there are two."""
    fitting = [
        (method, path)
        for method, path in sorted(routes, key=lambda route: route[1].count("{"))
        if asked[0] == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), asked[1])
    ]
    assert fitting, f"there is no route for {asked}"
    return fitting[0]


def rows_under(heading):
    """Return the cells of the first table of a chapter."""
    chapter = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in chapter.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_of_settings_has_them_all_with_their_defaults():
    fields = ServiceSettings.model_fields
    rows = rows_under("Settings")
    table = {row[1].strip("`").removeprefix("STREAMRIDGE_").lower(): row for row in rows}

    assert list(table) == list(fields)
    for name, (flag, _, default, _) in table.items():
        if name not in ("workers", "memory"):  # they depend on the machine
            assert default.strip("`") == written(fields[name].default), name
        assert flag.strip("`") in serve_flags(), name


def written(value):
    """Return a default as the table writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value in (None, ()) else str(value)


def serve_command():
    app = typer.Typer()
    app.command()(serving.serve_command())
    return typer.main.get_command(app)


def serve_flags():
    return {
        flag
        for parameter in serve_command().params
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }


def test_the_table_of_codes_is_the_catalogue():
    table = {row[0].strip("`"): int(row[1]) for row in rows_under("Every code")}

    assert table == {code: entry.status for code, entry in CATALOGUE.items()}


def test_every_status_of_the_catalogue_is_explained():
    statuses = " ".join(row[0] for row in rows_under("What an answer means"))

    told = {int(number) for number in re.findall(r"\d{3}", statuses)}
    assert {entry.status for entry in CATALOGUE.values()} - {500} <= told


def test_sensors_of_line_protocol_are_named_as_said():
    power = "domain=sensor,entity_id=house_power value=1234.5"
    lines = {
        "flow,road=A2,lane=1 cars=412i": "flow:cars:lane:1:road:A2",
        f"home,{power}": "home:domain:sensor:entity_id:house_power",
        f"W,{power}": "W:domain:sensor:entity_id:house_power",
        "disk,path=/ used=1": "disk:used:path:_x2F_",
        "°C,entity_id=kitchen value=20": "xB0_C:entity_id:kitchen",
    }

    for line, name in lines.items():
        (row,) = decode_lines(line.encode(), "s", 0).rows
        assert row.sensor == name
        assert name in PAGE


def test_snippets_for_collectors_can_be_read():
    outputs = [
        tomllib.loads(each)["outputs"]
        for each in re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    ]
    homes = [
        yaml.safe_load(each)["influxdb"]
        for each in re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    ]

    assert [list(each) for each in outputs] == [["influxdb"], ["influxdb_v2"]]
    assert [each.get("api_version", 1) for each in homes] == [1, 2]
    for output in outputs:
        [[only]] = output.values()
        assert only["urls"] == [WRITTEN]
    for home in homes:
        assert f"http://{home['host']}:{home['port']}" == WRITTEN
