"""Spans that a run forecasts, but neither learns from nor scores."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError, compare, replay
from streamridge.runs.run_files import read_run, write_run
from tests.support.engine_tasks import QUICK, assert_same_runs
from tests.support.forecasters import DAY, START, daily, small
from tests.support.series import frame, series

# Half a day of the fifth day; the warm-up takes three.
FIRST, LAST = 4 * DAY, 4 * DAY + 11
SPAN = tuple(START + at * np.timedelta64(60, "m") for at in (FIRST, LAST))
TEXT = "/".join(map(str, SPAN))


def wrong(count=6 * DAY):
    """Return values that are wrong within the span."""
    values = daily(count)
    values[FIRST : LAST + 1] *= 3
    return values


@pytest.mark.parametrize("given", [[TEXT], [SPAN], TEXT], ids=["text", "pair", "one text"])
def test_an_excluded_span_is_forecast_but_not_scored(given):
    run = replay(small(), frame(wrong()), exclude=given)

    named = slice(FIRST - 3 * DAY, LAST + 1 - 3 * DAY)
    assert np.isnan(run.errors_in_time[named]).all()
    assert np.isnan(run.errors_in_time).sum() == 12
    assert np.isfinite(run.value).all()
    np.testing.assert_array_equal(run.frame()["actual"], wrong()[3 * DAY :])
    record = run.record()
    assert (record["scored"], record["excluded"], record["missing"]) == (3 * DAY - 12, 12, 0)
    kept = ~np.isnan(run.errors_in_time)
    errors = (run.actual - run.value[:, 0])[kept]
    assert run.rmse == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)
    inside = ((run.lower <= run.actual[:, None]) & (run.actual[:, None] <= run.upper))[kept, 0]
    assert run.coverage == inside.mean()


def test_nothing_is_learned_from_an_excluded_span():
    other = wrong()
    other[FIRST : LAST + 1] += 7

    one, two = (replay(small(), frame(values), exclude=[TEXT]) for values in (wrong(), other))

    np.testing.assert_array_equal(one.value[LAST + 1 - 3 * DAY :], two.value[LAST + 1 - 3 * DAY :])


def test_a_span_is_in_local_time_with_a_zone():
    zoned = replay(small(tz="Europe/Berlin"), frame(wrong()), exclude=[TEXT])

    named = np.isnan(zoned.errors_in_time)
    assert named.sum() == 12
    assert zoned.local_times[named][0] == SPAN[0]


def test_a_span_of_an_index_is_two_whole_numbers():
    values = pd.DataFrame({"time": np.arange(200), "ramp": daily(200)})

    run = replay(Forecaster(1, seasons=(24,), train_size=60), values, exclude=["150/160"])

    assert run.record()["excluded"] == 11
    assert run.times[np.isnan(run.errors_in_time)].tolist() == list(range(150, 161))


def test_a_missing_step_of_a_span_counts_as_missing():
    values = wrong()
    values[FIRST : FIRST + 2] = np.nan

    record = replay(small(), frame(values), exclude=[TEXT]).record()

    assert (record["excluded"], record["missing"]) == (10, 2)


def test_a_stored_run_has_its_excluded_spans(tmp_path):
    run = replay(small(), frame(wrong()), exclude=[TEXT])

    write_run(tmp_path / "a.run", run)

    assert read_run(tmp_path / "a.run").record() == run.record()


def test_a_bad_span_is_found_before_any_work(monkeypatch):
    monkeypatch.setattr("streamridge.runs.replay.replay_series", pytest.fail)

    with pytest.raises(InvalidInputError, match="exclude must be START/END"):
        replay(small(), frame(daily(5 * DAY)), exclude=["2021-06-13"])


def test_compare_excludes_by_every_method_and_on_every_engine():
    one = replace(series("a", 0), values=wrong(5 * DAY))

    here = compare(one, ["fixed", "ohl"], exclude=[TEXT], **QUICK)
    there = compare(one, ["fixed", "ohl"], exclude=[TEXT], jobs=2, **QUICK)

    assert [run.record()["excluded"] for run in here.runs] == [12, 12]
    assert_same_runs(there.runs, here.runs)


def test_a_folder_of_runs_with_other_spans_is_refused(tmp_path):
    compare(series("a", 0), "fixed", keep=tmp_path, exclude=[TEXT], **QUICK)

    compare(series("a", 0), "fixed", keep=tmp_path, exclude=[SPAN], **QUICK)
    with pytest.raises(InvalidInputError, match="with another list of excluded spans"):
        compare(series("a", 0), "fixed", keep=tmp_path, **QUICK)


@pytest.mark.parametrize(
    ("given", "span", "message"),
    [
        (frame(daily(DAY)), "3/7", "ramp: exclude must be two times, .* got 3/7"),
        (pd.Series(np.arange(40.0), name="one"), TEXT, "one: exclude must be two whole numbers"),
    ],
    ids=["times", "index"],
)
def test_a_span_of_the_wrong_kind_is_found_before_any_work(given, span, message):
    with pytest.raises(InvalidInputError, match=message):
        compare(given, exclude=[span], methods=["fixed"])
