"""Signals for the command while it runs."""

import signal

from streamridge import Forecaster


def press_after(monkeypatch, forecasts, number=signal.SIGINT):
    """Press Ctrl-C, or send another signal, once `forecasts` forecasts have been made."""
    predict, made = Forecaster.predict, []

    def pressed(self, *arguments):
        made.append(self)
        if len(made) == forecasts:
            signal.raise_signal(number)
        return predict(self, *arguments)

    monkeypatch.setattr(Forecaster, "predict", pressed)
