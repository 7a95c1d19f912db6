"""Bayesian optimization by Optuna's tree-structured Parzen estimator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from streamridge.arrays import Vector, require_count
from streamridge.errors import MissingExtraError
from streamridge.hyperparameters.space import Space
from streamridge.tuners.base import Backtest, Tuned, Tuner


@dataclass(frozen=True)
class Bayesian(Tuner):
    """A search that tries the current hyperparameters, then proposals of a model of past trials.

    Parameters
    ----------
    proposals
        Number of proposals to try.

    Notes
    -----
    Needs Optuna: `pip install 'streamridge[bayes]'`.
    """

    proposals: int = 50

    def __post_init__(self) -> None:
        require_count("proposals", self.proposals)
        _optuna()

    def trials(self, space: Space) -> int:
        return 1 + self.proposals

    def tune(self, backtest: Backtest[Any], start: Vector, rng: np.random.Generator) -> Tuned:
        optuna = _optuna()
        with _quiet(optuna):
            return self._search(optuna, backtest, start, rng)

    def _search(
        self, optuna: Any, backtest: Backtest[Any], start: Vector, rng: np.random.Generator
    ) -> Tuned:
        sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**32)))
        study = optuna.create_study(sampler=sampler)
        asked = _distributions(optuna, backtest.space)
        study.enqueue_trial(_params(backtest.space, start))
        lam, least = start, np.inf
        for number in range(1 + self.proposals):
            trial = study.ask(asked)
            candidate = start if number == 0 else _lam(backtest.space, trial.params)
            loss = backtest.loss(candidate)
            study.tell(trial, loss if np.isfinite(loss) else np.finfo(float).max)
            if loss < least:
                lam, least = candidate, loss
        return Tuned.of(backtest, lam, least)


def _optuna() -> Any:
    try:
        return import_module("optuna")
    except ModuleNotFoundError:
        raise MissingExtraError(
            "optuna must be installed for Bayesian tuning. "
            "Install it with: pip install 'streamridge[bayes]'"
        ) from None


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Let Optuna print only warnings inside the block."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _distributions(optuna: Any, space: Space) -> dict[str, Any]:
    """Return the distribution of every hyperparameter that is searched, by name."""
    found = {}
    for group in space.groups:
        lows, highs = (ends.tolist() for ends in group.feasible.draws)
        for name, low, high in zip(group.names, lows, highs, strict=True):
            if low < high:
                found[name] = optuna.distributions.FloatDistribution(low, high, log=low > 0)
    return found


def _params(space: Space, lam: Vector) -> dict[str, float]:
    """Return the sampler's draws, by name, that correspond to these hyperparameters."""
    pieces = zip(space.groups, space.pieces(lam), strict=True)
    drawn = np.concatenate([group.feasible.to_draws(piece) for group, piece in pieces])
    return dict(zip(space.names, drawn.tolist(), strict=True))


def _lam(space: Space, params: Mapping[str, float]) -> Vector:
    """Return the hyperparameters of some draws, shape (d,); constants are not drawn."""
    pieces = []
    for group in space.groups:
        low, _ = group.feasible.draws
        drawn = [params.get(name, least) for name, least in zip(group.names, low, strict=True)]
        pieces.append(group.feasible.from_draws(np.array(drawn)))
    return np.concatenate(pieces)
