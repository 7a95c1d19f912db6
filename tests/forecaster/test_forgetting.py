"""How fast courses forget, learned with all other hyperparameters of a forecaster."""

from dataclasses import replace

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.forecaster.methods import starting_at
from streamridge.forecaster.presets import FORGETTING
from streamridge.learners.workspace import times_of
from streamridge.tuners import HOAG, Grid, RandomSearch
from tests.oracles import central_difference
from tests.support.tiers import each_horizon

START, STEP, DAY = np.datetime64("2021-03-20T00:00", "m"), np.timedelta64(180, "m"), 8
RATES = ("day_forgetting", "week_forgetting")


def noisy(count, seed=0):
    """Return days whose height wanders, with a week in them and gaps."""
    rng, t = np.random.default_rng(seed), np.arange(count)
    heights = np.repeat(100 + rng.normal(0, 6, count // DAY + 1).cumsum(), DAY)[:count]
    values = heights * (1.5 + np.sin(2 * np.pi * t / DAY)) * (1 - 0.3 * (t // DAY % 7 == 6))
    values += rng.normal(0, 3, count)
    values[rng.random(count) < 0.03] = np.nan
    return values


def lived(count=30 * DAY, **settings):
    """Return a small forecaster after some readings."""
    given = {"lags": 3, "train_size": 90, "update_every": 24, "warmup": 60, **settings}
    forecaster = Forecaster("3h", **given)
    feed(forecaster, 0, count)
    return forecaster


def feed(forecaster, first, last):
    for t, value in enumerate(noisy(60 * DAY)[:last]):
        if t >= first:
            forecaster.observe(START + t * STEP, None if np.isnan(value) else value)


def rates(forecaster):
    return [forecaster.hyperparameters[name] for name in RATES]


def test_rates_are_hyperparameters_that_move():
    forecaster = Forecaster("3h")
    assert rates(forecaster) == list(FORGETTING)

    forecaster = lived()

    assert all(rate != start for rate, start in zip(rates(forecaster), FORGETTING, strict=True))
    for name, start in zip(RATES, FORGETTING, strict=True):
        path = forecaster.tuning.path[name]
        assert path[0] == pytest.approx(start, rel=1e-12)
        assert len(set(path.tolist())) > 3


@each_horizon(1, 3)
def test_the_gradient_is_the_derivative_of_the_loss_refit_included(horizon):
    holidays = ["2021-04-02", "2021-04-05"]
    forecaster = lived(horizon=horizon, holidays=holidays, guard=False)
    forecaster.tuning.set(day_forgetting=0.3, week_forgetting=0.2)
    feed(forecaster, 30 * DAY, 30 * DAY + 16)
    model, rows = forecaster.settings.model, forecaster._history.rows
    fitted, fit = forecaster._model.progress.current, forecaster._model.fit

    def window_at(lam):
        return rows.between(forecaster._model.progress.refit_time - horizon + 1, np.inf, lam)

    def loss(lam):
        known = rows.at(times_of(fitted.runs), lam)
        return model.fit(known, lam).window_loss(window_at(lam))

    window = window_at(fitted.lam)
    tangents = rows.tangents(times_of(fitted.runs), window.t, fitted.lam)
    g = fit.loss_and_gradient(window, tangents)[1]

    names = list(forecaster.hyperparameters)
    chosen = [names.index(name) for name in (*RATES, "regularization", "drifting.rate")]

    def moved(part):
        lam = fitted.lam.copy()
        lam[chosen] = part
        return loss(lam)

    wanted = central_difference(moved, fitted.lam[chosen])
    np.testing.assert_allclose(g[chosen], wanted, rtol=1e-6, atol=1e-7)
    summed = fit.step_gradients(window, tangents).sum(axis=0)
    np.testing.assert_allclose(summed, g, rtol=1e-9, atol=1e-9 * abs(g).max())


def test_the_next_row_is_made_with_the_rates_in_force():
    forecaster = lived()
    before = forecaster.predict().value

    forecaster.tuning.set(week_forgetting=1.9)
    after = forecaster.predict().value

    assert rates(forecaster)[1] == 1.9
    features = forecaster._model.features
    assert [season.forgetting for season in features.seasons] == rates(forecaster)
    assert after != before


@each_horizon(1, 3)
def test_a_forecaster_at_rest_or_saved_continues_bit_for_bit(horizon):
    awake = lived(horizon=horizon)
    twin = Forecaster.from_bytes(awake.to_bytes())

    for first in range(30 * DAY, 36 * DAY, 5):
        twin.workspace = None
        for each in (awake, twin):
            feed(each, first, first + 5)
        np.testing.assert_array_equal(awake.predict().value, twin.predict().value)

    assert awake.hyperparameters == twin.hyperparameters


def test_a_frozen_rate_stays_and_the_other_moves():
    forecaster = lived()
    forecaster.tuning.freeze("day_forgetting")
    day, week = rates(forecaster)

    feed(forecaster, 30 * DAY, 40 * DAY)

    assert rates(forecaster)[0] == day
    assert rates(forecaster)[1] != week
    assert forecaster.tuning.frozen == ("day_forgetting",)


@pytest.mark.parametrize(
    "tuner", [RandomSearch(3), HOAG(iterations=3), Grid(points=2, over=("regularization",))]
)
def test_a_search_on_the_past_leaves_the_rates_as_they_are(tuner):
    forecaster = lived(15 * DAY, tuner=tuner, tune_every=48, validation_size=40)

    assert rates(forecaster) == list(FORGETTING)
    assert forecaster.counts["fits"] > 1
    with pytest.raises(InvalidInputError, match=r"must lie .* got day_forgetting = 0.3"):
        forecaster.tuning.set(day_forgetting=0.3)


def test_without_learning_rates_stay_and_can_be_set():
    forecaster = lived(15 * DAY, learn=False)
    forecaster.tuning.set(day_forgetting=0.5)
    feed(forecaster, 15 * DAY, 20 * DAY)

    assert rates(forecaster) == pytest.approx([0.5, FORGETTING[1]], rel=1e-12)


def test_a_start_may_name_a_rate():
    settings = starting_at({"week_forgetting": 0.7, "regularization": 1.0}, lived(0).settings)

    forecaster = Forecaster.from_settings(settings)

    assert rates(forecaster) == [FORGETTING[0], 0.7]
    assert forecaster.hyperparameters["regularization"] == 1.0
    assert (
        Forecaster.from_settings(replace(settings, learn=False)).hyperparameters["week_forgetting"]
        == 0.7
    )


def test_the_papers_model_knows_no_rates():
    assert not any("forgetting" in name for name in Forecaster.paper().hyperparameters)
