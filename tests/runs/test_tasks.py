"""Tasks: how they are built, and what they cost."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from streamridge import InvalidInputError
from streamridge.forecaster.methods import tuned_by
from streamridge.runs.sources import LeftOut, Source, Sources
from streamridge.runs.tasks import (
    Task,
    expected_megabytes,
    expected_seconds,
    make_tasks,
    ready_made,
    require_longer,
)
from tests.forecaster.test_forecaster import DAY, small
from tests.runs.test_replay import series


def source(name="a", steps=5 * DAY):
    one = series(name, 0)
    return Source.of(replace(one, values=one.values[:steps]))


def fixed(step):
    return small(learn=False).settings


def test_there_is_a_task_for_each_sensor_and_method_sensor_by_sensor():
    methods = {"one": fixed, "two": fixed}

    tasks = make_tasks(Sources((source("a"), source("b"))), methods, warmup=80, steps=10)

    assert [(task.source.sensor, task.method) for task in tasks.ready] == [
        *(("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")),
    ]
    assert {(task.first, task.length) for task in tasks.ready} == {(80, 90)}


def test_sensors_with_the_same_step_share_their_settings():
    tasks = make_tasks(Sources((source("a"), source("b"))), ready_made("default", ["ohl"]))

    one, other = tasks.ready
    assert one.settings is other.settings


def test_a_series_as_long_as_its_warm_up_is_left_out_once():
    sources = Sources((source("a"), source("b", 72)), (LeftOut("c", "no values"),))

    tasks = make_tasks(sources, {"one": fixed, "two": fixed})

    assert {task.source.sensor for task in tasks.ready} == {"a"}
    assert [str(each) for each in tasks.left_out] == [
        "c: no values, left out",
        "b: 72 steps are not more than the 72 of the warm-up, left out",
    ]


def test_it_is_an_error_if_none_is_longer_than_its_warm_up():
    with pytest.raises(
        InvalidInputError,
        match=r"a: the series must have more than the 72 steps of the warm-up, got 72\. Pass a "
        r"smaller --warmup \(warmup= in Python\), or a longer series\.",
    ):
        make_tasks(Sources((source("a", 72), source("b", 10))), {"one": fixed})
    require_longer("a", 73, 72)


def test_a_task_costs_its_windows_and_its_searches():
    plain = Task(source(), small(train_size=960, warmup=24, update_every=24).settings, "ohl")
    searching = replace(plain, settings=tuned_by("random", plain.settings))

    windows = sum((rows / 960) ** 3 for rows in (24, 48, 72, 96))
    assert plain.factors == pytest.approx(2.2 * windows)
    assert searching.factors > plain.factors
    assert searching.megabytes > plain.megabytes > 150
    assert plain.seconds(10.0) == pytest.approx(10 * plain.factors + 0.12)


def test_two_at_a_time_take_half_as_long_and_twice_the_memory(monkeypatch):
    # A clock that is a second on whenever it is looked at: every factorization takes a second.
    monkeypatch.setattr("streamridge.runs.tasks.perf_counter", count().__next__)
    task = Task(source(), small().settings, "ohl")

    assert expected_seconds([task] * 4, 1) == pytest.approx(4 * task.seconds(1.0))
    assert expected_seconds([task] * 4, 2) == pytest.approx(2 * task.seconds(1.0))
    assert expected_megabytes([task] * 4, 2) == pytest.approx(2 * task.megabytes)


def test_settings_are_those_of_the_step_of_a_series():
    (method,) = ready_made("default", ["ohl"], train_size=96, lags=None).values()

    assert method(timedelta(hours=1)).periods == (24, 168)
    assert method(timedelta(minutes=15)).train_size == 96
