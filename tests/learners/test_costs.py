import numpy as np

from streamridge import ARD, Features, KernelRidge, OnlineLearner, run
from streamridge.models.timed import Costs, TimedModel


def test_timing_changes_no_forecast_and_counts_every_kind(rng):
    samples = Features(lags=3).samples(rng.normal(size=80))
    plain = KernelRidge(ARD(np.full(3, 0.2)))
    timed = TimedModel(plain, Costs())

    first, second = (
        [s.forecast[0] for s in run(OnlineLearner(m, samples[:40], update_every=8), samples[40:])]
        for m in (plain, timed)
    )

    np.testing.assert_array_equal(first, second)
    costs = timed.costs
    assert min(costs.tuning, costs.fitting, costs.predicting) > 0
    assert costs.total == costs.tuning + costs.fitting + costs.predicting


def test_without_learning_nothing_is_spent_on_tuning(rng):
    samples = Features(lags=3).samples(rng.normal(size=80))
    timed = TimedModel(KernelRidge(ARD(np.full(3, 0.2))), Costs())

    list(run(OnlineLearner(timed, samples[:40], update_every=8, learn=False), samples[40:]))

    assert timed.costs.tuning == 0.0


def test_a_timed_learner_goes_on_from_its_state(rng):
    samples = Features(lags=3).samples(rng.normal(size=80))

    def build():
        model = TimedModel(KernelRidge(ARD(np.full(3, 0.2))), Costs())
        return OnlineLearner(model, samples[:40], update_every=8)

    learner, twin = build(), build()
    list(run(learner, samples[40:51]))
    twin.restore(learner.state())
    learner.release()

    for one, other in zip(run(learner, samples[51:]), run(twin, samples[51:]), strict=True):
        np.testing.assert_array_equal(one.forecast, other.forecast)
