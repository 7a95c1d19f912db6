import pytest

from streamridge.runs.estimates import Speed
from tests.cli.conftest import invoke  # noqa: F401


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch):
    """Spare the tenth of a second in which a command finds out how fast the machine is."""
    monkeypatch.setattr(Speed, "measured", lambda: Speed(0.01, 0.01))
