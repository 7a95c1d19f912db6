"""The commands around a storage: what they do, what they refuse, and how they exit."""

import csv
import gzip
import hashlib
import json
import re
import shutil
import socket
from threading import Event, Thread

import apsw
import msgspec
import pandas as pd
import pytest
from typer.testing import CliRunner

from streamridge.cli.main import app
from streamridge_service.admin.doctor import findings, measured
from streamridge_service.cli.database import CONFIGURATION, DATA, IN_USE, STORAGE, USAGE
from streamridge_service.ledger import layout
from streamridge_service.ledger.errors import DiskFullError
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.plan_log import record_plan
from streamridge_service.ledger.records import SensorRow
from streamridge_service.plan import Declaration, Plan
from streamridge_service.settings import settings_of
from tests.support.ledger.samples import NOON, STEP, entries, forecast
from tests.support.service.in_process import fed, serving
from tests.support.waiting import wait_until

SENSORS = 4
ARRIVALS = 400
FORMULAS = [f"{first}{rest}" for first in "=+-@\t" for rest in ("1+1", "cmd|' /C calc'!A0")]
LABELS = [*FORMULAS, "A2 north", "km 12", "Zürich", "1+1", "'quoted"]


def filled(path):
    """Make a storage with readings and forecasts of four sensors."""
    with open_ledger(str(path)) as ledger:
        rows = [
            SensorRow(i, f"road-{i}", NOON, msgspec.json.encode(Declaration(label=LABELS[i])))
            for i in range(1, SENSORS + 1)
        ]
        ledger.append(rows, entries(1, ARRIVALS))
        ledger.add_forecasts([forecast(seq) for seq in range(1, ARRIVALS + 1)], done=ARRIVALS)
        record_plan(ledger, Plan(step=STEP), now=NOON)
    return path


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return filled(tmp_path / "roads.db")


def invoke(*arguments, **more):
    return CliRunner().invoke(app, [*map(str, arguments)], **more)


def on(database, *arguments, **more):
    return invoke(*arguments, "--database", database, **more)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class TestBackup:
    @pytest.mark.parametrize("backups", [6, pytest.param(20, marks=pytest.mark.slow)])
    def test_a_backup_under_load_is_an_intact_prefix_of_the_log(
        self, database, tmp_path, backups, record_property
    ):
        record_property("row", "A14")
        record_property("cases", backups)
        stop, lasts, written = Event(), [], []

        def write():
            with open_ledger(str(database)) as ledger:
                last = ledger.last_seq()
                while not stop.is_set():
                    ledger.append(readings=entries(last + 1, last + 40))
                    last += 40
                    written.append(last)

        writer = Thread(target=write)
        writer.start()
        try:
            for number in range(backups):
                copy = tmp_path / f"{number}.db"
                result = on(database, "backup", copy)
                assert result.exit_code == 0, result.output
                assert "no faults" in result.stderr
                with open_ledger(str(copy), read_only=True) as ledger:
                    lasts.append(ledger.last_seq())
                wait_until(lambda: written and written[-1] > lasts[-1], "more readings")
        finally:
            stop.set()
            writer.join()

        assert lasts == sorted(set(lasts))

    def test_it_never_replaces_a_file(self, database, tmp_path):
        (tmp_path / "there.db").write_text("mine")

        result = on(database, "backup", "there.db")

        assert result.exit_code == USAGE
        assert "FILE must be new" in result.stderr
        assert (tmp_path / "there.db").read_text() == "mine"

    def test_a_missing_database_is_not_created(self, tmp_path, database):
        result = on("nothing.db", "backup", "copy.db")

        assert result.exit_code == USAGE
        assert "database must be an existing file, got 'nothing.db'" in result.stderr
        assert not (tmp_path / "nothing.db").exists()


class TestRestore:
    def test_a_backup_is_restored(self, database, tmp_path):
        on(database, "backup", "copy.db")

        result = on("again.db", "restore", "copy.db")

        assert result.exit_code == 0, result.output
        assert "4 sensors, 400 arrivals" in result.stderr
        with open_ledger("again.db") as again, open_ledger(str(database)) as ledger:
            assert again.readings(2) == ledger.readings(2)
            assert list(again.forecasts()) == list(ledger.forecasts())

    @pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
    def test_restore_overwrites_no_file(self, suffix, database, tmp_path):
        on(database, "backup", "copy.db")
        there = tmp_path / f"again.db{suffix}"
        there.write_text("mine")

        result = on("again.db", "restore", "copy.db")

        assert result.exit_code == USAGE
        assert there.read_text() == "mine"

    def test_a_damaged_backup_is_refused(self, database, tmp_path):
        on(database, "backup", "copy.db")
        connection = apsw.Connection("copy.db")
        connection.execute("DELETE FROM readings WHERE seq = 7")
        connection.close()

        result = on("again.db", "restore", "copy.db")

        assert result.exit_code == DATA
        assert "arrival numbers 7 are missing" in result.stderr
        assert not (tmp_path / "again.db").exists()


class TestChangedSettings:
    """A change of settings is an action on all sensors, which belongs to no sensor."""

    @pytest.mark.parametrize("kind", ["sqlite", "postgres"])
    def test_every_command_works_after_a_change(self, kind, request, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "roads.db"
        if kind == "postgres":
            path = request.getfixturevalue("postgres").new_database()
        serving(lambda service: fed(service, 0, 4), path, horizon=1)
        serving(lambda service: fed(service, 4, 8), path, horizon=2)

        for arguments in (
            ["backup", "copy.db"], ["verify", "--all"], ["export", "readings.csv"],
            ["export", "forecasts.csv", "--what", "forecasts"],
            ["export", "sensors.csv", "--what", "sensors"], ["migrate"],
            ["prune", "--before", "2026-01-01", "--yes"],
        ):  # fmt: skip
            result = on(path, *arguments)
            assert result.exit_code == 0, result.output
        assert on("again.db", "restore", "copy.db").exit_code == 0
        assert on("again.db", "verify", "--all").exit_code == 0
        assert len(pd.read_csv("forecasts.csv")) == 3 * (4 * 1 + 4 * 2)
        if kind == "postgres":
            empty = request.getfixturevalue("postgres").new_database()
            assert on(empty, "restore", "copy.db").exit_code == 0
            assert on(empty, "verify", "--all").exit_code == 0

    def test_the_action_may_be_pruned(self, tmp_path, monkeypatch):
        monkeypatch.setattr(layout, "BUCKET", 50)
        path = filled(tmp_path / "roads.db")
        with open_ledger(str(path)) as ledger:
            record_plan(ledger, Plan(step=STEP, horizon=2), now=NOON)
            ledger.append(readings=entries(ARRIVALS + 2, ARRIVALS + 100))

        pruned = on(path, "prune", "--before", "2026-01-01", "--yes")
        checked = on(path, "verify", "--sample", "0")

        assert "Deleted 498 readings and 400 forecasts" in pruned.stderr
        assert (pruned.exit_code, checked.exit_code) == (0, 0), checked.output


class TestLoss:
    @pytest.fixture
    def older(self, database):
        """Put an older copy into the place of a database."""
        on(database, "backup", "old.db")
        with open_ledger(str(database)) as ledger:
            ledger.append(readings=entries(ARRIVALS + 1, ARRIVALS + 7))
        shutil.copy("old.db", database)
        return database

    def test_every_command_refuses_a_database_that_lacks_acknowledged_readings(self, older):
        before = digest(older)

        for arguments in (
            ["verify"], ["backup", "copy.db"], ["export", "x.csv"], ["migrate"], ["token", "list"],
            ["token", "create"], ["prune", "--before", "1d", "--yes"],
        ):  # fmt: skip
            result = on(older, *arguments)
            assert result.exit_code == DATA, result.output
            assert "lacks the last 7 readings that were acknowledged" in result.stderr
            assert "run `streamridge accept-loss`" in result.stderr
        found = on(older, "doctor", "--quick")

        assert found.exit_code == CONFIGURATION
        assert "lacks the last 7 readings" in found.stdout
        assert digest(older) == before

    def test_the_doctor_notices_a_deleted_database(self, database):
        database.unlink()

        found = on(database, "doctor", "--quick")

        assert found.exit_code == CONFIGURATION
        assert "is missing or empty, but 400 readings in it were acknowledged" in found.stdout

    def test_an_accepted_loss_is_recorded_once(self, older):
        asked = on(older, "accept-loss", input="n\n")
        accepted = on(older, "accept-loss", "--yes")
        again = on(older, "accept-loss", "--yes")

        assert (asked.exit_code, accepted.exit_code, again.exit_code) == (USAGE, 0, 0)
        assert "Accepted: " in accepted.stderr
        assert "lacks no acknowledged reading" in again.stderr
        assert on(older, "verify", "--sample", "0").exit_code == 0
        with open_ledger(str(older), read_only=True) as ledger:
            assert [event.kind for event in ledger.events()] == ["data_loss"]

    def test_a_backup_is_restored_in_place_of_a_lost_database(self, database):
        on(database, "backup", "copy.db")
        with open_ledger(str(database)) as ledger:
            ledger.append(readings=entries(ARRIVALS + 1, ARRIVALS + 7))
        database.unlink()

        assert on(database, "restore", "copy.db").exit_code == 0
        assert on(database, "verify", "--sample", "0").exit_code == 0


class TestExport:
    def test_readings_are_exported_as_they_arrived(self, database):
        result = on(database, "export", "readings.csv")

        assert result.exit_code == 0, result.output
        table = pd.read_csv("readings.csv")
        with open_ledger(str(database), read_only=True) as ledger:
            known = sorted(ledger.readings_after(0), key=lambda entry: entry.seq)
        table = table.sort_values("seq")
        assert table.value.tolist() == [entry.value for entry in known]
        assert table.seq.tolist() == list(range(1, ARRIVALS + 1))
        assert table.time.iloc[0] == "2025-10-09T09:00:00+00:00"
        assert set(table.kind) == {"live"}

    def test_forecasts_are_exported_as_they_were_issued(self, database):
        result = on(database, "export", "forecasts.parquet", "--what", "forecasts")

        assert result.exit_code == 0, result.output
        table = pd.read_parquet("forecasts.parquet")
        assert len(table) == 2 * ARRIVALS
        first = forecast(1)
        row = table[(table.issued_at_seq == 1) & (table.lead == 2)].iloc[0]
        assert (row.value, row.lower, row.upper) == (
            first.values[1],
            first.lower[1],
            first.upper[1],
        )
        assert row.time == pd.Timestamp(first.time + STEP, unit="us", tz="UTC")

    def test_one_sensor_and_a_span_are_exported(self, database):
        start = pd.Timestamp(NOON + 10 * STEP, unit="us")
        flags = ["--sensor", "road-2", "--from", start.isoformat(), "--to", "2025-10-09T13:00"]

        result = on(database, "export", "some.csv", *flags)

        assert result.exit_code == 0, result.output
        table = pd.read_csv("some.csv", parse_dates=["time"])
        assert set(table.sensor) == {"road-2"}
        assert table.time.min() == start.tz_localize("UTC")
        assert table.time.max() < pd.Timestamp("2025-10-09T13:00Z")

    def test_no_label_becomes_a_formula(self, tmp_path, database, record_property):
        record_property("row", "E9")
        record_property("cases", len(LABELS))
        with open_ledger(str(database)) as ledger:
            ledger.append(
                [
                    SensorRow(i + 10, f"s{i}", NOON, msgspec.json.encode(Declaration(label=label)))
                    for i, label in enumerate(LABELS)
                ]
            )

        on(database, "export", "sensors.csv", "--what", "sensors")
        on(database, "export", "sensors.parquet", "--what", "sensors")

        cells = pd.read_csv("sensors.csv", keep_default_na=False).set_index("sensor").label
        plain = pd.read_parquet("sensors.parquet").set_index("sensor").label
        for i, label in enumerate(LABELS):
            assert cells[f"s{i}"] == (f"'{label}" if label in FORMULAS else label)
            assert plain[f"s{i}"] == label

    def test_an_empty_table_has_a_header(self, database):
        for name in ("none.csv", "none.parquet"):
            result = on(database, "export", name, "--from", "2030-01-01")
            assert result.exit_code == 0, result.output

        assert list(pd.read_csv("none.csv")) == list(pd.read_parquet("none.parquet"))
        assert "sensor,time,value" in (database.parent / "none.csv").read_text()

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["x.txt"], "path must end in"),
            (["x.csv", "--format", "parquet"], "must end in .parquet"),
            (["-", "--format", "parquet"], "must have a name"),
            (["roads.db"], "must not replace the database"),
            (["x.csv", "--sensor", "no"], "sensor must be a known sensor"),
            (["x.csv", "--from", "soon"], "from must be an ISO 8601 time"),
        ],
    )
    def test_impossible_exports_are_refused(self, arguments, words, database):
        result = on("roads.db", "export", *arguments)

        assert result.exit_code == USAGE, result.output
        assert words in result.stderr

    def test_many_rows_are_written_in_chunks(self, database, monkeypatch):
        monkeypatch.setattr("streamridge_service.admin.export.CHUNK", 30)

        on(database, "export", "chunks.parquet")

        assert len(pd.read_parquet("chunks.parquet")) == ARRIVALS


class TestPrune:
    @pytest.fixture(autouse=True)
    def _small_buckets(self, monkeypatch):
        # A storage counts its buckets by this number from its first reading on.
        monkeypatch.setattr(layout, "BUCKET", 50)

    def test_prune_asks_for_confirmation(self, tmp_path, database):
        before = digest(database)

        result = on(database, "prune", "--before", "2030d", input="n\n")
        missing = on(database, "prune")

        assert result.exit_code == USAGE
        assert "? [y/N]" in result.stderr
        assert missing.exit_code == USAGE
        assert digest(database) == before

    def test_old_readings_are_deleted(self, tmp_path):
        path = filled(tmp_path / "small.db")

        result = on(path, "prune", "--before", "2026-01-01", "--yes")

        assert result.exit_code == 0, result.output
        dropped = int(re.search(r"Deleted (\d+) readings", result.stderr)[1])
        with open_ledger(str(path), read_only=True) as ledger:
            assert ledger.last_seq() == ARRIVALS
            assert len(list(ledger.readings_after(0))) == ARRIVALS - dropped
            assert int(ledger.facts()["first"]) > 1

    def test_a_future_time_is_refused(self, database):
        result = on(database, "prune", "--before", "2199-01-01", "--yes")

        assert result.exit_code == USAGE
        assert "before must be a time in the past" in result.stderr


class TestTokens:
    def test_a_token_is_shown_once_and_not_stored(self, database):
        made = on(database, "token", "create", "telegraf", "--scope", "write", "--expires", "90d")
        listed = on(database, "token", "list", "--json")

        text = made.stdout.strip()
        assert made.exit_code == 0, made.output
        assert re.fullmatch(r"sr_[\w-]{43}", text)
        assert "Token 1 of telegraf (write), expires " in made.stderr
        item = json.loads(listed.stdout)
        assert item["scopes"] == ["write"]
        assert item["valid"]
        assert text.encode() not in database.read_bytes()
        assert text not in listed.stdout

    def test_a_revoked_token_is_listed_as_revoked(self, database):
        on(database, "token", "create", "one")
        on(database, "token", "create", "two", "--scope", "admin")

        revoked = on(database, "token", "revoke", 1)
        unknown = on(database, "token", "revoke", 9)
        listed = on(database, "token", "list").stdout.splitlines()

        assert revoked.exit_code == 0, revoked.output
        assert unknown.exit_code == USAGE
        assert [line.split()[:4] for line in listed[2:]] == [
            ["1", "one", "read", "revoked"],
            ["2", "two", "admin", "valid"],
        ]

    def test_the_first_token_may_be_created_before_the_service_starts(self, tmp_path, database):
        result = on("new.db", "token", "create", "first", "--scope", "admin")

        assert result.exit_code == 0, result.output
        assert on("new.db", "token", "list").exit_code == 0

    @pytest.mark.parametrize(
        "flags",
        [["x", "--scope", "all"], ["x", "--expires", "later"], [""], ["x", "--expires", "2001"]],
    )
    def test_a_wrong_token_command_is_explained(self, flags, database):
        assert on(database, "token", "create", *flags).exit_code == USAGE


class TestDoctor:
    def test_all_checks_are_reported(self, database):
        result = on(database, "doctor", "--quick", "--json")

        found = {item["about"]: item for item in map(json.loads, result.stdout.splitlines())}
        assert {"SQLite", "disk", "permissions", "clock", "port", "storage"} <= set(found)
        assert "format 2" in found["storage"]["words"]
        assert "400 arrivals" in found["storage"]["words"]
        assert result.exit_code in (0, CONFIGURATION)

    def test_a_used_port_is_noted(self, database):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            settings = settings_of(database=str(database), port=taken.getsockname()[1])
            port = next(f for f in findings(settings, measure=False) if f.about == "port")

        assert port.level == "note"
        assert "Address already in use" in port.words

    def test_faults_of_the_machine_are_found(self, database, monkeypatch):
        connection = apsw.Connection(str(database))
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
        connection.close()
        monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.40.1")
        monkeypatch.setenv("STREAMRIDGE_MEMORY", "99999GB")
        monkeypatch.setenv("STREAMRIDGE_MIN_FREE", "99999GB")

        result = on(database, "doctor", "--quick")

        assert result.exit_code == CONFIGURATION
        wrong = {line[7:22].strip() for line in result.stdout.splitlines() if line[:5] == "wrong"}
        assert {"SQLite", "memory", "disk", "storage"} <= wrong

    def test_a_limit_of_memory_below_the_fixed_costs_is_found(self, database):
        settings = settings_of(database=str(database), memory="240MB", workers=2)

        found = next(f for f in findings(settings, measure=False) if f.about == "memory")

        assert found.level == "wrong"
        assert "Pass a larger --memory or fewer --workers." in found.words

    def test_a_database_that_others_can_read_is_noted(self, database):
        database.chmod(0o644)
        found = findings(settings_of(database=str(database)), measure=False)

        assert next(f for f in found if f.about == "permissions").level == "note"

    def test_the_capacity_is_measured(self):
        cost = measured(Plan(step=STEP, train_size=96))

        assert 0 < cost.step < cost.refit
        assert cost.every == 96


class TestExitCodes:
    def test_a_served_database_is_not_changed(self, database):
        with open_ledger(str(database)):
            for arguments in (
                ["prune", "--before", "1d", "--yes"],
                ["migrate"],
                ["token", "create"],
            ):
                result = on(database, *arguments)

                assert result.exit_code == IN_USE, result.output
                assert "is served by process" in result.stderr
            assert on(database, "verify", "--sample", "0").exit_code == 0

    def test_a_newer_format_is_not_changed(self, database, record_property):
        record_property("row", "A7")
        record_property("cases", 6)
        connection = apsw.Connection(str(database))
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
        connection.execute("UPDATE meta SET value = '9.0' WHERE key = 'version'")
        connection.close()
        before = digest(database)

        commands = [
            ["backup", "copy.db"], ["verify"], ["export", "x.csv"], ["migrate"], ["token", "list"],
            ["prune", "--before", "1d", "--yes"],
        ]  # fmt: skip
        for arguments in commands:
            result = on(database, *arguments)
            assert result.exit_code == DATA, result.output
            assert "was written by streamridge 9.0" in result.stderr

        assert digest(database) == before

    def test_a_failing_database_has_its_own_exit_code(self, database, monkeypatch):
        def full(self, before):
            raise DiskFullError("roads.db has no room.")

        monkeypatch.setattr("streamridge_service.ledger.ledger.Ledger.prune", full)

        assert on(database, "prune", "--before", "1d", "--yes").exit_code == STORAGE

    def test_a_foreign_file_is_refused(self, tmp_path, database):
        (tmp_path / "text.db").write_text("time,value\n" * 1000)

        for arguments in (["verify"], ["backup", "copy.db"], ["migrate"]):
            result = on("text.db", *arguments)
            assert result.exit_code in (DATA, STORAGE), result.output
            assert "Traceback" not in result.output

    def test_the_exit_code_of_verify_reports_faults(self, database):
        checked = on(database, "verify", "--all")
        connection = apsw.Connection(str(database))
        connection.execute("DELETE FROM readings WHERE seq = 7")
        connection.close()

        spoilt = on(database, "verify", "--all")
        as_json = on(database, "verify", "--sample", "1", "--seed", "3", "--json", "--quiet")

        assert checked.exit_code == DATA  # its forecasts were never made of its readings
        assert "wrong: road-1: its forecast at arrival number 1 differs" in checked.stdout
        assert spoilt.exit_code == DATA
        assert "wrong: arrival numbers 7 are missing." in spoilt.stdout
        assert json.loads(as_json.stdout)["seed"] == 3

    def test_migrating_a_current_database_changes_nothing(self, database):
        result = on(database, "migrate")

        assert result.exit_code == 0, result.output
        assert "format 2, the format of streamridge" in result.stderr


@pytest.mark.parametrize("command", ["backup", "restore", "prune", "token revoke", "export"])
def test_a_missing_argument_is_a_usage_error(command, database):
    assert invoke(*command.split()).exit_code == USAGE


def test_a_missing_extra_is_named_with_the_command_that_installs_it(database, monkeypatch):
    monkeypatch.setattr(
        "streamridge_service.cli.database.find_spec",
        lambda name: None if name == "apsw" else object(),
    )

    for command in ("verify", "doctor", "serve"):
        result = invoke(command)
        assert result.exit_code == CONFIGURATION
        assert "pip install 'streamridge[service]'" in result.stderr


def test_numbers_survive_an_export_to_the_last_digit(database):
    on(database, "export", "readings.csv.gz")

    with gzip.open("readings.csv.gz", "rt") as file:
        values = {int(row["seq"]): float(row["value"]) for row in csv.DictReader(file)}
    assert values == {entry.seq: entry.value for entry in entries(1, ARRIVALS)}
