"""What those see who watch the service: probes, figures, the version."""

import re
import time

import pytest

from streamridge.service.board import Place
from streamridge.service.fleet.making import fingerprint
from streamridge.service.ledger.records import SensorRow

FIGURES = (
    "readings_accepted_total", "readings_refused_total", "readings_late_total",
    "readings_held_total", "readings_duplicate_total", "readings_replaced_total",
    "readings_implausible_total", "rebuilt_total", "refits_failed_total", "events_dropped_total",
    "commit_seconds", "wal_bytes", "days_left", "newest_reading_age_seconds", "ready",
    "worker_restarts_total", "streams", "free_bytes", "http_seconds_total",
)  # fmt: skip


def figures(live):
    """Return the figures by name, those with labels left out."""
    text = live.client.get("/metrics").text
    return {
        name: float(value) for name, value in re.findall(r"^streamridge_(\w+) (\S+)$", text, re.M)
    }


class TestMetrics:
    def test_there_is_one_for_each_promise(self, live, counted):
        counted("F3", len(FIGURES))

        assert set(FIGURES) <= set(figures(live))

    def test_they_count(self, live):
        before = figures(live)
        row = {"sensor": "counted", "time": "2026-01-03T00:00:00Z", "value": 1}

        live.post([row, row, {**row, "value": 2}, {**row, "value": "x"}])

        after = figures(live)
        grown = {name: after[name] - before[name] for name in after if name.startswith("readings_")}
        assert grown["readings_accepted_total"] == 1
        assert grown["readings_duplicate_total"] == 1
        assert grown["readings_refused_total"] == 2

    def test_no_label_has_many_values(self, live):
        labels = re.findall(r"^\w+\{(\w+)=\"([^\"]*)\"\}", live.client.get("/metrics").text, re.M)

        by_name = {name: {value for key, value in labels if key == name} for name, _ in labels}
        assert set(by_name) == {"state", "status", "version"}
        assert max(map(len, by_name.values())) < 10

    def test_a_scrape_of_39_000_sensors_is_short_and_quick(self, live, monkeypatch, counted):
        counted("F3", 39_000)
        places = {i: Place(SensorRow(i, f"s{i}", 0)) for i in range(1, 39_001)}
        monkeypatch.setattr(live.service.board, "places", places)
        live.client.get("/metrics")
        seconds = []
        for _ in range(5):
            begun = time.perf_counter()
            text = live.client.get("/metrics").text
            seconds.append(time.perf_counter() - begun)

        assert len(text.splitlines()) <= 300
        assert min(seconds) < 0.05


class TestProbes:
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_service_that_is_well_is_alive_and_ready(self, live, method, counted):
        counted("F4", 4)

        assert live.client.request(method, "/livez").status_code == 200
        assert live.client.request(method, "/readyz").status_code == 200

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            ({"state": "stopping"}, "stopping"),
            ({"_size": {"free": 0, "data": 0}}, "disk"),
            ({"trouble": "sr-storage-away"}, "sr-storage-away"),
            ({"trouble": "sr-disk-full"}, "sr-disk-full"),
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_a_fault_makes_it_unready_and_leaves_it_alive(
        self, live, monkeypatch, fault, reason, method, counted
    ):
        counted("F4", 8)
        for name, value in fault.items():
            owner = live.service.writer if name == "trouble" else live.service
            monkeypatch.setattr(owner, name, value)
        live.call(lambda service: service._judge_itself())

        answer = live.client.request(method, "/readyz")

        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert live.client.request(method, "/livez").status_code == 200
        if method == "GET":
            assert reason in " ".join(answer.json()["reasons"])

    def test_an_old_newest_reading_does_not_make_it_unready(self, live, monkeypatch, counted):
        counted("F4", 1)
        monkeypatch.setattr(live.service, "reasons", ["no reading of any sensor"])
        monkeypatch.setattr(live.service, "state", "stale")

        answer = live.client.get("/readyz")

        assert (answer.status_code, answer.json()["reasons"]) == (200, ["no reading of any sensor"])


def test_the_version_tells_what_numbers_depend_on(live):
    told = live.client.get("/version").json()

    assert told["fingerprint"] == fingerprint()
    assert told["interface"] == "v1"
