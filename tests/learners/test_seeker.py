import numpy as np
import pytest

from streamridge import AutoregressiveRidge, FitError, OnlineLearner, Samples
from streamridge.learners.seeker import ENOUGH_ROWS, PATIENCE, PAUSE, Seeker, Surge
from streamridge.tuners.start import LEAST_ROWS, StartSearch

# A wave with noise: penalties that start this high make the filter blind.
MODEL = AutoregressiveRidge([1e6, 1e6, 1e6])


def rows(count, seed=0):
    wave = np.sin(np.arange(count + 3) / 3) + 0.1 * np.random.default_rng(seed).normal(
        size=count + 3
    )
    x = np.column_stack([wave[2:-1], wave[1:-2], wave[:-3]])
    return Samples.of(np.arange(3, count + 3), x, wave[3:])


def sought(count, *, train_size=2880, seed=0):
    learner = OnlineLearner(MODEL, rows(count), train_size=train_size)
    search = StartSearch(MODEL)
    return Seeker(search, learner, train_size=train_size, seed=seed), learner


class TestSurge:
    def test_a_rise_for_days_is_told_from_one_for_a_day(self):
        surge = Surge().after(1.0).after(10.0).after(1.0)

        assert not surge.windows
        for _ in range(PATIENCE):
            assert not surge.lasts
            surge = surge.after(10.0)
        assert surge.lasts

    def test_a_slow_rise_becomes_the_usual(self):
        surge = Surge()
        for window in range(200):
            surge = surge.after(1.0 + window / 50)
            assert not surge.lasts

    def test_a_window_without_an_error_changes_nothing(self):
        surge = Surge(2.0, 3)

        assert surge.after(np.nan) == surge


def test_a_first_search_is_made_once_there_are_enough_rows():
    seeker, learner = sought(ENOUGH_ROWS)
    before = learner.lam

    assert seeker.watch()
    assert (learner.lam < before).all()
    assert seeker.tally.tunings == 1
    assert not seeker.watch()


@pytest.mark.parametrize(
    ("count", "train_size", "searches"),
    [
        (ENOUGH_ROWS - 1, 2880, 0),
        (LEAST_ROWS, LEAST_ROWS, 1),
        (LEAST_ROWS, LEAST_ROWS + 1, 0),
        (LEAST_ROWS - 1, LEAST_ROWS - 1, 0),
    ],
)
def test_how_many_rows_are_enough(count, train_size, searches):
    seeker, _ = sought(count, train_size=train_size)

    seeker.watch()

    assert seeker.tally.tunings == searches


def test_a_change_leads_to_another_search_but_not_at_once():
    seeker, _ = sought(LEAST_ROWS, train_size=LEAST_ROWS)
    seeker.watch()

    searches = []
    for _ in range(2 * PAUSE):
        seeker.watch(changed=True)
        searches.append(seeker.tally.tunings)

    assert searches == [1] * (PAUSE - 1) + [2] * PAUSE + [3]


def test_without_a_change_nothing_is_searched_again():
    seeker, _ = sought(LEAST_ROWS, train_size=LEAST_ROWS)

    for _ in range(3 * PAUSE):
        seeker.watch(error=1.0)

    assert seeker.tally.tunings == 1


def test_errors_far_above_the_usual_lead_to_another_search():
    seeker, _ = sought(LEAST_ROWS, train_size=LEAST_ROWS)
    for _ in range(PAUSE):
        seeker.watch(error=1.0)

    for _ in range(PATIENCE):
        assert seeker.tally.tunings == 1
        seeker.watch(error=10.0)

    assert seeker.tally.tunings == 2


def test_what_is_frozen_is_not_searched():
    seeker, learner = sought(ENOUGH_ROWS)
    learner.freeze("penalties[0]")

    seeker.watch()

    assert learner.lam[0] == pytest.approx(1e6)
    assert learner.lam[1] < 1e6


def test_a_result_without_a_fit_is_left(monkeypatch):
    seeker, learner = sought(ENOUGH_ROWS)

    def failing(values):
        raise FitError("no factor")

    monkeypatch.setattr(learner, "assign", failing)

    assert not seeker.watch()
    assert seeker.tally.tunings == 1


def test_restored_it_goes_on():
    one, learner = sought(ENOUGH_ROWS)
    for error in (1.0, 2.0, 9.0):
        one.watch(error)
    other = Seeker(StartSearch(MODEL), learner, train_size=2880, seed=0)

    other.restore(one.state())

    assert other.tally == one.tally
    assert {name: array.tolist() for name, array in other.state().items()} == {
        name: array.tolist() for name, array in one.state().items()
    }
