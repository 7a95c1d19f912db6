"""Rows to learn from, as they are known now and as they were at the last refit."""

import numpy as np
import pytest

from streamridge import StateError
from tests.support.sensor_histories import FIRST, LAGS, LAM, recalled


def times(samples):
    return (samples.t - FIRST).astype(int).tolist()


def test_a_row_needs_its_lags_and_all_its_labels():
    rows = recalled(8).rows.between(-np.inf, np.inf, LAM)

    assert times(rows) == [2, 3, 4, 5]
    assert rows.x[-1].tolist() == [FIRST + 4, FIRST + 3]
    assert rows.y[-1].tolist() == [FIRST + 5, FIRST + 6, FIRST + 7]


def test_a_span_leaves_out_its_start_and_holds_its_end():
    assert times(recalled(12).rows.between(FIRST + 3, FIRST + 5, LAM)) == [4, 5]


@pytest.mark.parametrize(
    ("count", "wanted"), [(2, [14, 15]), (4, [5, 6, 14, 15]), (9, [2, 3, 4, 5, 6, 14, 15])]
)
def test_the_latest_rows_are_found_behind_gaps(count, wanted):
    gaps = range(FIRST + 9, FIRST + 13)

    assert times(recalled(18, gaps=gaps).rows.latest(count, LAM)) == wanted


def test_rows_that_waited_for_labels_are_made_of_what_is_known_now():
    history = recalled(12, gaps=[FIRST + 9])
    history.mark_refit(FIRST)
    timeline = history.timeline
    for step in range(12, 15):
        timeline.push(float(FIRST + step), read=True, trusted=True)
    timeline.correct(FIRST + 9, -1.0)

    waited = history.rows.between(FIRST + 9, FIRST + 12, LAM)

    assert times(waited) == [10, 11, 12]
    assert waited.x[0, 0] == -1.0  # the late reading, and not the value that filled the gap


def test_a_refit_forgets_no_reading_that_its_rows_need_and_keeps_none_that_they_do_not():
    history = recalled(20)
    rows = history.rows.latest(5, LAM)

    history.mark_refit(float(rows.t[0]))

    assert history.timeline.oldest == rows.t[0] - LAGS
    assert times(history.rows.latest(9, LAM)) == times(rows)
    np.testing.assert_array_equal(history.rows.at(rows.t, LAM).x, rows.x)


def test_rows_whose_readings_are_forgotten_are_not_made():
    history = recalled(20, reach=4)
    history.timeline.forget_before(FIRST + 10)

    assert times(history.rows.between(-np.inf, FIRST + 15, LAM)) == [14, 15]


def test_rows_are_those_of_the_last_refit():
    gap = FIRST + 9
    history = recalled(20, gaps=[gap])
    first = history.rows.latest(99, LAM)
    history.mark_refit(FIRST)
    history.timeline.correct(gap, 7.0)
    second = history.rows.latest(99, LAM)
    history.mark_refit(FIRST)
    history.timeline.distrust(np.array([FIRST + 4]))

    assert len(history.rows.latest(99, LAM)) < len(second) > len(first)
    again = history.rows.at(second.t, LAM)
    assert again.x.tobytes() == second.x.tobytes()
    assert again.y.tobytes() == second.y.tobytes()
    history.mark_refit(FIRST)
    with pytest.raises(StateError, match=f"readings must make all {len(second)} rows .* got"):
        history.rows.at(second.t, LAM)
