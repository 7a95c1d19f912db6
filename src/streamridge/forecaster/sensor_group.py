"""Several forecasters by the names of their sensors: failures, and refits that take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from functools import partial
from time import monotonic
from typing import TypeVar

import numpy as np

from streamridge.arrays import require_number
from streamridge.errors import InvalidInputError, StateError, StreamRidgeError, listed, shown
from streamridge.forecaster.forecaster import Forecaster
from streamridge.learners.workspace import Workspace

T = TypeVar("T")


class SensorGroup:
    """The forecasters of several sensors. One that fails takes no further steps."""

    def __init__(self) -> None:
        self._sensors: dict[str, Forecaster] = {}
        self._newest: int | None = None  # the newest step
        self._due: dict[str, int] = {}  # the steps since which refits are due
        self.failures: dict[str, str] = {}  # sensors that failed, and why
        self.engine: Executor | None = None  # makes the refits; None for this process

    def __len__(self) -> int:
        return len(self._sensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sensors)

    def __contains__(self, sensor: object) -> bool:
        return sensor in self._sensors

    def __getitem__(self, sensor: str) -> Forecaster:
        """Return the forecaster of a sensor, whose forecasts are not corrected by neighbours."""
        if sensor not in self._sensors:
            raise InvalidInputError(
                f"sensor must be one of {listed(self.sensors)}, got {shown(sensor)}."
            )
        return self._sensors[sensor]

    @property
    def sensors(self) -> tuple[str, ...]:
        """Return the names of the sensors, in the order they were added."""
        return tuple(self._sensors)

    @property
    def refit_due(self) -> tuple[str, ...]:
        """Return the sensors whose refit is due, those that have waited longest first."""
        self._note_due()
        return tuple(sorted(self._due, key=lambda name: self._due[name]))

    def _note_due(self) -> None:
        """Note since when refits are due."""
        newest = self._newest or 0
        for name, forecaster in self._sensors.items():
            if name in self.failures or not forecaster.refit_due:
                self._due.pop(name, None)
            else:
                self._due.setdefault(name, newest)

    def refit(self, seconds: float | None = None) -> tuple[str, ...]:
        """Refit the sensors that are due, those that have waited longest first; return them.

        Parameters
        ----------
        seconds
            No refit begins after this time; the others stay due. None has no limit.
        """
        limit = np.inf if seconds is None else require_number("seconds", seconds)
        return self._refit(self.refit_due, monotonic() + limit)

    def _refit_some(self, steps: int) -> None:
        """Refit sensors that are due: all first fits, and others so that all take these steps."""
        due = self.refit_due
        first = [name for name in due if not self._sensors[name].tuning.has_model]
        later = [name for name in due if self._sensors[name].tuning.has_model]
        share = -(-len(self) // steps)
        self._refit([*first, *later[:share]], np.inf)

    def _refit(self, names: Sequence[str], end: float) -> tuple[str, ...]:
        done: list[str] = []
        if self.engine is not None:
            done = self._refit_on(self.engine, names, end)
        else:
            workspace = Workspace()  # one for all, freed afterwards
            for name in names:
                if monotonic() >= end:
                    break
                self._attempt(name, lambda forecaster: forecaster.refit(workspace))
                done.append(name)
        for name in done:
            self._due.pop(name, None)
        return tuple(done)

    def _refit_on(self, engine: Executor, names: Sequence[str], end: float) -> list[str]:
        """Refit sensors on the workers of an executor; return those whose refits have begun."""
        content = {name: self._sensors[name].to_bytes() for name in names if monotonic() < end}
        done: list[str] = []
        try:
            futures = {name: engine.submit(refitted, each, end) for name, each in content.items()}
            for name, future in futures.items():
                result = self._attempt(name, partial(_result, future=future))
                if result is not None:
                    self._sensors[name] = Forecaster.from_bytes(result)
                    done.append(name)
        except (BrokenExecutor, CancelledError, RuntimeError) as error:
            raise StateError(
                f"the engine cannot refit: {error}. Refits stay due. Set network.engine to a new "
                "executor, or to None."
            ) from error
        return done

    def _attempt(self, name: str, act: Callable[[Forecaster], T]) -> T | None:
        """Return the result of an act; a sensor that fails takes no further steps."""
        if name in self.failures:
            return None
        try:
            return act(self._sensors[name])
        except (BrokenExecutor, CancelledError):  # of the engine, not of this sensor
            raise
        except Exception as error:  # a failing sensor must not cost the others
            known = isinstance(error, StreamRidgeError) and error.reason
            self.failures[name] = known or f"{type(error).__name__}: {error}"
            return None


def refitted(content: bytes, end: float = np.inf) -> bytes | None:
    """Return a forecaster after a refit; None if the time is over. Workers of an engine call it."""
    if monotonic() >= end:
        return None
    forecaster = Forecaster.from_bytes(content)
    forecaster.refit()
    return forecaster.to_bytes()


def _result(_: Forecaster, future: Future[bytes | None]) -> bytes | None:
    """Return the result of a refit on an engine."""
    return future.result()


def require_engine(engine: object) -> Executor | None:
    """Return an engine, or None; raise at anything else."""
    if not isinstance(engine, Executor | None):
        raise InvalidInputError(
            f"engine must be a concurrent.futures.Executor or None, got {shown(engine)}."
        )
    return engine
