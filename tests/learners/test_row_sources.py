"""Rows that are kept: when they are known, settled and dropped, by hand for two labels a row."""

import numpy as np
import pytest

from streamridge import InvalidInputError, Samples, StateError
from streamridge.learners.row_sources import KeptRows, LabelledRow

LAM = np.zeros(0)  # kept rows do not depend on it


def row(t):
    """Return the row of a time, whose two labels are not known yet."""
    return LabelledRow(float(t), np.array([10.0 * t]), np.full(2, np.nan))


def kept(count):
    """Return the record of a history at times 0 to count - 1; the label of time t is t."""
    t = np.arange(float(count))
    return KeptRows.of(Samples.of(t, 10 * t[:, None], np.column_stack([t, t + 1])))


def with_values(record, *times):
    for t in times:
        record = record.with_value(row(t), float(t), float(t))
    return record


def times(samples):
    return samples.t.tolist()


def test_a_row_is_known_once_its_last_label_is():
    record = kept(4)

    assert times(record.latest(9, LAM)) == [0, 1, 2]  # the last label of 3 is the value at 4
    record = with_values(record, 4)
    assert times(record.latest(9, LAM)) == [0, 1, 2, 3]
    assert record.latest(1, LAM).y.tolist() == [[3.0, 4.0]]
    assert record.latest(1, LAM).x.tolist() == [[30.0]]


def test_a_row_whose_label_never_came_is_not_learned_from():
    record = with_values(kept(4), 4, 6, 7)  # the value at 5 is missing

    assert times(record.latest(9, LAM)) == [0, 1, 2, 3, 6]
    assert [each.t for each in record.waiting] == [7]


def test_a_row_waits_no_longer_than_its_labels_can_come():
    record = kept(4).with_value(row(4), 5.0, 5.0)  # the first label of 4 never came

    assert record.waiting == ()


def test_a_value_without_a_row_is_a_label_all_the_same():
    record = kept(4).with_value(None, 4.0, 4.5)

    assert record.latest(1, LAM).y.tolist() == [[3.0, 4.5]]
    assert record.waiting == ()


def test_a_span_leaves_out_its_start_and_holds_its_end():
    record = with_values(kept(4), 4, 5, 6)

    assert times(record.between(3, 5, LAM)) == [4, 5]
    assert times(record.between(-np.inf, np.inf, LAM)) == [3, 4, 5]  # none that was settled before


def test_a_refit_settles_known_rows_and_drops_old_rows():
    record = with_values(kept(4), 4, 5).after_refit(2.0)

    assert times(record.settled) == [2, 3, 4]
    assert times(record.between(-np.inf, np.inf, LAM)) == []
    assert times(with_values(record, 6).latest(9, LAM)) == [
        2,
        3,
        4,
        5,
    ]  # the row that waited goes on


def test_rows_are_found_by_time():
    record = kept(5)

    rows = record.at(np.array([1.0, 3.0]), LAM)

    assert (times(rows), rows.x.tolist(), rows.y.tolist()) == (
        [1, 3],
        [[10], [30]],
        [[1, 2], [3, 4]],
    )


@pytest.mark.parametrize("wanted", [[1.5], [3.0, 4.0], [-1.0]], ids=["between", "after", "before"])
def test_a_row_that_is_not_there_is_an_error(wanted):
    with pytest.raises(StateError, match="state must hold all rows that were trained on, got 4"):
        kept(5).at(np.array(wanted), LAM)


def test_restored_it_continues():
    record = with_values(kept(4), 4, 5)

    again = kept(2).restore(record.state())

    for one, other in ((record, again), (with_values(record, 6), with_values(again, 6))):
        assert {name: each.tolist() for name, each in one.state().items() if "y" not in name} == {
            name: each.tolist() for name, each in other.state().items() if "y" not in name
        }
        for name in ("settled.y", "window.y", "waiting.y"):
            np.testing.assert_array_equal(one.state()[name], other.state()[name])


def test_a_settled_row_must_have_its_labels():
    state = kept(4).state()
    state["settled.y"] = np.full((3, 2), np.nan)

    with pytest.raises(InvalidInputError, match=r"settled\.y must be finite"):
        kept(4).restore(state)


def test_rows_of_another_form_are_refused():
    state = kept(4).state()
    state["window.x"] = np.zeros((0, 7))

    with pytest.raises(StateError, match="rows of 1 features and 2 labels in 'window'"):
        kept(4).restore(state)
