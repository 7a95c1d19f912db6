import signal

import pytest
from typer.testing import CliRunner

from streamridge import Forecaster
from streamridge.cli.main import app


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Return a way to run the command in an empty folder, with its output in a pipe."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # output is as wide as it needs to be
    return lambda *arguments, **more: CliRunner().invoke(app, list(arguments), **more)


def press_after(monkeypatch, forecasts, number=signal.SIGINT):
    """Press Ctrl-C, or send another signal, once so many forecasts have been made."""
    predict, made = Forecaster.predict, []

    def pressed(self, *arguments):
        made.append(self)
        if len(made) == forecasts:
            signal.raise_signal(number)
        return predict(self, *arguments)

    monkeypatch.setattr(Forecaster, "predict", pressed)
