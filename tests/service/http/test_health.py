"""Liveness, readiness, metrics and the version."""

import re

import pytest

from streamridge_service.ledger.records import SensorRow
from streamridge_service.service.sensor_status import SensorStatuses
from streamridge_service.settings import bytes_of
from streamridge_service.workers.sensor_state import fingerprint

FIGURES = (
    "readings_accepted_total", "readings_refused_total", "readings_late_total",
    "readings_held_total", "readings_duplicate_total", "readings_replaced_total",
    "readings_implausible_total", "rebuilt_total", "refits_failed_total", "events_dropped_total",
    "commit_seconds", "wal_bytes", "days_left", "newest_reading_age_seconds", "ready",
    "backup_age_seconds", "backups_total", "backups_failed_total", "rows_pruned_total",
    "prunings_failed_total", "worker_restarts_total", "streams", "free_bytes", "http_seconds_total",
)  # fmt: skip


def figures(live):
    """Return the metrics without labels, by name."""
    text = live.client.get("/metrics").text
    return {
        name: float(value) for name, value in re.findall(r"^streamridge_(\w+) (\S+)$", text, re.M)
    }


class TestMetrics:
    def test_every_promised_metric_exists(self, live, counted):
        counted("F3", len(FIGURES))

        assert set(FIGURES) <= set(figures(live))

    def test_metrics_count_rows_by_outcome(self, live):
        before = figures(live)
        row = {"sensor": "counted", "time": "2026-01-03T00:00:00Z", "value": 1}

        live.post([row, row, {**row, "value": 2}, {**row, "value": "x"}])

        after = figures(live)
        grown = {name: after[name] - before[name] for name in after if name.startswith("readings_")}
        assert grown["readings_accepted_total"] == 1
        assert grown["readings_duplicate_total"] == 1
        assert grown["readings_refused_total"] == 2

    def test_the_memory_is_measured_and_shown_beside_its_limit(self, live):
        text = live.client.get("/metrics").text
        held = re.findall(r'^streamridge_memory_bytes\{process="(\w+)"\} (\S+)$', text, re.M)

        summary = live.client.get("/v1/summary").json()["memory"]

        assert [name for name, _ in held] == ["server", "workers"]
        assert all(1e7 < float(size) < 1e10 for _, size in held)
        assert figures(live)["memory_limit_bytes"] == bytes_of(live.service.settings.memory)
        assert summary["limit"] == bytes_of(live.service.settings.memory)
        assert summary["held"] == pytest.approx(sum(float(size) for _, size in held), rel=0.5)

    def test_every_label_has_few_values(self, live):
        labels = re.findall(r"^\w+\{(\w+)=\"([^\"]*)\"\}", live.client.get("/metrics").text, re.M)

        by_name = {name: {value for key, value in labels if key == name} for name, _ in labels}
        assert set(by_name) == {"process", "state", "status", "version"}
        assert max(map(len, by_name.values())) < 10

    def test_the_metrics_of_39_000_sensors_are_short(self, live, monkeypatch, counted):
        counted("F3", 39_000)
        statuses = SensorStatuses(live.service.plan)
        for i in range(1, 39_001):
            statuses.put(SensorRow(i, f"s{i}", 0))
        monkeypatch.setattr(live.service, "statuses", statuses)
        text = live.client.get("/metrics").text

        assert len(text.splitlines()) <= 300


class TestReadiness:
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_healthy_service_is_alive_and_ready(self, live, method, counted):
        counted("F4", 4)

        assert live.client.request(method, "/livez").status_code == 200
        assert live.client.request(method, "/readyz").status_code == 200

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            ({"state": "stopping"}, "stopping"),
            ({"disk": {"free": 0, "data": 0}}, "disk"),
            ({"error_code": "sr-storage-away"}, "sr-storage-away"),
            ({"error_code": "sr-disk-full"}, "sr-disk-full"),
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_fault_makes_the_service_unready_but_not_dead(
        self, unchecked, monkeypatch, fault, reason, method, counted
    ):
        counted("F4", 8)
        for name, value in fault.items():
            owner = unchecked.service.writer if name == "error_code" else unchecked.service.health
            monkeypatch.setattr(owner, name, value)
        unchecked.call(lambda service: service.health.check(0, 0))

        answer = unchecked.client.request(method, "/readyz")

        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert unchecked.client.request(method, "/livez").status_code == 200
        if method == "GET":
            assert reason in " ".join(answer.json()["reasons"])

    def test_stale_readings_do_not_make_the_service_unready(self, unchecked, monkeypatch, counted):
        counted("F4", 1)
        monkeypatch.setattr(unchecked.service.health, "reasons", ["no reading of any sensor"])
        monkeypatch.setattr(unchecked.service.health, "state", "stale")

        answer = unchecked.client.get("/readyz")

        assert (answer.status_code, answer.json()["reasons"]) == (200, ["no reading of any sensor"])


def test_the_version_includes_the_numerical_libraries(live):
    told = live.client.get("/version").json()

    assert told["fingerprint"] == fingerprint()
    assert told["interface"] == "v1"
