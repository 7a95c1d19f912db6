import numpy as np

from streamridge import ARD, Features, KernelRidge, OnlineLearner, Step, run
from streamridge.learners.base import Costs

MODEL = KernelRidge(ARD(np.full(3, 0.2)))


def test_a_learner_counts_the_seconds_of_every_kind_of_work(rng):
    samples = Features(lags=3).samples(rng.normal(size=80))
    costs = Costs()
    learner = OnlineLearner(MODEL, samples[:40], update_every=8, costs=costs)

    list(run(learner, samples[40:]))

    assert learner.costs is costs
    assert min(costs.tuning, costs.fitting, costs.predicting) > 0
    assert costs.total == costs.tuning + costs.fitting + costs.predicting


def test_without_learning_nothing_is_spent_on_tuning(rng):
    samples = Features(lags=3).samples(rng.normal(size=80))
    learner = OnlineLearner(MODEL, samples[:40], update_every=8, learn=False)

    list(run(learner, samples[40:]))

    assert learner.costs.tuning == 0.0


def test_work_within_other_work_is_counted_once_as_the_outer_kind():
    costs = Costs()

    with costs.spending("tuning"), costs.spending("fitting"):
        sum(range(10_000))

    assert costs.fitting == 0.0
    assert costs.tuning > 0.0


def test_the_error_of_a_step_is_actual_less_forecast():
    assert Step(time=1.0, forecast=np.array([3.0, 9.0]), actual=5.0).error == 2.0
