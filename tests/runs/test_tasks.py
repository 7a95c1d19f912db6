"""Tasks: how they are built, and what they cost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamridge import InvalidInputError
from streamridge.runs.sources import LeftOut, Source, Sources
from streamridge.runs.tasks import (
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


@pytest.mark.parametrize(
    ("warmup", "first_fit"),
    [(None, 5760), (6000, 5760), (480, 480), (100, 288), (0, 288)],
)
def test_the_first_fit_is_made_by_the_end_of_the_warm_up(warmup, first_fit):
    one = Source("a", timedelta(minutes=15), 7000, "", load=None)

    (task,) = make_tasks(Sources((one,)), ready_made("paper", ["ohl"]), warmup=warmup).ready

    assert task.settings.warmup == first_fit
    assert task.first == (5760 if warmup is None else warmup)


def test_the_default_models_first_fit_does_not_depend_on_the_warm_up():
    one = Source("a", timedelta(minutes=15), 7000, "", load=None)
    methods = ready_made("default", ["ohl"])

    fits = {
        make_tasks(Sources((one,)), methods, warmup=at).ready[0].settings.warmup for at in (0, 500)
    }

    assert fits == {288}


def test_settings_are_those_of_the_step_of_a_series():
    (method,) = ready_made("default", ["ohl"], train_size=96, lags=None).values()

    assert method(timedelta(hours=1)).periods == (24, 168)
    assert method(timedelta(minutes=15)).train_size == 96
