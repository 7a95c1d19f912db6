import numpy as np
import pytest

from streamridge import (
    AutoregressiveRidge,
    Features,
    InvalidInputError,
    KernelRidge,
    Matern,
    OnlineLearner,
    Periodic,
    RollingLearner,
    Samples,
    run,
)
from streamridge.learners.base import Costs
from streamridge.learners.rolling import LEAST_SAMPLES
from streamridge.tuners import Fixed, Grid, RandomSearch, Tuned
from streamridge.tuners.base import Backtest

LAGS, N, V = 3, 30, 20
# A start so bad that every search finds something better.
MODEL = AutoregressiveRidge(np.full(LAGS, 900.0), penalties_bounds=(1e-3, 1e3))
KERNEL_MODEL = KernelRidge(Periodic(12.0) + Matern(np.full(LAGS, 0.2)))


def make_samples(rng, *, horizon=1, steps=160):
    t = np.arange(steps)
    series = np.sin(2 * np.pi * t / 12) + 0.3 * rng.normal(size=steps)
    return Features(LAGS).samples(series, horizon=horizon)


def make_learner(history, tuner=None, *, model=MODEL, m=6, n=12, **settings):
    return RollingLearner(
        model,
        history,
        tuner or RandomSearch(5),
        train_size=N,
        update_every=m,
        tune_every=n,
        validation_size=V,
        **settings,
    )


class Spy:
    """Remembers what it was shown, and leaves everything as it is."""

    def __init__(self):
        self.shown = []

    def trials(self, space):
        return 0

    def tune(self, backtest, start, rng):
        self.shown.append((backtest.training, backtest.validation))
        return Tuned.of(backtest, start, 0.0)


def algorithm_1(samples, history, tuner, *, m, n, steps, seed=0):
    """Yield the forecasts of Algorithm 1, line by line; horizon one."""
    lam = MODEL.space.values
    for t in range(steps):
        known = samples[: history + t]
        if t % n == 0:
            validation, before = known[-V:], known[:-V]
            rng = np.random.default_rng([seed, t // n])
            lam = tuner.tune(Backtest(MODEL, before[-N:], validation), lam, rng).lam
        if t % m == 0:
            fit = MODEL.fit(known[-N:], lam)
        yield fit.predict(samples.inputs[history + t : history + t + 1])[0]


@pytest.mark.parametrize(("m", "n"), [(6, 12), (6, 6), (5, 12), (12, 5), (1, 7)])
def test_forecasts_are_those_of_algorithm_1_line_by_line(rng, m, n):
    samples, history, steps = make_samples(rng), 80, 40
    learner = make_learner(samples[:history], m=m, n=n)

    forecasts = [step.forecast for step in run(learner, samples[history : history + steps])]

    expected = list(algorithm_1(samples, history, RandomSearch(5), m=m, n=n, steps=steps))
    np.testing.assert_allclose(forecasts, expected, rtol=1e-12)
    assert learner.tally.tunings == 1 + steps // n
    assert learner.tally.fits == 6 * learner.tally.tunings
    assert learner.refits == 1 + steps // m


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("model", [MODEL, KERNEL_MODEL], ids=["autoregressive", "kernel"])
def test_what_comes_later_changes_no_forecast_and_no_search(rng, horizon, model):
    samples = make_samples(rng, horizon=horizon)
    history, poisoned_from = 70, 90
    t = samples.t[:, None] + np.arange(horizon)
    late = t >= samples.t[poisoned_from]
    poison = Samples(samples.inputs, np.where(late, 1e6, samples.y))
    stop = poisoned_from - horizon  # rows before it have no poisoned label

    clean, dirty = (make_learner(each[:history], model=model) for each in (samples, poison))
    pairs = [
        (one.forecast, other.forecast)
        for one, other in zip(
            run(clean, samples[history:stop]), run(dirty, poison[history:stop]), strict=True
        )
    ]

    assert len(pairs) == stop - history
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
    assert clean.tally.tunings > 1
    assert clean.hyperparameters == dirty.hyperparameters


@pytest.mark.parametrize("horizon", [1, 3])
def test_labels_of_the_history_that_are_not_known_yet_are_not_searched_on(rng, horizon):
    samples, history = make_samples(rng, horizon=horizon), 70
    known = samples.t[:history, None] + np.arange(horizon) <= samples.t[history - 1]
    poison = Samples(samples.inputs[:history], np.where(known, samples.y[:history], 1e6))

    clean, dirty = make_learner(samples[:history]), make_learner(poison)

    assert clean.hyperparameters == dirty.hyperparameters


@pytest.mark.parametrize("horizon", [1, 4])
def test_a_search_forecasts_the_latest_samples_by_fits_on_those_before(rng, horizon):
    samples, history, spy = make_samples(rng, horizon=horizon), 80, Spy()
    learner = make_learner(samples[:history], spy)
    for _ in run(learner, samples[history : history + 12]):
        pass

    training, validation = spy.shown[-1]

    newest = samples.t[history + 11] - horizon + 1  # the last row whose labels are all known
    np.testing.assert_array_equal(validation.t, np.arange(newest - V + 1, newest + 1))
    assert training.t[-1] + horizon - 1 < validation.t[0]
    assert len(training) == N
    assert len(spy.shown) == 2


def test_a_search_takes_half_of_a_short_history(rng):
    spy = Spy()

    make_learner(make_samples(rng)[:24], spy)

    training, validation = spy.shown[0]
    assert (len(training), len(validation)) == (12, 12)


def test_too_short_a_history_is_not_searched(rng):
    spy = Spy()

    learner = make_learner(make_samples(rng)[:23], spy)

    assert spy.shown == []
    assert learner.tally.tunings == 0


@pytest.mark.parametrize("n", [None, 12])
def test_a_first_search_that_had_too_little_is_made_as_soon_as_enough_is_known(rng, n):
    spy, samples = Spy(), make_samples(rng)
    learner = make_learner(samples[:20], spy, n=n)

    for _ in run(learner, samples[20:27]):
        pass

    assert [len(training) + len(validation) for training, validation in spy.shown] == [24]


def test_between_a_search_and_the_next_refit_the_fit_in_force_stays(rng):
    samples, history = make_samples(rng), 80
    learner = make_learner(samples[:history], m=10, n=7)
    fits = []
    for _ in run(learner, samples[history : history + 9]):
        fits.append(learner.fit)

    assert all(fit is fits[0] for fit in fits)
    assert learner.tally.tunings == 2


def test_without_a_cadence_it_searches_once(rng):
    samples, history = make_samples(rng), 80
    learner = make_learner(samples[:history], n=None)
    first = learner.hyperparameters

    for _ in run(learner, samples[history:]):
        pass

    assert learner.tally.tunings == 1
    assert learner.hyperparameters == first


def test_a_tuner_that_keeps_everything_forecasts_as_a_fixed_learner(rng):
    samples, history = make_samples(rng), 80
    rolling = make_learner(samples[:history], Fixed())
    fixed = OnlineLearner(MODEL, samples[:history], train_size=N, update_every=6, learn=False)

    pairs = zip(run(rolling, samples[history:]), run(fixed, samples[history:]), strict=True)

    for one, other in pairs:  # the fixed one goes through logarithms
        np.testing.assert_allclose(one.forecast, other.forecast, rtol=1e-12)


def test_a_search_leaves_frozen_hyperparameters_where_they_are(rng):
    samples, history = make_samples(rng), 80
    learner = make_learner(samples[:history])
    learner.freeze("penalties[1]")
    before = learner.hyperparameters

    for _ in run(learner, samples[history : history + 24]):
        pass

    after = learner.hyperparameters
    assert after["penalties[1]"] == before["penalties[1]"]
    assert after["penalties[0]"] != before["penalties[0]"]


def test_another_seed_draws_others(rng):
    history = make_samples(rng)[:80]

    one, same, other = (make_learner(history, seed=seed).hyperparameters for seed in (0, 0, 1))

    assert one == same
    assert one != other


def test_seconds_of_a_search_are_tuning_and_nothing_else(rng):
    samples, costs = make_samples(rng), Costs()
    learner = make_learner(samples[:80], costs=costs)
    fitting = costs.fitting

    for _ in run(learner, samples[80:84]):  # no refit, no search
        pass

    assert learner.costs is costs
    assert costs.tuning > 0
    assert costs.fitting == fitting  # 6 fits of the search are not among them


def test_kernel_weights_are_searched_on_their_simplex(rng):
    samples = make_samples(rng)

    learner = make_learner(samples[:80], Grid(points=3, over=("weight",)), model=KERNEL_MODEL)

    weights = [value for name, value in learner.hyperparameters.items() if "weight" in name]
    assert sum(weights) == pytest.approx(1.0)
    assert learner.tally.fits == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "tune_every must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"m": 0}, "update_every must be a whole number of at least 1, got 0"),
    ],
)
def test_settings_are_checked_before_any_search(rng, settings, message):
    with pytest.raises(InvalidInputError, match=message):
        make_learner(make_samples(rng)[:80], **settings)


@pytest.mark.parametrize("horizon", [1, 2, 24])
def test_the_first_search_waits_until_there_is_something_to_fit_and_to_forecast(horizon, rng):
    history = make_samples(rng, horizon=horizon)
    enough = LEAST_SAMPLES + 3 * (horizon - 1)  # labels of the last H - 1 rows are not yet known

    def searches(size):
        return RollingLearner(MODEL, history[:size], RandomSearch(2)).tally.tunings

    counts = [searches(size) for size in range(horizon, 120)]

    assert counts == [int(size >= enough) for size in range(horizon, 120)]


class Halving:
    """Finds half of what it is given, whatever the backtest says."""

    def trials(self, space):
        return 0

    def tune(self, backtest, start, rng):
        return Tuned.of(backtest, backtest.space.feasible.project(start / 2), 0.0)


def test_a_frozen_value_stays_though_a_search_has_found_another(rng):
    samples, history = make_samples(rng), 80
    learner = make_learner(samples[:history], Halving(), m=8, n=3)
    for _ in run(learner, samples[history : history + 3]):
        pass

    learner.freeze("penalties[0]")
    for _ in run(learner, samples[history + 3 : history + 8]):
        pass

    assert learner.hyperparameters["penalties[0]"] == 450
    assert learner.hyperparameters["penalties[1]"] == 112.5


def test_setting_one_hyperparameter_keeps_what_a_search_has_found_for_the_others(rng):
    samples, history = make_samples(rng), 80
    learner = make_learner(samples[:history], Halving(), m=8, n=3)
    for _ in run(learner, samples[history : history + 3]):
        pass

    learner.assign({"penalties[0]": 0.5})

    assert learner.hyperparameters["penalties[0]"] == 0.5
    assert learner.hyperparameters["penalties[1]"] == 225


def test_the_first_search_sees_whole_sets_and_no_label_twice(rng):
    spy = Spy()

    make_learner(make_samples(rng, horizon=3), spy)

    training, validation = spy.shown[0]
    assert (len(training), len(validation)) == (N, V)
    assert training.t[-1] + 2 < validation.t[0]
