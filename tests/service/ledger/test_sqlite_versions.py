"""Libraries of SQLite that can damage a database are refused (A3)."""

import apsw
import pytest

from streamridge_service.ledger.errors import LibraryError
from streamridge_service.ledger.opening import open_ledger

VERSIONS = {
    "3.6.23": False,
    "3.7.0": False,
    "3.40.1": False,
    "3.44.5": False,
    "3.44.6": True,
    "3.45.0": False,
    "3.50.6": False,
    "3.50.7": True,
    "3.51.0": False,
    "3.51.2": False,
    "3.51.3": True,
    "3.52.0": True,
    "3.54.1": True,
    "4.0.0": True,
}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unsafe_library_is_refused(tmp_path, monkeypatch, counted, version):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    counted("A3", 1)

    if VERSIONS[version]:
        open_ledger(tmp_path / "ledger.db").close()
    else:
        with pytest.raises(LibraryError, match=f"must be 3.51.3 or later, got {version}"):
            open_ledger(tmp_path / "ledger.db")
        assert list(tmp_path.iterdir()) == []


def test_the_installed_library_is_safe(tmp_path):
    open_ledger(tmp_path / "ledger.db").close()
