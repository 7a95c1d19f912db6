"""The tuning of a forecaster as an operator sees it: its figures, and actions on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamridge.errors import about
from streamridge.forecaster.ensemble import BASELINE, LAST
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.learners.base import Costs
from streamridge.series.times import Times

if TYPE_CHECKING:
    from streamridge.forecaster.forecaster import Forecaster


class Tuning:
    """A view on the tuning of a forecaster, which is part of it: `forecaster.tuning`.

    Examples
    --------
    >>> from streamridge import Forecaster
    >>> forecaster = Forecaster("1h", train_size=100)
    >>> for hour in range(80):
    ...     time = np.datetime64("2021-06-13T00:00") + np.timedelta64(hour, "h")
    ...     forecaster.observe(time, 100.0 + 50 * np.sin(2 * np.pi * hour / 24))
    >>> forecaster.tuning.freeze("regularization")
    >>> forecaster.tuning.frozen
    ('regularization',)
    """

    __slots__ = ("_forecaster",)

    def __init__(self, forecaster: Forecaster) -> None:
        self._forecaster = forecaster

    def set(self, /, **values: float) -> None:
        """Set hyperparameters by name, such as `set(**{"drifting.rate": 1e-4})`, and refit.

        Tuning continues from there. Freeze a hyperparameter to keep its value.
        """
        with about(self._forecaster.settings.sensor):
            self._forecaster._set(values)

    def rollback(self) -> None:
        """Set all hyperparameters back to their initial values, and refit."""
        space = self._forecaster.settings.model.space
        self.set(**space.named(space.values))

    def freeze(self, *names: str) -> None:
        """Keep hyperparameters constant from now on."""
        with about(self._forecaster.settings.sensor):
            self._forecaster._require_model().freeze(*names)

    def unfreeze(self, *names: str) -> None:
        """Learn frozen hyperparameters again."""
        with about(self._forecaster.settings.sensor):
            self._forecaster._require_model().unfreeze(*names)

    @property
    def has_model(self) -> bool:
        """Return whether the first fit has been made; all actions need it."""
        return self._forecaster._model is not None

    @property
    def frozen(self) -> tuple[str, ...]:
        """Return the names of the hyperparameters that `freeze` keeps constant."""
        model = self._forecaster._model
        return () if model is None else model.frozen

    @property
    def active_bounds(self) -> dict[str, str]:
        """Return the learned hyperparameters at a bound, each with "lower" or "upper"."""
        model = self._forecaster._model
        return {} if model is None else model.active_bounds

    @property
    def path(self) -> HyperparameterPath:
        """Return the path of the hyperparameters over the last 32 refits."""
        with about(self._forecaster.settings.sensor):
            return self._forecaster._require_model().path

    @property
    def refit_times(self) -> Times:
        """Return the times of the refits in `path`, shape (n,)."""
        path = self.path
        return self._forecaster._history.clock.known.times(path.steps)

    @property
    def experts(self) -> dict[str, float]:
        """Return the weights of the ensemble's members in the next forecast; they sum to one.

        "model" is the self-tuned model. "start" is a fit to a quarter of its rows at the initial
        hyperparameters. The others are the last reading, and the values one season ago, such as
        "day" and "week". Empty before the first fit, and without an ensemble: without `learn` or
        `guard`.
        """
        forecaster = self._forecaster
        ensemble, model, history = forecaster._ensemble, forecaster._model, forecaster._history
        if ensemble is None or model is None or history.silent > forecaster.settings.patience:
            return {}
        asleep = {BASELINE: not model.has_baseline, LAST: not history.last_is_recent}
        awake = np.array([not asleep.get(name, False) for name in ensemble.names])
        weights = ensemble.weights(None if awake.all() else awake).tolist()
        return dict(zip(ensemble.names, weights, strict=True))

    @property
    def correction(self) -> dict[str, float]:
        """Return how the last errors correct the next forecast.

        `half_life` is the number of steps after which an error counts half. `share` is the share of
        the mean of the last errors that is added one step ahead. Empty without a correction.
        """
        correction = self._forecaster._calibration.correction
        if correction is None:
            return {}
        return {"half_life": correction.half_life, "share": correction.share}

    @property
    def costs(self) -> Costs:
        """Return the processor seconds spent on tuning, fitting and predicting."""
        return self._forecaster._costs
