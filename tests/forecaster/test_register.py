"""Kernels, models, features, step rules and tuners from outside, in forecasters that are saved."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from streamridge import (
    Features,
    Forecaster,
    InvalidInputError,
    KernelRidge,
    Linear,
    Preset,
    Standardized,
    StateError,
    register,
)
from streamridge.forecaster import saving
from streamridge.models.base import Model, ModelFit
from streamridge.tuners import Tuned, Tuner
from tests.support.forecasters import DAY, daily, live, same


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    monkeypatch.setattr(saving, "KINDS", dict(saving.KINDS))


@dataclass(frozen=True)
class Doubled(Linear):
    """A kernel from outside: the linear one under another name."""


@dataclass(frozen=True)
class Wrapped(Model):
    """A model from outside that implements the abstract methods only."""

    model: KernelRidge

    @property
    def space(self):
        return self.model.space

    def fit(self, samples, lam, before=None):
        return CoreFit(self.model.fit(samples, lam))

    def resume(self, samples, lam, state):
        return CoreFit(self.model.resume(samples, lam, state))


@dataclass
class CoreFit(ModelFit):
    fit: ModelFit

    def predict(self, inputs):
        return self.fit.predict(inputs)

    def window_loss(self, window):
        return self.fit.window_loss(window)

    def loss_and_gradient(self, window, tangents=None, loss=None):
        value, gradient = self.fit.loss_and_gradient(window)
        return value, np.append(gradient, np.zeros(0 if tangents is None else len(tangents.window)))

    def release(self):
        return self.fit.release()

    def state(self):
        return self.fit.state()


@dataclass(frozen=True)
class ShortLags(Features):
    """Features from outside."""

    lags: int = 2


@dataclass(frozen=True)
class Halving:
    """A step rule from outside."""

    rate: float = 0.1

    def start(self, z):
        return np.zeros(0)

    def step(self, z, g, memory):
        return self.rate * g / 2, memory


@dataclass(frozen=True)
class Middle(Tuner):
    """A tuner from outside: it goes half of the way from the start to the middle of the box."""

    share: float = field(default=0.5)

    def trials(self, space):
        return 1

    def tune(self, backtest, start, rng):
        space = backtest.space
        return Tuned.of(backtest, space.feasible.project(start * (1 - self.share) + 0.1), 0.0)


def outside(**settings):
    kernel = Doubled(("lags",))
    model = Standardized(Wrapped(KernelRidge(kernel, regularization=0.5)))
    preset = Preset(ShortLags(), model, Halving())
    sizes = {"train_size": 60, "update_every": DAY, "warmup": 3 * DAY}
    return Forecaster("1h", preset=preset, **sizes, **settings)


KINDS = (Doubled, Wrapped, ShortLags, Halving, Middle)


@pytest.mark.parametrize("tuner", [None, Middle()], ids=["online", "rolling"])
def test_a_forecaster_with_parts_from_outside_is_saved_and_continues_bit_for_bit(tuner, tmp_path):
    for kind in KINDS:
        register(kind)
    values = daily(8 * DAY)
    forecaster = outside(tuner=tuner)
    live(forecaster, values[: 5 * DAY + 3])

    forecaster.save(tmp_path / "outside.sr")
    loaded = Forecaster.load(tmp_path / "outside.sr")

    assert loaded.settings == forecaster.settings
    later = values[5 * DAY + 3 :]
    for one, other in zip(
        live(forecaster, later, 5 * DAY + 3), live(loaded, later, 5 * DAY + 3), strict=True
    ):
        same(one, other)
    assert loaded.tuning.has_model


def test_an_unregistered_class_cannot_be_saved_and_the_error_says_what_to_do(tmp_path):
    with pytest.raises(InvalidInputError, match=r"classes given to streamridge\.register"):
        outside().save(tmp_path / "outside.sr")

    assert not (tmp_path / "outside.sr").exists()


def test_an_unregistered_class_cannot_be_loaded_and_the_error_says_what_to_do(
    tmp_path, monkeypatch
):
    for kind in KINDS:
        register(kind)
    outside().save(tmp_path / "outside.sr")
    monkeypatch.delitem(saving.KINDS, "ShortLags")

    with pytest.raises(StateError, match=r"got 'ShortLags'\. Import the module that gives it to"):
        Forecaster.load(tmp_path / "outside.sr")


def test_only_dataclasses_can_be_registered():
    with pytest.raises(InvalidInputError, match="kind must be a dataclass, got <class 'int'>"):
        register(int)


def test_a_name_that_is_taken_is_refused():
    other = dataclass(frozen=True)(type("Linear", (), {"__module__": "elsewhere"}))

    with pytest.raises(InvalidInputError, match=r"Linear, which is used by streamridge\.kernels"):
        register(other)


def test_the_same_class_may_be_registered_twice():
    assert register(register(Halving)) is Halving


def test_a_model_without_a_spread_of_its_own_still_has_bands():
    forecasts = live(outside(), daily(6 * DAY))

    last = forecasts[-1]
    assert last.source == "model"
    assert last.lower[0] < last.value[0] < last.upper[0]
    assert np.isfinite([last.lower, last.upper]).all()
