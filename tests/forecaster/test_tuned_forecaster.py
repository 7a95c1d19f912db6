"""A forecaster whose hyperparameters are searched on its past now and then."""

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError, replay
from streamridge.datasets import simulate_roads
from streamridge.tuners import HOAG, Bayesian, Fixed, Grid, RandomSearch
from tests.support.tiers import tiered

TUNERS = {
    "random": RandomSearch(4),
    "uniform": RandomSearch(4, spacing="uniform"),
    "hoag": HOAG(iterations=3),
    "grid": Grid(points=2, over=("regularization",)),
    "bayes": Bayesian(3),
    "fixed": Fixed(),
}
every_tuner = pytest.mark.parametrize("tuner", TUNERS.values(), ids=TUNERS)


def small(tuner, **settings):
    return Forecaster(
        "1h",
        lags=4,
        train_size=60,
        update_every=24,
        tuner=tuner,
        **{"warmup": 72, "tune_every": 36, "validation_size": 30, **settings},
    )


@pytest.fixture(scope="module")
def roads():
    return simulate_roads(np.random.default_rng(4), detectors=1, days=9, step_minutes=60)


def feed(forecaster, roads, steps):
    forecasts = []
    for time, value in zip(roads.times[steps], roads.flows[steps, 0], strict=True):
        forecasts.append(forecaster.predict())
        forecaster.observe(time, value)
    return forecasts


@pytest.mark.parametrize(
    ("tuner", "horizon"),
    tiered(TUNERS, [1, 3], quick=lambda *case: case in (("hoag", 3), ("bayes", 3))),
)
def test_saved_and_loaded_it_continues_bit_for_bit(roads, tmp_path, tuner, horizon):
    forecaster = small(TUNERS[tuner], horizon=horizon)
    feed(forecaster, roads, slice(0, 130))
    forecaster.save(tmp_path / "road.sr")

    loaded = Forecaster.load(tmp_path / "road.sr")

    rest = slice(130, 200)  # two searches and two refits
    for one, other in zip(feed(forecaster, roads, rest), feed(loaded, roads, rest), strict=True):
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(one.upper, other.upper)
    assert loaded.hyperparameters == forecaster.hyperparameters
    assert loaded.counts == forecaster.counts
    assert loaded.settings == forecaster.settings


def test_it_counts_searches_and_their_fits(roads):
    forecaster = small(RandomSearch(4))

    feed(forecaster, roads, slice(0, 72 + 40))

    assert forecaster.counts["tunings"] == 2
    assert forecaster.counts["tuning_fits"] == 10
    assert forecaster.tuning.costs.tuning > 0


def test_a_cadence_of_zero_searches_before_the_first_fit_only(roads):
    forecaster = small(RandomSearch(4), tune_every=0)

    feed(forecaster, roads, slice(0, 200))

    assert forecaster.counts["tunings"] == 1


def test_a_run_is_called_by_its_tuner_and_counts_all_fits(roads):
    run = replay(small(RandomSearch(4)), roads.frame(), steps=60)

    record = run.record()
    assert run.method == "random"
    assert record["fits"] == run.counts["fits"] + run.counts["tuning_fits"]


def test_a_tuner_without_learning_is_refused():
    with pytest.raises(InvalidInputError, match="learn must be True with a tuner, got False"):
        small(RandomSearch(4), learn=False)


def test_the_first_search_looks_back_over_a_validation_set_before_the_training_set(roads):
    seen = []

    class Spy(Fixed):
        def tune(self, backtest, start, rng):
            seen.append((len(backtest.training), len(backtest.validation)))
            return super().tune(backtest, start, rng)

    feed(small(Spy(), warmup=160), roads, slice(0, 161))

    assert seen == [(60, 30)]


@pytest.mark.parametrize(
    ("tuner", "message"),
    [
        ("random", "tuner must be one of streamridge.tuners, got 'random'"),
        (Grid(over=("nope",)), "over must be among .*, got 'nope'"),
    ],
)
def test_a_tuner_that_cannot_search_here_is_refused_at_once(tuner, message):
    with pytest.raises(InvalidInputError, match=message):
        small(tuner)
