"""A model together with the parameters of its features."""

import numpy as np
import pytest

from streamridge import ARD, InvalidInputError, KernelRidge, Season
from streamridge.features.profiles import Profiles
from streamridge.models.standardized import Joint, kind_of
from tests.support.samples import make_samples

MODEL = KernelRidge(ARD([0.3, 0.05, 0.7, 0.2, 0.4]))
ROWS = Profiles((Season("day", 24, forgetting=0.1, forgetting_bounds=(0.01, 2.0)),)).space


def test_hyperparameters_of_the_model_come_before_parameters_of_the_features():
    joint = Joint(MODEL, ROWS)

    assert joint.space.names == (*MODEL.space.names, "day_forgetting")
    np.testing.assert_array_equal(joint.space.values, [*MODEL.space.values, 0.1])


def test_a_joint_fit_equals_the_fit_of_the_model_at_its_own_hyperparameters(rng):
    joint, train = Joint(MODEL, ROWS), make_samples(rng, 40)
    rows = make_samples(rng, 5, start=40.0).inputs
    lam = 1.1 * joint.space.values

    wanted = MODEL.fit(train, lam[:-1]).predict(rows)

    fits = [joint.fit(train, lam), joint.resume(train, lam, joint.fit(train, lam).state())]
    for fit in fits:
        np.testing.assert_array_equal(fit.predict(rows), wanted)
    close = joint.approximate(train, lam, 1e-10).predict(rows)
    np.testing.assert_allclose(close, wanted, rtol=1e-6)
    np.testing.assert_array_equal(joint.fit(train).predict(rows), MODEL.fit(train).predict(rows))


def test_a_wrong_number_of_hyperparameters_is_refused(rng):
    with pytest.raises(InvalidInputError, match="hyperparameters must have shape"):
        Joint(MODEL, ROWS).fit(make_samples(rng, 9), MODEL.space.values)


def test_fits_of_the_same_kind_of_model_may_share_memory():
    assert kind_of(Joint(MODEL, ROWS)) is kind_of(MODEL) is KernelRidge
