import pytest

from streamridge_service.ledger import layout, sqlite
from streamridge_service.ledger.opening import open_ledger

SMALL_BUCKET = 50


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, folder):
    """Give the address of a new storage, of each database in turn."""
    if request.param == "sqlite":
        return str(folder / "ledger.db")
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def ledger(address):
    with open_ledger(address) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def short_log(monkeypatch):
    """Let the log be folded in several times in a short run, also with a new beginning."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_AT", 24)
    monkeypatch.setattr(sqlite, "RESTART_AT", 40)


@pytest.fixture
def small_buckets(monkeypatch):
    """Let a few readings fill many buckets."""
    monkeypatch.setattr(layout, "BUCKET", SMALL_BUCKET)
