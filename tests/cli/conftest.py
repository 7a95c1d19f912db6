import pytest
from typer.testing import CliRunner

from streamridge.cli.main import app


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Return a way to run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, **more: CliRunner().invoke(app, list(arguments), **more)
