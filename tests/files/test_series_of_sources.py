"""From any source to the series of each sensor."""

import io
import sys
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from streamridge import InvalidInputError
from streamridge.files import reading_options
from streamridge.files.reading import read, read_one_series
from streamridge.files.reading_options import ReadingOptions
from streamridge.forecaster.forecaster import Forecaster
from streamridge.runs.compare import compare
from streamridge.runs.replay import replay
from streamridge.series.aggregation import summed_to
from streamridge.series.grid import to_series
from tests.support.forecasters import DAY, daily, small
from tests.support.series import frame, series


def table():
    return frame(daily(5 * DAY)).assign(main=daily(5 * DAY, seed=1))


def written(kind, tmp_path, monkeypatch):
    """Return the same readings as another kind of source."""
    path = tmp_path / "flows.csv"
    table().to_csv(path, index=False)
    if kind == "parts":
        for name, part in (("a.csv", slice(0, 50)), ("b.csv", slice(50, None))):
            table().iloc[part].to_csv(tmp_path / name, index=False)
        return [tmp_path / "a.csv", tmp_path / "b.csv"]
    if kind == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        return "-"
    every = list(read(table()).series.values())
    return {"path": path, "frame": table(), "series": every}[kind]


@pytest.mark.parametrize("kind", ["path", "parts", "stdin", "frame", "series"])
def test_every_kind_of_source_gives_the_same_series(kind, tmp_path, monkeypatch):
    given = written(kind, tmp_path, monkeypatch)

    found = read(given).series

    assert list(found) == ["ramp", "main"]
    for name, each in found.items():
        assert each.clock.step == timedelta(hours=1)
        np.testing.assert_array_equal(each.values, table()[name])


def test_sensors_and_times_are_selected_from_frames_and_from_series(tmp_path):
    options = {"sensors": ["main"], "from_": "2021-06-14", "to": "2021-06-15T23:00"}

    (from_frame,) = read(table(), **options).series.values()
    every = list(read(table()).series.values())
    (from_series,) = read(every, **options).series.values()

    np.testing.assert_array_equal(from_frame.values, table().main[DAY : 3 * DAY])
    np.testing.assert_array_equal(from_series.values, from_frame.values)
    assert from_series.times[0] == from_frame.times[0] == np.datetime64("2021-06-14")


@pytest.mark.parametrize("known", [True, False], ids=["series", "frame"])
def test_finer_readings_are_summed_and_longer_steps_are_not_changed(known):
    given = series("ramp", 0) if known else frame(series("ramp", 0).values)

    hourly = read_one_series(given, ReadingOptions())
    day, same = (summed_to(hourly, step) for step in (timedelta(days=1), timedelta(minutes=15)))

    np.testing.assert_allclose(
        day.values, series("ramp", 0).values.reshape(5, DAY).sum(axis=1), rtol=1e-12
    )
    assert len(same) == 5 * DAY


def digest(values, **extras):
    flows = frame(values).assign(**extras)
    return read(flows, extras=tuple(extras)).series["ramp"].digest


def test_a_digest_depends_on_values_and_extras():
    values, holiday = daily(5 * DAY), np.repeat([0.0, 1.0, 0.0, 1.0, 0.0], DAY)
    changed = values.copy()
    changed[7] += 1e-9

    every = [
        digest(values),
        digest(changed),
        digest(values, holiday=holiday),
        digest(values, holiday=1 - holiday),
    ]

    assert len(set(every)) == 4
    assert digest(values) == every[0]


def test_a_source_without_any_value_is_refused():
    empty = pd.DataFrame({"time": ["2021-06-13", "2021-06-14"], "ramp": [None, None]})

    with pytest.raises(InvalidInputError, match="at least one sensor must have values, got none"):
        read(empty)


def test_one_of_several_series_must_be_named():
    both = [series("a", 0), series("b", 1)]

    with pytest.raises(InvalidInputError, match="sensor must be one of 'a', 'b', got none"):
        read_one_series(both, ReadingOptions())
    assert read_one_series(both, ReadingOptions(sensors=["b"])).sensor == "b"


@pytest.mark.parametrize(
    "call",
    [
        read,
        lambda table: compare(table, ["last"], warmup=24),
        lambda table: replay(small(), table, sensor="main"),
        lambda table: Forecaster.start(table, sensor="main", train_size=48),
    ],
    ids=["read", "compare", "replay", "start"],
)
def test_each_series_is_placed_on_its_grid_once(call, monkeypatch):
    placed = []

    def counting(readings, **settings):
        placed.append(readings.sensor)
        return to_series(readings, **settings)

    monkeypatch.setattr(reading_options, "to_series", counting)
    call(table())

    assert sorted(placed) in (["main", "ramp"], ["main"])
