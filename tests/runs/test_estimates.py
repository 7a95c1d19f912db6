"""What tasks are expected to take: the parts of the formulas, never seconds of a clock."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import numpy as np
import pytest

from streamridge import Forecaster
from streamridge.forecaster.methods import tuned_by
from streamridge.forecaster.presets import on_landmarks
from streamridge.runs import estimates
from streamridge.runs.estimates import (
    Speed,
    expected_megabytes,
    expected_seconds,
    megabytes,
    seconds_by_step,
)
from streamridge.runs.sources import Source
from streamridge.runs.tasks import Task

ONLY_FITS, ONLY_STEPS = Speed(1.0, 0.0), Speed(0.0, 1.0)


def task(steps=1000, *, method="ohl", **options):
    settings = Forecaster("15min", train_size=480, update_every=240, **options).settings
    source = Source("a", timedelta(minutes=15), steps, "", load=None)
    return Task(source, tuned_by(method, settings), method)


def test_fits_cost_more_the_more_rows_they_have():
    seconds = seconds_by_step(task(method="fixed"), ONLY_FITS)

    at = np.flatnonzero(seconds)
    sizes = np.array([288, 480, 480]) / 960
    np.testing.assert_array_equal(at, [288, 528, 768])
    np.testing.assert_allclose(seconds[at], 0.35 * sizes**3 + sizes**2)


def test_descending_adds_a_gradient_to_each_fit():
    fixed, ohl = (seconds_by_step(task(method=method), ONLY_FITS) for method in ("fixed", "ohl"))

    assert ohl[288] == pytest.approx(fixed[288] + 0.3**2)


def test_a_search_costs_its_trials_on_half_of_the_rows_at_least():
    fixed, random = (
        seconds_by_step(task(method=method, tune_every=500), ONLY_FITS)
        for method in ("fixed", "random")
    )

    searched = random - fixed
    trial = 0.35 * 0.15**3 + (1 + 1.4) * 0.15**2
    np.testing.assert_array_equal(np.flatnonzero(searched), [288, 788])
    assert searched[288] == pytest.approx(51 * trial)


def test_a_low_rank_fit_costs_by_its_landmarks():
    few, many = (
        seconds_by_step(replace(task(), settings=on(landmarks)), ONLY_FITS)[768]
        for landmarks in (96, 192)
    )

    thin = 3.5 * 0.1**2 + 5 * 0.1 + 1
    assert few == pytest.approx(0.5 * thin)
    assert many == pytest.approx(0.5 * (3.5 * 0.2**2 + 5 * 0.2 + 1))


def on(landmarks):
    """Return the settings of a task on so many landmarks."""
    settings = task().settings
    return replace(settings, preset=on_landmarks(settings.preset, landmarks))


def test_a_search_that_is_never_repeated_costs_once():
    searched = seconds_by_step(task(method="random", tune_every=0), ONLY_FITS)

    assert np.argmax(searched) == 288
    assert (searched > 1).sum() == 1


def test_steps_before_the_first_fit_are_cheaper_than_those_with_a_model():
    seconds = seconds_by_step(task(), ONLY_STEPS)

    assert set(seconds[:288]) == {0.4}
    assert seconds[288:] == pytest.approx(0.5 + 6 * 0.1 + 0.15 / 2)


def test_methods_without_a_model_cost_nothing():
    last = replace(task(), method="last")

    assert not seconds_by_step(last, Speed(1.0, 1.0)).any()


def test_two_at_a_time_take_half_as_long_and_have_a_process_beside_them(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    four, speed = [task()] * 4, Speed(1.0, 1.0)

    one = expected_seconds(four, 1, speed)

    assert expected_seconds(four, 2, speed) == pytest.approx(one / 2)
    assert expected_seconds(four, 4, speed) == pytest.approx(one / 2)  # on two processors
    assert expected_megabytes(four, 1) == pytest.approx(megabytes(four[0]))
    assert expected_megabytes(four, 2) == pytest.approx(95 + 2 * megabytes(four[0]))


@pytest.mark.parametrize(
    ("larger", "smaller", "more"),
    [
        (task(2_000_000), task(1_000_000), 450 + 3 * 24),
        (task(1_000_000, horizon=2), task(1_000_000), 3 * 24 + 4 * 8e-6 * 480**2),
        (task(1_000_000, level=(0.8, 0.9)), task(1_000_000), 2 * 24),
    ],
)
def test_memory_grows_with_steps_and_with_what_is_forecast(larger, smaller, more):
    assert megabytes(larger) - megabytes(smaller) == pytest.approx(more, rel=0.1)


def test_searches_and_several_steps_ahead_hold_more_matrices():
    assert megabytes(task(horizon=2)) > megabytes(task())
    assert megabytes(task(method="random")) > megabytes(task())


def test_the_speed_is_that_of_the_quickest_probe(monkeypatch):
    # A clock on which each probe takes a second less than the one before.
    ticks = count()
    monkeypatch.setattr(estimates, "thread_time", lambda: -float(next(ticks) ** 2))

    speed = Speed.measured()

    assert speed.factorization < 0
    assert speed.operations < speed.factorization
