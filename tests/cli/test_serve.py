"""`streamridge serve` from the command line: flags, faults, first words, and its end."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pandas as pd
import pytest
import structlog

from streamridge_service.cli.database import CONFIGURATION, IN_USE, USAGE
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.settings import ServiceSettings
from tests.support.service.live_server import Live
from tests.support.waiting import LIMIT, wait_until

COMMANDS = [
    "serve", "feed", "backup", "restore", "accept-loss", "verify", "export", "prune", "migrate",
    "doctor", "token create", "token list", "token revoke",
]  # fmt: skip

SMALL = ["--train-size", "96", "--workers", "1", "--memory", "400MB", "--clock", "stream"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_eighty_columns_and_ends_with_an_example(command, invoke):
    result = invoke(*command.split(), "--help", env={"COLUMNS": "80"})

    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\u2026" not in result.stdout
    assert f"Example:\n    streamridge {command}" in result.stdout


def test_the_examples_run(invoke, tmp_path, monkeypatch):
    monkeypatch.delenv("STREAMRIDGE_DATABASE", raising=False)
    assert invoke("simulate", "--days", "4", "--detectors", "2").exit_code == 0
    with Live(tmp_path / "roads.db") as live:
        invoke("feed", "roads.csv", "--tz", "UTC", "--to", "2017-01-01T05:00", "--url", live.url)
    for command in COMMANDS[1:]:
        text = invoke(*command.split(), "--help").stdout
        example = text.partition("Example:\n")[2].strip()
        if command.startswith("token"):
            example = example.replace("--database roads.db", "")

        result = invoke(*shlex.split(example)[1:])

        assert result.exit_code == 0, f"{example}\n{result.output}"


def test_without_the_extra_a_machine_can_still_send(tmp_path):
    program = """
import sys
for name in ("apsw", "msgspec", "pydantic_settings", "litestar", "structlog"):
    sys.modules[name] = None
from streamridge.cli.main import app
app(["feed", "roads.csv", "--dry-run"])
"""
    pd.DataFrame(
        {"time": pd.date_range("2026-06-01", periods=9, freq="h", tz="UTC"), "a": range(9)}
    ).to_csv(tmp_path / "roads.csv", index=False)

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert "Would send 9 readings of 1 sensor" in done.stderr


def test_every_setting_is_a_flag(invoke):
    text = invoke("serve", "--help", env={"COLUMNS": "80"}).stdout

    flags = set(re.findall(r"--[a-z][a-z-]+", text))
    named = {name: f"--{name.replace('_', '-')}" for name in ServiceSettings.model_fields}
    named["allowed_hosts"] = "--allowed-host"
    assert set(named.values()) <= flags
    assert {"--no-learn", "--demo"} <= flags


BROKEN = [
    (["--port", "abc"], "port"),
    (["--port", "70000"], "port"),
    (["--port", "-1"], "port"),
    (["--port", "8.5"], "port"),
    (["--step", "0min"], "step"),
    (["--step", "15 parsecs"], "step"),
    (["--step", "15"], "step"),
    (["--horizon", "0"], "horizon"),
    (["--horizon", "97"], "horizon"),
    (["--level", "1"], "level"),
    (["--level", "0"], "level"),
    (["--level", "nan"], "level"),
    (["--train-size", "10"], "train_size"),
    (["--train-size", "1e9"], "train_size"),
    (["--grace", "-5min"], "grace"),
    (["--rule", "median"], "rule"),
    (["--clock", "sun"], "clock"),
    (["--workers", "0"], "workers"),
    (["--workers", "many"], "workers"),
    (["--memory", "lots"], "memory"),
    (["--memory", "4 TB"], "memory"),
    (["--max-sensors", "0"], "max_sensors"),
    (["--min-free", "1%"], "min_free"),
    (["--requests-a-minute", "0"], "requests_a_minute"),
    (["--log-level", "loud"], "log_level"),
    (["--database", "no/such/folder/a.db"], "database"),
]
BROKEN_ENVIRONMENTS = [
    ({"STREAMRIDGE_PORT": "http"}, "port"),
    ({"STREAMRIDGE_LEARN": "perhaps"}, "learn"),
    ({"STREAMRIDGE_ALLOWED_HOSTS": "{"}, "allowed_hosts"),
    ({"STREAMRIDGE_HORIZON": ""}, "horizon"),
]


class TestBrokenConfigurations:
    @pytest.fixture(autouse=True)
    def _no_port_opens(self, monkeypatch):
        def opened(*_):
            raise AssertionError("a port was opened")

        monkeypatch.setattr(socket.socket, "listen", opened)

    @pytest.mark.parametrize(("flags", "name"), BROKEN)
    def test_a_wrong_flag_is_told_before_the_port_opens(self, flags, name, invoke, record_property):
        record_property("row", "F1")
        record_property("cases", 1)

        result = invoke("serve", *flags)

        assert result.exit_code == CONFIGURATION, result.output
        assert "error: " in result.stderr
        assert name in result.stderr
        assert "Traceback" not in result.output

    @pytest.mark.parametrize(("environment", "name"), BROKEN_ENVIRONMENTS)
    def test_so_is_a_wrong_variable(self, environment, name, invoke, record_property):
        record_property("row", "F1")
        record_property("cases", 1)

        result = invoke("serve", env=environment)

        assert result.exit_code == CONFIGURATION, result.output
        assert name in result.stderr

    def test_all_that_is_wrong_is_told_at_once(self, invoke, record_property):
        record_property("row", "F1")
        record_property("cases", 1)
        wrong = ["--port", "x", "--level", "2", "--memory", "much", "--workers", "0"]

        result = invoke("serve", *wrong, env={"STREAMRIDGE_HORIZON": "0"})

        lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 5
        for name in ("port", "level", "memory", "workers", "horizon"):
            assert any(name in line for line in lines), name

    def test_an_unknown_flag_is_a_matter_of_usage(self, invoke):
        result = invoke("serve", "--prot", "80")

        assert result.exit_code == USAGE
        assert "No such option" in result.stderr

    def test_what_keeps_it_from_beginning_has_its_own_code(self, invoke, tmp_path):
        before = structlog.get_config()
        try:
            with open_ledger(str(tmp_path / "a.db")):
                served = invoke("serve", "--database", "a.db", *SMALL)
            away = invoke("serve", "--database", "b.db", "--host", "0.0.0.0", *SMALL)
        finally:
            structlog.configure(**before)

        assert served.exit_code == IN_USE
        assert "is served by process" in served.stderr
        assert away.exit_code == CONFIGURATION
        assert "streamridge token create --scope admin" in away.stderr


@contextmanager
def started(*arguments, folder, stderr=subprocess.PIPE):
    """Run the command in a process of its own, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "streamridge", "serve", "--port", "0", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "COLUMNS": "200", "TMPDIR": str(folder)},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        if not process.stdout.closed:
            process.communicate()


def lines_until(process, words, stream):
    """Return the lines up to one with some words; a process that never prints them is killed."""
    lines, timer = [], threading.Timer(LIMIT, process.kill)
    timer.start()
    try:
        while not lines or words not in lines[-1]:
            try:
                lines.append(stream.readline())
            except OSError:  # a terminal whose process has ended
                lines.append("")
            assert lines[-1], f"it never printed {words!r}, but {lines}"
    finally:
        timer.cancel()
    return lines


@pytest.fixture
def terminal():
    """Give both ends of a terminal."""
    ours, theirs = os.openpty()
    with os.fdopen(ours) as screen, os.fdopen(theirs, "wb") as end:
        yield screen, end


def test_the_first_words_show_how_to_send_a_reading(tmp_path, terminal):
    screen, end = terminal
    with started("--database", "roads.db", *SMALL, folder=tmp_path, stderr=end) as process:
        end.close()  # so that the lines end with the process
        words = re.sub(r"\x1b\[[0-9;]*m", "", "".join(lines_until(process, "--json", screen)))
        assert "streamridge serves http://127.0.0.1:" in words
        assert f"Database: {tmp_path / 'roads.db'}" in words
        curl, url, flag, body = shlex.split(re.search(r"curl .*", words)[0].strip())
        request = Request(url, body.encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=LIMIT) as answer:
            counts = json.loads(answer.read())
        process.send_signal(signal.SIGINT)
        code = process.wait(LIMIT)

    assert (curl, flag) == ("curl", "--json")
    assert counts["accepted"] == 1
    assert code == 0


@pytest.mark.slow
def test_without_a_terminal_standard_error_has_nothing_but_the_log(tmp_path):
    with started("--database", "roads.db", *SMALL, folder=tmp_path) as process:
        address = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=LIMIT)

    assert re.fullmatch(r"streamridge serves http://127.0.0.1:\d+\n", address)
    assert [json.loads(line)["event"] for line in log.splitlines()] == ["serving", "stopping"]


def summary_with_readings(url):
    with urlopen(f"{url}/v1/summary", timeout=LIMIT) as answer:
        summary = json.loads(answer.read())
    return summary if summary["newest"] is not None and summary["total"] >= 25 else None


def test_the_demo_has_something_to_see_and_leaves_nothing_behind(tmp_path):
    with started("--demo", folder=tmp_path) as process:
        url = re.search(r"http://\S+", lines_until(process, "Open http://", process.stderr)[-1])[0]
        summary = wait_until(lambda: summary_with_readings(url), "readings in the demo")
        with urlopen(f"{url}/v1/sensors/mainline-7", timeout=LIMIT) as answer:
            sensor = json.loads(answer.read())
        process.send_signal(signal.SIGINT)
        code = process.wait(LIMIT)

    assert summary["total"] == 25
    assert sensor["label"] == "A2 km 16.8"
    assert sensor["group"] == "A2 mainline"
    assert code == 0
    assert not list(tmp_path.glob("streamridge-demo-*"))


def test_a_file_is_fed_into_a_service_and_its_storage_verifies(invoke, tmp_path):
    times = pd.date_range("2026-06-01", periods=40, freq="15min")
    pd.DataFrame({"time": times, "a": range(40), "b": 7.0}).to_csv("roads.csv", index=False)
    with Live(tmp_path / "a.db", port=0) as live:
        fed = invoke("feed", "roads.csv", "--tz", "UTC", "--url", live.url)
        again = invoke("feed", "roads.csv", "--tz", "UTC", "--url", live.url, "--resend")
        made = invoke("token", "create", "x", "--scope", "admin", "--url", live.url)
        listed = invoke("token", "list", "--url", live.url)
        key = {"STREAMRIDGE_TOKEN": made.stdout.splitlines()[-1]}
        revoked = invoke("token", "revoke", "1", "--url", live.url, env=key)
        locked = invoke("token", "create", "y", "--database", "a.db")

    assert fed.exit_code == 0, fed.output
    assert "80 readings to send: 80 accepted." in fed.stderr
    assert "80 readings to send: 80 duplicate." in again.stderr
    assert made.exit_code == 0, made.output
    assert listed.exit_code != 0, "from the first token on, everybody needs one"
    assert revoked.exit_code == 0, revoked.output
    assert locked.exit_code == IN_USE
    verified = invoke("verify", "--all", "--database", "a.db")
    assert verified.exit_code == 0, verified.output
    assert "2 sensors and 80 forecasts replayed from the log" in verified.stdout
