"""Tasks: how they are made of sensors and methods."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.files.reading import LeftOut, ReadResult
from streamridge.runs.tasks import make_tasks, named_methods, require_longer
from streamridge.series.clock import Clock
from streamridge.series.series import Series
from tests.support.forecasters import DAY, small
from tests.support.series import series


def read(**steps):
    """Return series by the names of their sensors, given their lengths."""
    every = {name: series(name, 0) for name in steps}
    return ReadResult(
        {name: replace(one, values=one.values[: steps[name]]) for name, one in every.items()}
    )


def quarters(steps=7000):
    """Return a series of quarters of an hour."""
    return ReadResult({"a": Series("a", Clock(timedelta(minutes=15)), 0, np.zeros(steps))})


def fixed(step):
    return small(learn=False).settings


def test_there_is_a_task_for_each_sensor_and_method_sensor_by_sensor():
    methods = {"one": fixed, "two": fixed}

    tasks, _ = make_tasks(read(a=5 * DAY, b=5 * DAY), methods, warmup=80, steps=10)

    assert [(task.series.sensor, task.method) for task in tasks] == [
        *(("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")),
    ]
    assert {(task.first, task.length) for task in tasks} == {(80, 90)}


def test_sensors_with_the_same_step_share_their_settings():
    (one, other), _ = make_tasks(read(a=5 * DAY, b=5 * DAY), named_methods("default", ["ohl"]))

    assert one.settings is other.settings


def test_a_series_as_long_as_its_warm_up_is_left_out_once():
    result = replace(read(a=5 * DAY, b=72), left_out=(LeftOut("c", "no values"),))

    tasks, left_out = make_tasks(result, {"one": fixed, "two": fixed})

    assert {task.series.sensor for task in tasks} == {"a"}
    assert [str(each) for each in left_out] == [
        "c: no values, left out",
        "b: 72 steps are not more than the 72 of the warm-up, left out",
    ]


def test_series_not_longer_than_the_warm_up_are_an_error_if_there_is_no_other():
    with pytest.raises(
        InvalidInputError,
        match=r"a: the series must have more than the 72 steps of the warm-up, got 72\. Pass a "
        r"smaller --warmup \(warmup= in Python\), or a longer series\.",
    ):
        make_tasks(read(a=72, b=10), {"one": fixed})
    require_longer("a", 73, 72)


@pytest.mark.parametrize(
    ("warmup", "first_fit"),
    [(None, 5760), (6000, 5760), (480, 480), (100, 288), (0, 288)],
)
def test_the_first_fit_is_made_by_the_end_of_the_warm_up(warmup, first_fit):
    (task,), _ = make_tasks(quarters(), named_methods("paper", ["ohl"]), warmup=warmup)

    assert task.settings.warmup == first_fit
    assert task.first == (5760 if warmup is None else warmup)


def test_the_default_models_first_fit_does_not_depend_on_the_warm_up():
    methods = named_methods("default", ["ohl"])

    fits = {make_tasks(quarters(), methods, warmup=at)[0][0].settings.warmup for at in (0, 500)}

    assert fits == {288}


def test_settings_depend_on_the_step_of_a_series():
    (method,) = named_methods("default", ["ohl"], train_size=96, lags=None).values()

    assert method(timedelta(hours=1)).periods == (24, 168)
    assert method(timedelta(minutes=15)).train_size == 96
