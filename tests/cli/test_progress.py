"""The rough cost of tasks: its formula, never seconds of a clock."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from streamridge import Forecaster
from streamridge.cli.progress import Estimate, megabytes_of, seconds_of
from streamridge.forecaster.methods import tuned_by
from streamridge.forecaster.presets import on_landmarks
from streamridge.forecaster.sizes import NAMED
from streamridge.runs.tasks import Task
from streamridge.series.clock import Clock
from streamridge.series.series import Series


def task(steps=1000, *, method="ohl", sensor="a", train_size=480, update_every=240, **options):
    settings = Forecaster(
        "15min", train_size=train_size, update_every=update_every, **options
    ).settings
    series = Series(sensor, Clock(timedelta(minutes=15)), 0, np.zeros(steps))
    return Task(series, tuned_by(method, settings), method)


DEFAULT = NAMED["default"]


def test_the_cost_is_that_of_the_measured_size():
    rows = DEFAULT.train_size
    default = task(2 * rows + 1, train_size=rows, update_every=rows, warmup=rows)

    steps = (2 * rows + 1) * DEFAULT.measured.step
    assert seconds_of(default) == pytest.approx(steps + 2 * DEFAULT.measured.refit)


def test_a_refit_of_all_rows_costs_the_square_of_their_number():
    rare, often = (
        task(2000, train_size=240, warmup=480, update_every=every) for every in (1520, 760)
    )

    share = 240 * 240 / (DEFAULT.train_size * DEFAULT.landmarks)
    assert seconds_of(often) - seconds_of(rare) == pytest.approx(share * DEFAULT.measured.refit)


def test_a_low_rank_refit_costs_in_proportion_to_its_landmarks():
    few, many = (
        seconds_of(replace(task(), settings=on(landmarks))) - 1000 * DEFAULT.measured.step
        for landmarks in (96, 192)
    )

    assert many == pytest.approx(2 * few)


def on(landmarks):
    """Return the settings of a task with a number of landmarks."""
    settings = task(train_size=240).settings
    return replace(settings, preset=on_landmarks(settings.preset, landmarks))


def test_a_search_costs_its_trials_each_time():
    fixed, once, twice = (
        seconds_of(task(1000, method=method, warmup=400, tune_every=every))
        for method, every in (("fixed", 600), ("random", 600), ("random", 300))
    )

    assert twice - fixed == pytest.approx(2 * (once - fixed))
    assert once > fixed


def test_methods_without_a_model_cost_nothing():
    last = replace(task(), method="last")

    assert seconds_of(last) == 0
    assert Estimate.of([last], 1).fits == 0


def test_two_at_a_time_take_half_as_long_and_need_the_memory_of_three_processes(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    four = [task(40_000, sensor=name) for name in "abcd"]

    one, two, many = (Estimate.of(four, jobs) for jobs in (1, 2, 8))

    assert (one.sensors, one.runs, one.steps, one.fits) == (4, 4, 40_000, 4 * 166)
    assert two.seconds == many.seconds == pytest.approx(one.seconds / 2, abs=0.1)  # two processors
    assert (one.processes, two.processes, many.processes) == (1, 2, 4)
    assert one.megabytes == round(megabytes_of(four[0]))
    assert two.megabytes == pytest.approx(95 + 2 * megabytes_of(four[0]), abs=1)


@pytest.mark.parametrize(
    ("larger", "smaller", "more"),
    [
        (task(2_000_000), task(1_000_000), 450 + 3 * 24),
        (task(1_000_000, horizon=2), task(1_000_000), 3 * 24 + 4 * 8e-6 * 480**2),
        (task(1_000_000, level=(0.8, 0.9)), task(1_000_000), 2 * 24),
    ],
)
def test_memory_grows_with_steps_and_with_the_numbers_of_a_forecast(larger, smaller, more):
    assert megabytes_of(larger) - megabytes_of(smaller) == pytest.approx(more, rel=0.1)


def test_searches_and_longer_horizons_hold_more_matrices():
    assert megabytes_of(task(horizon=2)) > megabytes_of(task())
    assert megabytes_of(task(method="random")) > megabytes_of(task())
