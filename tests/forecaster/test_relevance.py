import numpy as np
import pytest

import streamridge as sr
from streamridge.datasets import simulate_roads
from streamridge.errors import InvalidInputError


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    roads = simulate_roads(rng, detectors=3, days=9, step_minutes=60, waves=0.3)
    network = sr.Network("1h", model="compact", train_size=120)
    network.update(roads.frame())
    return network


def test_shares_of_features_sum_to_one_in_descending_order(network):
    found = network["mainline-2"].relevance()

    shares = list(found.features.values())
    assert sum(shares) == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    assert "day, 1 step ago" in found.features


def test_a_scale_that_grows_raises_its_feature(network):
    forecaster = sr.Forecaster.from_bytes(network["mainline-2"].to_bytes())
    scale = next(name for name in forecaster.hyperparameters if name.endswith("scales[3]"))

    forecaster.tuning.set(**{scale: 50.0})

    assert next(iter(forecaster.relevance().features)) == "day, 4 steps ago"


def test_neighbours_come_after_features(network):
    found = network.relevance("mainline-2")

    assert "mainline-1" in found.neighbours
    frame = found.frame()
    assert list(frame.columns) == ["kind", "name", "relevance"]
    assert frame["kind"].tolist()[-1] == "neighbour"
    assert "mainline-1" in found._repr_html_()
    bars = [len(axes.patches) for axes in found.plot().axes]
    assert bars == [len(found.features), len(found.neighbours)]


def test_a_run_knows_its_features():
    rng = np.random.default_rng(0)
    roads = simulate_roads(rng, detectors=1, days=6, step_minutes=60)
    forecaster = sr.Forecaster("1h", model="compact", train_size=60)

    run = sr.replay(forecaster, roads.frame())

    assert run.relevance() == forecaster.relevance()


def test_a_model_without_scales_has_no_relevance():
    kernel = sr.Linear(("lags",))
    preset = sr.Preset(sr.Features(lags=3), sr.KernelRidge(kernel), sr.ConstantStep(0.1))

    with pytest.raises(InvalidInputError, match="one inverse scale for each feature"):
        sr.Forecaster("1h", preset=preset).relevance()
