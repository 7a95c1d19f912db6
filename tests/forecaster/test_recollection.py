"""Rows out of the readings: which can be made, as they are known now and at earlier refits."""

import numpy as np
import pytest

from streamridge import StateError
from streamridge.features.lags import Features
from streamridge.forecaster.recollection import Recollection
from streamridge.forecaster.sensor import Sensor
from tests.forecaster.test_forecaster import small

LAGS, FIRST, HORIZON = 2, 1000, 3


def recalled(count, *, gaps=(), horizon=HORIZON):
    """Return a record of rows of two lags, after `count` readings, the value of step t being t."""
    sensor = Sensor(small().settings)
    sensor.reach = LAGS
    sensor.place(np.datetime64(FIRST, "h"))
    for step in range(FIRST, FIRST + count):
        sensor.timeline.push(float(step), read=step not in gaps, trusted=step not in gaps)
    return Recollection(Features(lags=LAGS), sensor, horizon)


def times(samples):
    return (samples.t - FIRST).astype(int).tolist()


def test_a_row_needs_its_lags_and_all_its_labels():
    rows = recalled(8).between(-np.inf, np.inf)

    assert times(rows) == [2, 3, 4, 5]
    assert rows.x[-1].tolist() == [FIRST + 4, FIRST + 3]
    assert rows.y[-1].tolist() == [FIRST + 5, FIRST + 6, FIRST + 7]


def test_a_span_leaves_out_its_start_and_holds_its_end():
    assert times(recalled(12).between(FIRST + 3, FIRST + 5)) == [4, 5]


@pytest.mark.parametrize(
    ("count", "wanted"), [(2, [14, 15]), (4, [5, 6, 14, 15]), (9, [2, 3, 4, 5, 6, 14, 15])]
)
def test_the_latest_rows_are_found_behind_gaps(count, wanted):
    gaps = range(FIRST + 9, FIRST + 13)

    assert times(recalled(18, gaps=gaps).latest(count)) == wanted


def test_rows_that_waited_for_labels_stay_as_the_refit_saw_them():
    record = recalled(12, gaps=[FIRST + 9])
    record = record.renewed(FIRST)
    timeline = record.sensor.timeline
    for step in range(12, 15):
        timeline.push(float(FIRST + step), read=True, trusted=True)
    timeline.correct(FIRST + 9, -1.0)

    waited, now = (record.between(FIRST + 9, FIRST + 12, waited=each) for each in (True, False))

    assert times(waited) == times(now) == [10, 11, 12]
    assert waited.x[0, 0] == FIRST + 9  # what filled the gap
    assert now.x[0, 0] == -1.0
    np.testing.assert_array_equal(waited.y, now.y)


def test_a_refit_forgets_no_reading_that_its_rows_need_and_keeps_none_that_they_do_not():
    record = recalled(20)
    rows = record.latest(5)

    record = record.renewed(float(rows.t[0]))

    assert record.sensor.timeline.oldest == rows.t[0] - LAGS
    assert times(record.latest(9)) == times(rows)
    np.testing.assert_array_equal(record.at(rows.t, 0).x, rows.x)


def test_rows_whose_readings_are_forgotten_are_not_made():
    record = recalled(20)
    record.sensor.reach = 4  # a row may look back further than it must
    record.sensor.timeline.forget_before(FIRST + 10)

    assert times(record.between(-np.inf, FIRST + 15)) == [14, 15]


def test_rows_are_those_of_their_own_refit():
    gap = FIRST + 9
    record = recalled(20, gaps=[gap])
    first = record.latest(99)
    record.renewed(FIRST)
    record.sensor.timeline.correct(gap, 7.0)
    second = record.latest(99)
    record.renewed(FIRST)
    record.sensor.timeline.distrust(np.array([FIRST + 4]))

    assert len(record.latest(99)) < len(second) > len(first)
    for refits_ago, rows in ((1, first), (0, second)):
        again = record.at(rows.t, refits_ago)
        assert again.x.tobytes() == rows.x.tobytes()
        assert again.y.tobytes() == rows.y.tobytes()
    with pytest.raises(StateError, match=f"readings must make all {len(second)} rows .* got"):
        record.at(second.t, 1)


def test_before_the_first_fit_old_readings_are_forgotten_now_and_then():
    record, oldest = recalled(1), []

    for step in range(FIRST + 1, FIRST + 60):
        record.sensor.timeline.push(float(step), read=True, trusted=True)
        record.keep_for(10)
        oldest.append(record.sensor.timeline.oldest)
        kept = min(10 + HORIZON + LAGS, step - FIRST)
        assert record.sensor.timeline.remembered()[0] <= step - kept

    assert len(set(oldest)) == 5
    assert step - oldest[-1] < 2 * 10 + HORIZON + LAGS + 1
