"""When tuning is rolled back, and when its start is searched again."""

import numpy as np
import pytest

from streamridge import Features, KernelRidge, SquaredExponential
from streamridge.learners.restarts import (
    CHANGED_WINDOWS,
    DOUBTFUL_WINDOWS,
    ENOUGH_ROWS,
    REFITS_BETWEEN_SEARCHES,
    BaselineComparison,
    SearchSchedule,
    is_worse_in_backtest,
)
from streamridge.tuners.start import LEAST_ROWS

MODEL = KernelRidge(SquaredExponential(0.1), regularization=0.1)
START = MODEL.space.values
ASTRAY = np.array([0.1, 90.0])


class TestBaselineComparison:
    def test_tuning_is_doubtful_after_some_worse_windows_in_a_row(self):
        comparison = BaselineComparison()

        for _ in range(DOUBTFUL_WINDOWS):
            assert comparison.worse < DOUBTFUL_WINDOWS
            comparison = comparison.after(np.array([1.1, 1.0]))

        assert comparison.worse == DOUBTFUL_WINDOWS

    def test_one_better_window_restarts_the_count(self):
        comparison = BaselineComparison()
        for _ in range(DOUBTFUL_WINDOWS - 1):
            comparison = comparison.after(np.array([1.1, 1.0]))

        assert comparison.after(np.array([1.0, 9.0])).worse == 0

    def test_a_little_worse_is_not_worse(self):
        comparison = BaselineComparison()
        for _ in range(3 * DOUBTFUL_WINDOWS):
            comparison = comparison.after(np.array([1.01, 1.0]))

        assert not comparison.worse

    def test_earlier_windows_count_for_four_fifths(self):
        comparison = BaselineComparison().after(np.array([10.0, 5.0])).after(np.array([1.0, 2.0]))

        assert comparison.losses.tolist() == [9.0, 6.0]
        assert comparison.worse == 2

    @pytest.mark.parametrize(("tuned", "worse"), [(102.0, 0), (102.1, 1)])
    def test_two_percent_more_is_just_not_worse(self, tuned, worse):
        assert BaselineComparison().after(np.array([tuned, 100.0])).worse == worse

    def test_restored_it_continues_counting(self):
        before = BaselineComparison()
        for _ in range(DOUBTFUL_WINDOWS - 1):
            before = before.after(np.array([2.0, 1.0]))

        after = BaselineComparison().restore(before.state())

        assert after.after(np.array([2.0, 1.0])).worse == DOUBTFUL_WINDOWS


class TestBacktest:
    @pytest.fixture
    def samples(self):
        rng = np.random.default_rng(0)
        t = np.arange(300)
        return Features(lags=5).samples(np.sin(t / 7) + 0.1 * rng.standard_normal(len(t)))

    def test_bad_hyperparameters_are_worse_than_the_start(self, samples):
        assert is_worse_in_backtest(MODEL, samples[:200], ASTRAY, START)

    @pytest.mark.parametrize("tuned", [START, START * 1.01], ids=["the same", "hardly different"])
    def test_hyperparameters_near_the_start_are_not_worse(self, samples, tuned):
        assert not is_worse_in_backtest(MODEL, samples[:200], tuned, START)

    def test_too_few_rows_prove_nothing(self, samples):
        assert not is_worse_in_backtest(MODEL, samples[:8], ASTRAY, START)


class TestSearchSchedule:
    def test_a_rise_for_days_differs_from_one_for_a_day(self):
        schedule = SearchSchedule().after_refit(1.0).after_refit(10.0).after_refit(1.0)

        assert not schedule.windows
        for windows in range(CHANGED_WINDOWS):
            assert schedule.windows == windows
            schedule = schedule.after_refit(10.0)
        assert schedule.windows == CHANGED_WINDOWS

    def test_a_slow_rise_becomes_usual(self):
        schedule = SearchSchedule()
        for window in range(200):
            schedule = schedule.after_refit(1.0 + window / 50)
            assert schedule.windows < CHANGED_WINDOWS

    def test_a_window_without_an_error_only_counts_as_a_refit(self):
        after = SearchSchedule(usual=2.0, windows=3).after_refit(np.nan)

        assert (after.usual, after.windows, after.refits) == (2.0, 3, 1)

    @pytest.mark.parametrize(
        ("rows", "train_size", "is_due"),
        [
            (ENOUGH_ROWS, 2880, True),
            (ENOUGH_ROWS - 1, 2880, False),
            (LEAST_ROWS, LEAST_ROWS, True),
            (LEAST_ROWS, LEAST_ROWS + 1, False),
            (LEAST_ROWS - 1, LEAST_ROWS - 1, False),
        ],
    )
    def test_the_first_search_waits_for_enough_rows(self, rows, train_size, is_due):
        assert SearchSchedule().after_refit().is_due(rows, train_size) == is_due

    def test_a_rollback_leads_to_another_search_but_not_at_once(self):
        schedule, due = SearchSchedule().after_search(60, 40), []

        for _ in range(REFITS_BETWEEN_SEARCHES):
            schedule = schedule.after_refit()
            due.append(schedule.is_due(960, 960, rolled_back=True))

        assert due == [False] * (REFITS_BETWEEN_SEARCHES - 1) + [True]

    def test_without_a_change_there_is_no_further_search(self):
        schedule = SearchSchedule().after_search(60, 40)

        for _ in range(3 * REFITS_BETWEEN_SEARCHES):
            schedule = schedule.after_refit(1.0)
            assert not schedule.is_due(960, 960)

    def test_errors_far_above_the_usual_lead_to_another_search(self):
        schedule = SearchSchedule().after_search(60, 40)
        for _ in range(REFITS_BETWEEN_SEARCHES):
            schedule = schedule.after_refit(1.0)

        for _ in range(CHANGED_WINDOWS):
            assert not schedule.is_due(960, 960)
            schedule = schedule.after_refit(10.0)

        assert schedule.is_due(960, 960)

    def test_a_search_is_counted_and_starts_a_new_period(self):
        schedule = SearchSchedule().after_refit(1.0).after_refit(9.0).after_search(60, 40)

        assert (schedule.tally.tunings, schedule.tally.fits, schedule.tally.gradients) == (
            1,
            60,
            40,
        )
        assert (schedule.refits, schedule.windows, schedule.usual) == (0, 0, np.inf)

    def test_restored_it_continues(self):
        schedule = SearchSchedule().after_search(60, 40).after_refit(1.0).after_refit(9.0)

        assert SearchSchedule().restore(schedule.state()) == schedule
