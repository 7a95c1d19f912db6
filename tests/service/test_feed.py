"""Readings of files on their way into a service: in order, once, at any speed, whatever happens."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from streamridge import read
from streamridge.cli.main import app
from streamridge.errors import InvalidInputError
from streamridge_service.client.feed import Feed, FeedResult, Pace, compressed_rows
from streamridge_service.client.http_client import (
    Client,
    RefusedError,
    Response,
    RetryPolicy,
    ServiceAwayError,
)
from streamridge_service.client.readings_table import ReadingsTable
from tests.support.service.fake_receiver import CLOSE, Receiver, receiving

HOURS = pd.date_range("2026-06-13", periods=48, freq="h", tz="UTC")
ZONES = ("America/Los_Angeles", "Europe/London", "Australia/Lord_Howe")
FLOWS = {name: 100.0 + np.arange(48) + number for number, name in enumerate(("a", "b", "c"))}


@pytest.fixture
def receiver():
    with receiving(Receiver()) as opened:
        yield opened


@pytest.fixture
def file(tmp_path):
    """Return a file of two days of three sensors by the hour, with some gaps."""
    table = pd.DataFrame({"time": HOURS, **FLOWS})
    table.loc[[5, 6], "b"] = np.nan
    path = tmp_path / "flows.csv"
    table.to_csv(path, index=False)
    return path


def invoke(*arguments, **more):
    return CliRunner().invoke(app, ["feed", *map(str, arguments)], **more)


def client_of(receiver, **patience):
    return Client(receiver.url, retries=RetryPolicy(sleep=lambda seconds: None, **patience))


def table_of(file):
    return ReadingsTable.of(read([str(file)]).series.values())


class Time:
    """A clock that moves only while somebody sleeps."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def clock(self):
        return self.now


class TestContract:
    def test_a_body_is_ndjson(self):
        body = compressed_rows([("a", 900_000_000, 1.5), ("b", 900_000_000, 2.0)])

        lines = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        assert lines[0] == {"sensor": "a", "time": "1970-01-01T00:15:00Z", "value": 1.5}


class TestSending:
    def test_all_readings_arrive_in_time_order(self, receiver, file):
        result = invoke(file, "--url", receiver.url)

        assert result.exit_code == 0, result.output
        assert len(receiver.rows) == 3 * 48 - 2
        times = [row["time"] for batch in receiver.batches for row in batch]
        assert times == sorted(times)
        assert receiver.rows["b", "2026-06-13T07:00:00Z"] == FLOWS["b"][7]
        assert "142 readings to send: 142 accepted." in result.stderr

    def test_a_repeated_feed_continues_where_it_stopped(self, receiver, file, tmp_path):
        half = tmp_path / "half.csv"
        half.write_text("".join(file.read_text().splitlines(keepends=True)[:25]))
        invoke(half, "--url", receiver.url)
        before = len(receiver.rows)

        result = invoke(file, "--url", receiver.url)
        third = invoke(file, "--url", receiver.url)

        assert before == 70
        assert "72 readings to send: 72 accepted." in result.stderr
        assert "0 readings to send: nothing was sent." in third.stderr
        assert "142 readings skipped" in third.stderr
        assert "The service has them" in third.stderr
        assert (result.exit_code, third.exit_code) == (0, 0)
        assert len(receiver.rows) == 142

    @pytest.mark.parametrize("flag", ["--backfill", "--resend"])
    def test_skipped_readings_that_are_missing_are_reported(self, receiver, file, tmp_path, flag):
        later = pd.DataFrame({"time": HOURS + pd.Timedelta("9D"), **FLOWS})
        later.to_csv(tmp_path / "later.csv", index=False)
        invoke(tmp_path / "later.csv", "--url", receiver.url)

        skipped = invoke(file, "--url", receiver.url)
        sent = invoke(file, "--url", receiver.url, flag)
        again = invoke(file, "--url", receiver.url)

        assert skipped.exit_code == 3
        assert "142 readings skipped: they are not newer than the newest" in skipped.stderr
        assert "At least 142 skipped readings cannot be found in the service." in skipped.stderr
        assert flag in skipped.stderr
        assert (sent.exit_code, again.exit_code) == (0, 0)
        assert len(receiver.rows) == 142 + 3 * 48

    def test_a_hole_in_the_stored_readings_is_noticed(self, receiver, file):
        invoke(file, "--url", receiver.url)
        for hour in range(10, 20):
            del receiver.rows["a", f"2026-06-13T{hour}:00:00Z"]

        result = invoke(file, "--url", receiver.url)

        assert result.exit_code == 3
        assert "At least 10 skipped readings cannot be found" in result.stderr

    def test_each_sensor_is_sent_at_its_own_step(self, receiver, tmp_path):
        minutes = pd.date_range("2026-06-13", periods=240, freq="min", tz="UTC")
        hours = minutes[::60]
        table = pd.DataFrame(
            {
                "time": [*minutes, *hours, *hours],
                "sensor": ["pump"] * 240 + ["road"] * 4 + ["rain"] * 4,
                "value": [*range(240), *range(8)],
            }
        )
        table.sort_values("time").to_csv(tmp_path / "long.csv", index=False)
        receiver.steps = {"pump": 60}

        result = invoke(tmp_path / "long.csv", "--url", receiver.url)

        assert result.exit_code == 0, result.output
        assert len(receiver.rows) == 248
        times = [row["time"] for batch in receiver.batches for row in batch]
        assert times == sorted(times)

    def test_the_shortest_step_sets_the_pace(self, receiver):
        time = Time()
        tables = [
            ReadingsTable(["pump"], 60 * 10**6, 0, [0], np.ones((1, 121))),
            ReadingsTable(["road"], 3600 * 10**6, 0, [0], np.ones((1, 3))),
        ]

        with client_of(receiver) as client:
            feed = Feed(client, False, Pace.of("2/s"), time.sleep, time.clock)
            list(feed.send(tables, {}, FeedResult()))

        assert np.allclose(time.slept, 0.5)
        assert [len(batch) for batch in receiver.batches][::60] == [2, 2, 2]

    def test_a_backfill_is_sent_sensor_by_sensor(self, receiver, file):
        result = invoke(file, "--url", receiver.url, "--backfill")

        assert result.exit_code == 0, result.output
        names = [row["sensor"] for batch in receiver.batches for row in batch]
        assert names == sorted(names)
        assert any("mode=backfill" in path for _, path, _ in receiver.requests)

    def test_a_resent_file_is_all_duplicates(self, receiver, file):
        invoke(file, "--url", receiver.url)
        result = invoke(file, "--url", receiver.url, "--resend")

        assert "142 readings to send: 142 duplicate." in result.stderr

    def test_steps_are_sent_at_the_pace(self, receiver, file):
        time = Time()
        table = table_of(file)
        with client_of(receiver) as client:
            feed = Feed(client, False, Pace.of("60"), time.sleep, time.clock)
            counts = list(feed.send(table, {}, FeedResult()))

        assert len(counts) == 48
        assert np.allclose(time.slept, 60.0)
        assert [len(batch) for batch in receiver.batches[:7]] == [3, 3, 3, 3, 3, 2, 2]

    def test_no_wait_is_negative_if_the_clock_advances_meanwhile(self, receiver, file):
        class Busy(Time):
            """A clock that moves by almost a second whenever it is read."""

            def clock(self):
                self.now += 0.99
                return self.now

        time = Busy()
        table = table_of(file)
        with client_of(receiver) as client:
            feed = Feed(client, False, Pace.of("1/s"), time.sleep, time.clock)
            list(feed.send(table, {}, FeedResult()))

        assert time.slept
        assert min(time.slept) > 0

    def test_too_many_rows_are_sent_in_parts(self, receiver, file):
        receiver.largest = 50

        result = invoke(file, "--url", receiver.url)

        assert result.exit_code == 0, result.output
        assert len(receiver.rows) == 142

    def test_refused_rows_are_reported_with_sensor_and_time(self, receiver, file):
        file.write_text(file.read_text().replace("17:00:00+00:00,117.0,", "17:00:00+00:00,2e12,"))

        dry = invoke(file, "--dry-run")
        result = invoke(file, "--url", receiver.url)

        assert "would be refused" in dry.stderr
        assert result.exit_code == 3
        assert "a at 2026-06-13T17:00:00Z: Too large. (sr-out-of-range)" in result.stderr
        assert "141 accepted, 1 refused" in result.stderr

    def test_a_token_is_sent_and_a_missing_token_is_reported(self, receiver, file):
        receiver.token = "secret"

        refused = invoke(file, "--url", receiver.url)
        let_in = invoke(file, "--url", receiver.url, env={"STREAMRIDGE_TOKEN": "secret"})

        assert refused.exit_code == 1
        assert "No. Send a token. (sr-no-token, 401)" in refused.stderr
        assert let_in.exit_code == 0, let_in.output

    def test_a_dry_run_sends_nothing_and_needs_no_service(self, file):
        result = invoke(file, "--dry-run", "--url", "http://127.0.0.1:9")

        assert result.exit_code == 0, result.output
        assert "Would send 142 readings of 3 sensors, in steps of 1h from" in result.stderr


class TestTrouble:
    @pytest.mark.parametrize("cases", [8, pytest.param(30, marks=pytest.mark.slow)])
    def test_retries_lose_and_duplicate_nothing(self, receiver, file, cases, record_property):
        record_property("row", "A1")
        record_property("cases", cases)
        for seed in range(cases):
            luck = Random(seed)
            receiver.rows.clear()
            kinds = [(503, {"Retry-After": "5"}), (429, {}), (408, {}), (507, {}), CLOSE, CLOSE]
            receiver.troubles = [luck.choice(kinds) for _ in range(luck.randrange(12))]
            result = FeedResult()
            with client_of(receiver) as client:
                list(Feed(client, pace=Pace.of("1000/s")).send(table_of(file), {}, result))

            assert len(receiver.rows) == 142
            assert result.counts["accepted"] + result.counts["duplicate"] == 142

    def test_waits_double_with_jitter_and_respect_retry_after(self, receiver):
        time, told = Time(), []
        receiver.troubles = [(503, {"Retry-After": "7"}), *[(429, {})] * 9]
        retries = RetryPolicy(
            1e9, lambda *said: told.append(said), time.sleep, time.clock, Random(1)
        )

        with Client(receiver.url, retries=retries) as client:
            answer = client.request_until_final("POST", "/v1/readings", compressed_rows([]))

        assert answer.status == 200
        assert 7.25 <= time.slept[0] <= 7.5
        longest = [0.5 * 2**tries for tries in range(1, 8)]
        for slept, most in zip(time.slept[1:], longest, strict=False):
            assert most / 2 <= slept <= most
        assert time.slept[-1] <= 60.0
        assert told[0][0] == "Not now. (sr-busy, 503)"

    def test_the_client_gives_up_after_its_timeout(self):
        time = Time()
        retries = RetryPolicy(600.0, sleep=time.sleep, clock=time.clock)

        with pytest.raises(ServiceAwayError, match="cannot be reached: Connection refused"):
            Client("http://127.0.0.1:9", retries=retries).get("/v1/summary")
        assert 600 < time.now < 800

    def test_ctrl_c_explains_how_to_continue(self, receiver, file, monkeypatch):
        def pressed(self, rows, result):
            raise KeyboardInterrupt

        monkeypatch.setattr(Feed, "_post", pressed)
        result = invoke(file, "--url", receiver.url)

        assert result.exit_code == 130
        assert "The same command continues from here." in result.stderr

    @pytest.mark.parametrize("url", ["127.0.0.1:8321", "ftp://host", "http://", "http://h:99999"])
    def test_a_wrong_address_is_refused(self, url):
        with pytest.raises(InvalidInputError, match="url must"):
            Client(url)

    @pytest.mark.parametrize("token", ["", " \n", "a\nb", "\u20ac"])
    def test_a_token_that_a_header_cannot_contain_is_refused(self, token):
        with pytest.raises(InvalidInputError, match="token must consist of"):
            Client("http://127.0.0.1", token)

    def test_a_refusal_without_json_has_a_message(self):
        assert Response(502, {}, b"<html>").message == "(status, 502)"
        assert str(RefusedError(Response(404, {}, b'{"detail": "No such page."}'))) == (
            "No such page. (status, 404)"
        )


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "1/m", "", "1e9"])
def test_a_wrong_speed_is_refused(speed):
    with pytest.raises(InvalidInputError, match="speed must be"):
        Pace.of(speed)


class TestFiles:
    @pytest.mark.parametrize(
        "zone", ["America/Los_Angeles", "Europe/London", "Australia/Lord_Howe"]
    )
    @pytest.mark.parametrize("change", ["spring", "autumn"])
    def test_no_reading_is_merged_or_dropped_when_clocks_change(
        self, zone, change, receiver, tmp_path, record_property
    ):
        record_property("row", "B6")
        record_property("cases", 1)
        receiver.step_seconds = 900
        moment = clock_change(ZoneInfo(zone), change)
        quarters = [moment + timedelta(minutes=15 * i) for i in range(-96, 96)]
        local = [each.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M") for each in quarters]
        path = tmp_path / "local.csv"
        pd.DataFrame({"time": local, "a": range(192)}).to_csv(path, index=False)

        result = invoke(path, "--url", receiver.url, "--timezone", zone)

        assert result.exit_code == 0, result.output
        sent = {(datetime.fromisoformat(time), value) for (_, time), value in receiver.rows.items()}
        assert sent == set(zip(quarters, range(192), strict=True))

    def test_local_times_need_a_zone(self, receiver, tmp_path):
        path = tmp_path / "local.csv"
        pd.DataFrame({"time": HOURS.tz_localize(None), "a": FLOWS["a"]}).to_csv(path, index=False)

        result = invoke(path, "--url", receiver.url)

        assert result.exit_code == 2
        assert "times must have an offset from UTC, or a zone" in result.stderr
        assert "--tz UTC" in result.stderr

    def test_a_nonexistent_local_time_is_refused(self, receiver, tmp_path):
        path = tmp_path / "gap.csv"
        times = pd.date_range("2026-03-29 00:00", periods=8, freq="30min")
        pd.DataFrame({"time": times, "a": range(8)}).to_csv(path, index=False)
        receiver.step_seconds = 1800

        result = invoke(path, "--url", receiver.url, "--tz", "Europe/London")

        assert result.exit_code == 2
        assert "time must exist in Europe/London, got 2026-03-29T01:00:00" in result.stderr
        assert not receiver.rows

    def test_sensor_names_that_a_service_refuses_are_refused(self, receiver, tmp_path):
        path = tmp_path / "names.csv"
        pd.DataFrame({"time": HOURS, "=1+1": FLOWS["a"], "ok": 1}).to_csv(path, index=False)

        result = invoke(path, "--url", receiver.url)

        assert result.exit_code == 2
        assert "sensor names must be up to 64 letters" in result.stderr
        assert "'=1+1'" in result.stderr

    def test_an_index_is_refused(self, receiver, tmp_path):
        path = tmp_path / "index.csv"
        pd.DataFrame({"time": range(50), "a": range(50)}).to_csv(path, index=False)

        result = invoke(path, "--dry-run")

        assert result.exit_code == 2
        assert "times must be dates, got whole numbers" in result.stderr

    def test_finer_counts_are_summed_to_the_step_of_the_service(self, receiver, tmp_path):
        path = tmp_path / "fine.parquet"
        times = pd.date_range("2026-06-13", periods=96, freq="15min", tz="UTC")
        pd.DataFrame({"time": times, "a": 1.0}).to_parquet(path, index=False)

        result = invoke(path, "--url", receiver.url, "--aggregate", "sum")

        assert result.exit_code == 0, result.output
        assert len(receiver.rows) == 24
        assert set(receiver.rows.values()) == {4.0}

    def test_a_sensor_that_shows_one_value_is_sent(self, receiver, tmp_path):
        path = tmp_path / "closed.csv"
        times = pd.date_range("2026-06-13", periods=60, freq="1h", tz="UTC")
        pd.DataFrame({"time": times, "a": np.arange(60) ** 2 % 7, "closed": 0}).to_csv(path)

        result = invoke(path, "--dry-run", "--time", "time", "--value", "closed")
        both = invoke(path, "--url", receiver.url)

        assert "closed: 60 steps of 1h" in result.stderr
        assert both.exit_code == 0, both.output
        assert len(receiver.rows) == 120

    def test_odd_bytes_never_end_in_a_traceback(self, receiver, file, record_property):
        record_property("row", "B14")
        record_property("cases", 40)
        content, luck = file.read_bytes(), Random(3)
        for _ in range(40):
            spoilt = bytearray(content)
            for _ in range(luck.randrange(1, 6)):
                spoilt[luck.randrange(len(spoilt))] = luck.randrange(256)
            file.write_bytes(spoilt)

            result = invoke(file, "--dry-run")

            assert result.exit_code in (0, 2), result.output
            assert result.exception is None or isinstance(result.exception, SystemExit)


def clock_change(zone, season):
    """Return the moment in 2026 at which the clocks of a zone are set forward, or back."""
    hours = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=30 * i) for i in range(17_000)]
    offsets = [each.astimezone(zone).utcoffset() for each in hours]
    forward = season == "spring"
    return next(
        hour
        for hour, before, after in zip(hours[1:], offsets, offsets[1:], strict=False)
        if (after > before if forward else after < before)
    )
