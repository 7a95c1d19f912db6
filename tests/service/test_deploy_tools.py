"""The files in deploy/ as those see them who read them: Prometheus, systemd, Grafana's models.

Each test runs where the program is installed (Debian: prometheus, systemd; PyPI:
grafana-foundation-sdk).
"""

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress

import httpx
import pytest
import yaml

from tests.support.paths import DEPLOY
from tests.support.service.deploy_files import rules_of_prometheus
from tests.support.service.free_ports import free_port
from tests.support.service.live_server import Live, make_tokens
from tests.support.waiting import LIMIT, wait_until

# A world in which every promise is broken, a minute a sample, and one in which all are kept.
BROKEN = {
    'up{job="streamridge"}': "0x600",
    "streamridge_ready": "0x600",
    "streamridge_newest_reading_age_seconds": "5000x600",
    "streamridge_readings_refused_total": "0+1x600",
    "streamridge_readings_late_total": "0+2x600",
    "streamridge_readings_stored_total": "0+100x600",
    "streamridge_readings_held_total": "0+1x600",
    "streamridge_readings_unlearned_total": "0+1x600",
    'streamridge_sensors{state="degraded"}': "3x600",
    "streamridge_rebuilt_total": "0+1x600",
    "streamridge_worker_restarts_total": "0+1x600",
    "streamridge_events_dropped_total": "0+1x600",
    "streamridge_wal_bytes": "200000000x600",
    "streamridge_commit_seconds": "4x600",
    "streamridge_days_left": "12x600",
    "streamridge_clock_off_seconds": "-30x600",
    'streamridge_http_answers_total{status="5xx"}': "0+2x600",
}
KEPT = dict.fromkeys(BROKEN, "0x600") | {
    'up{job="streamridge"}': "1x600",
    "streamridge_ready": "1x600",
    "streamridge_newest_reading_age_seconds": "400x600",
    "streamridge_readings_stored_total": "0+100x600",
    "streamridge_days_left": "_x600",
}


def program(name):
    """Return where a program is; skip the test if it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def said_by(*command, folder=None):
    """Return the exit code of a command, and all that it said."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT)
    return done.returncode, done.stdout + done.stderr


# Prometheus.


@pytest.fixture
def prometheus(tmp_path):
    """Give a folder with the files of Prometheus, and a token where they look for it."""
    shutil.copy(DEPLOY / "prometheus/alerts.yml", tmp_path)
    secret = tmp_path / "read_token"
    secret.write_text(make_tokens(tmp_path / "a.db")["read"])
    shipped = (DEPLOY / "prometheus/prometheus.yml").read_text()
    assert "/run/secrets/read_token" in shipped
    shipped = shipped.replace("/run/secrets/read_token", str(secret))
    (tmp_path / "prometheus.yml").write_text(shipped)
    return tmp_path


@pytest.mark.slow
def test_prometheus_accepts_its_configuration_and_all_rules(prometheus):
    code, said = said_by(
        program("promtool"), "check", "config", "prometheus.yml", folder=prometheus
    )

    assert f"SUCCESS: {len(rules_of_prometheus())} rules found" in said
    assert code == 0, said


@pytest.mark.slow
@pytest.mark.parametrize(("world", "firing"), [(BROKEN, True), (KEPT, False)], ids=["bad", "good"])
def test_alerts_fire_only_when_a_promise_is_broken(prometheus, world, firing):
    names = sorted(rule["alert"] for rule in rules_of_prometheus())
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names if firing]
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in world.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "5h",
                "exp_samples": expected,
            }
        ],
    }
    document = {"rule_files": ["alerts.yml"], "evaluation_interval": "1m", "tests": [case]}
    (prometheus / "test.yml").write_text(yaml.safe_dump(document))

    code, said = said_by(program("promtool"), "test", "rules", "test.yml", folder=prometheus)

    assert code == 0, said


@contextmanager
def running(*command, folder):
    """Run a program during the test."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT)


@pytest.mark.slow
def test_prometheus_scrapes_the_service_with_a_token_of_scope_read(prometheus):
    binary, port = program("prometheus"), free_port()
    settings = prometheus / "prometheus.yml"
    with Live(prometheus / "a.db") as served:
        there = settings.read_text().replace("streamridge:8321", f"127.0.0.1:{served.port}")
        settings.write_text(there.replace("15s", "1s"))
        command = (
            binary,
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=figures",
            f"--web.listen-address=127.0.0.1:{port}",
        )
        with running(*command, folder=prometheus):
            target = until_scraped(f"http://127.0.0.1:{port}/api/v1")
            rules = httpx.get(f"http://127.0.0.1:{port}/api/v1/rules").json()["data"]["groups"]

    assert (target["health"], target["lastError"]) == ("up", "")
    assert {rule.get("lastError", "") for rule in rules[0]["rules"]} == {""}


def until_scraped(url):
    """Return the target once it has been scraped."""

    def scraped():
        with suppress(httpx.HTTPError):  # it is starting
            told = httpx.get(f"{url}/targets").raise_for_status().json()["data"]["activeTargets"]
            return told[0] if told and told[0]["health"] != "unknown" else None

    return wait_until(scraped, "a scrape by Prometheus")


# systemd.


@pytest.fixture
def unit(tmp_path):
    """Give the unit with a program that there is."""
    text = (DEPLOY / "streamridge.service").read_text()
    changed = text.replace("/opt/streamridge/bin/streamridge", sys.executable)
    assert changed != text
    path = tmp_path / "streamridge.service"
    path.write_text(changed)
    return path


def test_systemd_accepts_the_unit_without_a_warning(unit):
    code, said = said_by(program("systemd-analyze"), "verify", "--man=no", str(unit))

    assert (code, said) == (0, "")


def test_systemd_rates_the_unit_as_sandboxed(unit):
    binary = program("systemd-analyze")
    code, said = said_by(binary, "security", "--offline=true", "--threshold=20", str(unit))

    # Its scale ends at 10, for a unit with all the rights of root.
    (exposure,) = re.findall(r"Overall exposure level for streamridge\.service: ([\d.]+)", said)
    assert float(exposure) <= 2.0
    assert code == 0


# Grafana.


def lost(given, kept, path="dashboard"):
    """Yield what is in one value and not in another."""
    if isinstance(given, dict):
        for name, value in given.items():
            if name not in kept:
                yield f"{path}.{name}"
            else:
                yield from lost(value, kept[name], f"{path}.{name}")
    elif isinstance(given, list):
        for i, value in enumerate(given):
            yield from lost(value, kept[i], f"{path}[{i}]")
    elif given != kept:
        yield path


@pytest.mark.slow
def test_the_models_of_grafana_know_every_field_of_the_dashboard():
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    cog = pytest.importorskip("grafana_foundation_sdk.cog")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    cog.plugins.register_default_plugins()
    given = json.loads((DEPLOY / "grafana/dashboards/streamridge.json").read_text())

    read = models.Dashboard.from_json(given)
    kept = json.loads(encoder.JSONEncoder(sort_keys=True).encode(read))

    # Annotations belong to the plugin, and a definition belongs to later versions.
    unknown = [
        each
        for each in lost(given, kept)
        if not re.search(r"annotations\.list\[0\]\.target|\.definition$", each)
    ]
    assert unknown == []
