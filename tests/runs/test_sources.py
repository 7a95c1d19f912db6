"""From any source to the series of each sensor."""

import io
import sys
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from streamridge import InvalidInputError
from streamridge.runs.selection import Selection
from streamridge.runs.sources import one_series, opened_sources
from tests.forecaster.test_forecaster import DAY, daily
from tests.runs.test_replay import frame, series


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
    with opened_sources(table(), Selection()) as sources:
        every = [source.load() for source in sources.found]
    return {"path": path, "frame": table(), "series": every}[kind]


@pytest.mark.parametrize("kind", ["path", "parts", "stdin", "frame", "series"])
def test_every_kind_of_source_gives_the_same_series(kind, tmp_path, monkeypatch):
    given = written(kind, tmp_path, monkeypatch)
    seen = []

    with opened_sources(given, Selection(), seen.append) as sources:
        loaded = [source.load() for source in sources.found]
        sizes = [(source.sensor, len(source), source.step) for source in sources.found]

    assert sizes == [(name, 5 * DAY, timedelta(hours=1)) for name in ("ramp", "main")]
    assert [each.sensor for each in seen] == ["ramp", "main"]
    for each, name in zip(loaded, ("ramp", "main"), strict=True):
        np.testing.assert_array_equal(each.values, table()[name])


def test_what_is_selected_is_taken_of_files_and_of_series(tmp_path):
    selection = Selection(sensors=["main"], from_="2021-06-14", to="2021-06-15T23:00")

    with opened_sources(table(), selection) as sources:
        (from_frame,) = (source.load() for source in sources.found)
    with opened_sources(table(), Selection()) as sources:
        every = [source.load() for source in sources.found]
    with opened_sources(every, selection) as sources:
        (from_series,) = (source.load() for source in sources.found)

    np.testing.assert_array_equal(from_frame.values, table().main[DAY : 3 * DAY])
    np.testing.assert_array_equal(from_series.values, from_frame.values)
    assert from_series.times[0] == from_frame.times[0] == np.datetime64("2021-06-14")


@pytest.mark.parametrize("known", [True, False], ids=["series", "frame"])
def test_finer_readings_are_summed_and_longer_steps_stay(known):
    given = series("ramp", 0) if known else frame(series("ramp", 0).values)

    day = one_series(given, Selection(sum_to=timedelta(days=1)))
    same = one_series(given, Selection(sum_to=timedelta(minutes=15)))

    np.testing.assert_allclose(
        day.values, series("ramp", 0).values.reshape(5, DAY).sum(axis=1), rtol=1e-12
    )
    assert len(same) == 5 * DAY


def digest(values, **extras):
    flows = frame(values).assign(**extras)
    with opened_sources(flows, Selection(extras=tuple(extras))) as sources:
        return sources.found[0].digest


def test_a_digest_stands_for_values_and_extras():
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

    with (
        pytest.raises(InvalidInputError, match="at least one sensor must have values, got none"),
        opened_sources(empty, Selection()),
    ):
        pass


def test_one_of_several_series_must_be_named():
    both = [series("a", 0), series("b", 1)]

    with pytest.raises(InvalidInputError, match="sensor must be one of 'a', 'b', got none"):
        one_series(both, Selection())
    assert one_series(both, Selection(sensors=["b"])).sensor == "b"
