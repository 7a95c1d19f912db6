"""Errors that are larger of late than usual widen the bands to come, and only them."""

import numpy as np
import pytest

from streamridge.forecaster.unrest import HALF_LIVES, LEAST, MOST, Unrest


def after(scores, horizon=1):
    unrest = Unrest.start(horizon)
    for score in scores:
        unrest = unrest.observe(0, score)
    return unrest


def test_scores_as_usual_change_nothing():
    assert after(300 * [2.5]).factors() == pytest.approx([1.0], abs=0.02)


def test_larger_scores_widen_and_smaller_ones_narrow():
    assert after(300 * [1.0] + 10 * [4.0]).factors()[0] > 1.4
    assert after(300 * [1.0] + 10 * [0.25]).factors()[0] < 0.75


def test_a_single_glitch_is_forgotten_within_a_day():
    calm = 500 * [1.0]

    glitch = after([*calm, 1e9])

    assert glitch.factors()[0] < np.sqrt(MOST)
    later = after([*calm, 1e9, *(96 * [1.0])])
    assert later.factors() == pytest.approx([1.0], abs=0.1)


def test_sizes_stay_positive_when_every_forecast_is_right():
    still = after(3000 * [0.0])

    assert np.isfinite(still.factors()).all()
    assert still.factors()[0] > 0
    assert (still.late >= LEAST - 1e-12).all()
    awake = after([*(3000 * [0.0]), *(400 * [1.0])])
    assert 0.5 < awake.factors()[0] < 3


def test_each_horizon_has_its_own():
    unrest = after(100 * [1.0] + 20 * [5.0], horizon=2)

    assert unrest.factors()[0] > 1.3
    assert unrest.factors()[1] == 1.0


@pytest.mark.parametrize("length", [3, 200])
def test_half_lives_follow_how_long_unrest_lasts(length):
    rng = np.random.default_rng(0)
    sizes = np.repeat(np.exp(1.2 * rng.standard_normal(4000 // length + 1)), length)[:4000]

    half_life = after(sizes * rng.standard_exponential(4000)).half_life

    middle = np.exp(np.log(HALF_LIVES).mean())
    assert (half_life > middle) == (length == 200)


def test_two_scores_worked_by_hand():
    unrest = after([2.0, 3.0])

    # The first counts for a ninth or more: eight scores of one are taken for seen before any.
    usual = [1.0, 1 + 1 / 8]
    late = [1.0, 1 + (1 - 0.5**0.5)]
    factor = np.sqrt(late[1] / usual[1])
    second = -np.log(factor) - 3 / (factor * usual[1])
    assert unrest.usual == pytest.approx([usual[1] + (3 - usual[1]) / 9])
    assert unrest.late[0, 0] == pytest.approx(late[1] + (1 - 0.5**0.5) * (3 - late[1]))
    assert unrest.fits[0, 0] == pytest.approx((1 - 1 / 200) * -2 + second)
    assert unrest.seen == [2]


def test_saved_and_restored_it_goes_on():
    unrest = after([1.0, 3.0, 0.5])

    restored = Unrest.start(1).restore(unrest.state())

    for name, array in vars(unrest).items():
        np.testing.assert_array_equal(getattr(restored, name), array)
