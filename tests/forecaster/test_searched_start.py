"""A forecaster whose start is searched: when, how often, and what stays as it was."""

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError, StateError
from streamridge.datasets import simulate_roads
from streamridge.files.checkpoint import decoded, encoded
from streamridge.forecaster import self_tuning
from streamridge.forecaster.methods import starting_at
from streamridge.tuners import RandomSearch
from streamridge.tuners.start import StartSearch
from tests.support.tiers import tiered

BAD = {"regularization": 100.0, "drifting.rate": 0.01, "weight.linear": 0.01}


@pytest.fixture(scope="module")
def roads():
    return simulate_roads(np.random.default_rng(4), detectors=1, days=20, step_minutes=60)


def small(start="search", **settings):
    return Forecaster(
        "1h", start=start, **{"lags": 4, "train_size": 300, "warmup": 330, **settings}
    )


def observe(forecaster, roads, steps):
    """Return the forecaster after some readings."""
    for time, value in zip(roads.times[steps], roads.flows[steps, 0], strict=True):
        forecaster.observe(time, value)
    return forecaster


def feed(forecaster, roads, steps):
    """Return the forecasts before each of some readings."""
    forecasts = []
    for time, value in zip(roads.times[steps], roads.flows[steps, 0], strict=True):
        forecasts.append(forecaster.predict())
        forecaster.observe(time, value)
    return np.array([(*each.value, *each.lower, *each.upper) for each in forecasts])


def started_badly(start):
    return Forecaster.from_settings(starting_at(BAD, small(start).settings))


@pytest.fixture(scope="module")
def searched(roads):
    """Return a forecaster just after its search; tests only look at it."""
    return observe(started_badly("search"), roads, slice(0, 330))


def test_a_long_history_is_searched_at_the_first_fit(searched):
    forecaster = searched

    assert forecaster.counts["tunings"] == 1
    assert forecaster.counts["tuning_fits"] > 40
    assert forecaster.tuning.costs.tuning > 0
    assert forecaster.hyperparameters["regularization"] < 50
    assert forecaster.tuning.path["regularization"].tolist() == [
        forecaster.hyperparameters["regularization"]
    ]


def test_the_usual_hyperparameters_are_tried_as_well(roads, monkeypatch):
    tried = []
    monkeypatch.setattr(
        self_tuning, "StartSearch", lambda *given: tried.append(given) or StartSearch(*given)
    )

    forecaster = observe(started_badly("search"), roads, slice(0, 330))

    ((_, (usual,)),) = tried
    np.testing.assert_array_equal(usual, small().settings.model.space.values)
    assert not np.array_equal(usual, forecaster.settings.model.space.values)


def test_what_rows_are_made_with_is_not_searched(searched):
    before = started_badly("search").hyperparameters

    rates = [name for name in before if "forgetting" in name]
    assert len(rates) == 2
    after = searched.hyperparameters
    assert [after[name] for name in rates] == pytest.approx([before[name] for name in rates])


def test_a_short_history_is_searched_at_the_refit_that_has_enough_rows(roads):
    forecaster = small(warmup=100, train_size=250, update_every=24)

    observe(forecaster, roads, slice(0, 250))
    early = forecaster.counts.get("tunings", 0)
    observe(forecaster, roads, slice(250, 300))

    assert (early, forecaster.counts["tunings"]) == (0, 1)


def test_a_bad_start_costs_less_when_it_is_searched(roads):
    truth = roads.flows[330:480, 0]
    errors = {}
    for start in ("default", "search"):
        forecaster = observe(started_badly(start), roads, slice(0, 330))
        forecasts = feed(forecaster, roads, slice(330, 480))
        errors[start] = np.sqrt(np.mean((forecasts[:, 0] - truth) ** 2))

    assert errors["search"] < 0.95 * errors["default"]


@pytest.mark.parametrize("at", tiered([200, 331, 450], quick=lambda at: at == 450))
def test_saved_and_loaded_it_continues_bit_for_bit(roads, tmp_path, at):
    forecaster = observe(started_badly("search"), roads, slice(0, at))
    forecaster.save(tmp_path / "road.sr")

    loaded = Forecaster.load(tmp_path / "road.sr")

    ahead = slice(at, 480)
    assert feed(loaded, roads, ahead).tobytes() == feed(forecaster, roads, ahead).tobytes()
    assert loaded.counts == forecaster.counts
    assert loaded.settings.start == "search"


def test_what_changed_since_a_refit_goes_with_the_whole(roads):
    forecaster = observe(small(), roads, slice(0, 340))
    whole = forecaster.to_bytes()
    observe(forecaster, roads, slice(340, 345))

    loaded = Forecaster.from_bytes(whole, forecaster.to_bytes(since_refit=True))

    assert loaded.counts == forecaster.counts


def test_the_same_seed_gives_the_same_start(roads):
    one, other = (observe(small(seed=5), roads, slice(0, 330)) for _ in range(2))

    assert one.hyperparameters == other.hyperparameters


@pytest.mark.parametrize(
    "settings",
    [{"learn": False}, {"train_size": 100}, {"start": "default"}],
    ids=["fixed", "too few rows", "default"],
)
def test_nothing_is_searched_where_there_is_nothing_to_start(roads, settings):
    forecaster = observe(small(**settings), roads, slice(0, 400))

    assert "tunings" not in forecaster.counts


def test_a_tuner_searches_by_itself(roads):
    forecaster = small(tuner=RandomSearch(2), tune_every=0)

    observe(forecaster, roads, slice(0, 340))

    assert (forecaster.counts["tunings"], forecaster.counts["tuning_fits"]) == (1, 3)


def test_the_papers_model_can_be_searched(roads):
    forecaster = Forecaster.paper("1h", start="search", train_size=300, warmup=330, lags=4)
    before = forecaster.hyperparameters

    observe(forecaster, roads, slice(0, 330))

    assert forecaster.hyperparameters["ard.inverse_scales[0]"] != before["ard.inverse_scales[0]"]
    assert forecaster.hyperparameters["periodic.period"] == before["periodic.period"]


def test_a_deferred_refit_searches(roads):
    forecaster = observe(small(defer_refits=True), roads, slice(0, 330))

    forecaster.refit()

    assert forecaster.counts["tunings"] == 1


def test_a_saved_forecaster_without_the_setting_starts_as_before():
    assert "start" not in small("default").settings.described()
    assert small("search").settings.described()["start"] == "search"


@pytest.mark.parametrize("start", ["best", None, 1, ""])
def test_an_unknown_start_is_refused(start):
    with pytest.raises(InvalidInputError, match="start must be one of 'default', 'search', got"):
        Forecaster(start=start)


def test_a_damaged_schedule_is_refused(roads):
    forecaster = observe(small(), roads, slice(0, 340))
    header, state = decoded(forecaster.to_bytes(), "content")
    state["model.schedule.counts"] = -state["model.schedule.counts"]

    with pytest.raises(StateError, match="counts must be"):
        Forecaster.from_bytes(encoded(header, state))
