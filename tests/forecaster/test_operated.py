"""A forecaster as a service runs it: refitted when it suits, and put away at any moment."""

import pickle
import tracemalloc
from functools import cache

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError, KernelRidge, StateError, Workspace
from streamridge.learners.online import GradientPolicy
from streamridge.learners.refitted_model import RefittedModel
from streamridge.learners.workspace import times_of
from streamridge.tuners import RandomSearch
from tests.support.forecasters import DAY, HOUR, START, daily, live, lived, same, small, state_of
from tests.support.tiers import each_horizon, tiered


def saved_and_loaded(forecaster, folder):
    forecaster.save(folder / "sensor.sr")
    return Forecaster.load(folder / "sensor.sr")


WHOLE = {}  # by the fits made: the forecaster right after the last


@pytest.fixture(autouse=True)
def nothing_is_kept():
    """Let no test find what another has kept."""
    WHOLE.clear()


def up_to_date(forecaster):
    """Return the forecaster of the whole kept after its last refit, and of what changed since."""
    key = forecaster.settings, forecaster.counts.get("fits", 0)
    whole = WHOLE.setdefault(key, forecaster.to_bytes())
    later = forecaster.to_bytes(since_refit=True)
    assert len(later) < len(whole) or not forecaster.tuning.has_model
    return Forecaster.from_bytes(whole, later)


def released(forecaster):
    forecaster.workspace = None
    return forecaster


WAYS = {
    "bytes": lambda forecaster, _: Forecaster.from_bytes(forecaster.to_bytes()),
    "bytes since the refit": lambda forecaster, _: up_to_date(forecaster),
    "pickle": lambda forecaster, _: pickle.loads(pickle.dumps(forecaster)),
    "file": saved_and_loaded,
    "released": lambda forecaster, _: released(forecaster),
}
FIRST = 4 * DAY  # the model has been fitted


def troubled(seed=0):
    """Return readings as they come, with gaps, late readings, a spike and a long silence."""
    values = daily(11 * DAY, seed=seed)
    values[FIRST + 30] *= 9
    gaps = {FIRST + 3, FIRST + 17, FIRST + 18, FIRST + 40, *range(6 * DAY, 8 * DAY)}
    late = {FIRST + 3: FIRST + 6, FIRST + 18: FIRST + 26, FIRST + 40: FIRST + 49}
    stream = []
    for i, value in enumerate(values.tolist()):
        stream += [(i, None if i in gaps else value)]
        stream += [(step, values[step]) for step, after in late.items() if after == i]
    return stream


def take(forecaster, reading):
    """Return the forecast before a reading, and let the forecaster have the reading."""
    step, value = reading
    forecast = forecaster.predict()
    forecaster.observe(START + step * HOUR, value)
    return forecast


@cache
def plain_run(horizon):
    """Return a forecaster that was neither saved nor given memory, and its forecasts."""
    forecaster = small(horizon=horizon)
    return forecaster, [take(forecaster, reading) for reading in troubled()]


def rows(forecaster):
    return forecaster._model.training


def watched_lessons(monkeypatch):
    """Return a list that gets, of each lesson, the last time trained on and the times learned."""
    taught, learned = [], RefittedModel._learned

    def watched(model, progress, *rest):
        def lesson(policy, fit, lam, window, *more):
            taught.append((times_of(progress.current.runs)[-1], window.t.tolist()))
            return teach(policy, fit, lam, window, *more)

        teach = GradientPolicy.learned
        with monkeypatch.context() as patch:
            patch.setattr(GradientPolicy, "learned", lesson)
            return learned(model, progress, *rest)

    monkeypatch.setattr(RefittedModel, "_learned", watched)
    return taught


@pytest.mark.parametrize(
    ("way", "horizon", "defer"),
    tiered(
        WAYS,
        [1, 4],
        [False, True],
        quick=lambda *case: case == ("bytes", 4, True),
    ),
)
def test_saved_at_every_moment_it_continues_unchanged(way, horizon, defer, tmp_path):
    way = WAYS[way]
    kept, moved = (small(horizon=horizon, train_size=60, defer_refits=defer) for _ in range(2))

    for i, reading in enumerate(troubled()):
        same(take(kept, reading), take(moved, reading))
        if i >= FIRST - 2 and i < FIRST + 2 * DAY + 9:
            moved = way(moved, tmp_path)
        if defer and kept.refit_due and i % 7 == 0:  # some steps late
            assert moved.refit_due
            kept.refit()
            moved.refit()

    assert moved.hyperparameters == kept.hyperparameters
    assert moved.counts == kept.counts
    one, other = state_of(moved), state_of(kept)
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


@each_horizon(1, 4)
def test_rebuilt_rows_equal_the_original_rows(horizon):
    forecaster = small(horizon=horizon, train_size=60)
    forecaster.workspace = Workspace()  # holds the rows of each refit as they were made

    for i, reading in enumerate(troubled()):
        take(forecaster, reading)
        if i > FIRST:
            were = rows(forecaster)
            forecaster._model.progress.current.release()
            again = rows(forecaster)
            for letter in "txy":
                assert getattr(again, letter).tobytes() == getattr(were, letter).tobytes()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_rows_of_the_fit_in_force_are_rebuilt_with_the_trust_of_its_refit(way, tmp_path):
    forecaster, values = small(horizon=4, train_size=60), daily(5 * DAY)
    late, values[4 * DAY] = values[4 * DAY], np.nan
    live(forecaster, values)
    forecaster.refit()
    trained = rows(forecaster)
    forecaster.observe(START + 4 * DAY * HOUR, late)

    forecaster = way(forecaster, tmp_path)
    forecaster.workspace = None

    assert rows(forecaster).x.tobytes() == trained.x.tobytes()


class TestDeferredRefits:
    @each_horizon(1, 4)
    def test_made_when_they_are_due_they_change_nothing(self, horizon):
        (at_once, forecasts), deferred = (
            plain_run(horizon),
            small(horizon=horizon, defer_refits=True),
        )

        for forecast, reading in zip(forecasts, troubled(), strict=True):
            same(forecast, take(deferred, reading))
            if deferred.refit_due:
                deferred.refit()

        assert deferred.hyperparameters == at_once.hyperparameters
        assert deferred.counts == at_once.counts

    @each_horizon(1, 4)
    def test_made_when_due_they_change_nothing_though_a_window_ends_in_a_gap(self, horizon):
        at_once, deferred = (small(horizon=horizon, defer_refits=defer) for defer in (False, True))
        values = daily(9 * DAY)
        values[6 * DAY - 5 : 6 * DAY + 5] = np.nan
        values[7 * DAY + 1 :: 3] = np.nan

        for reading in enumerate(values.tolist()):
            same(take(at_once, reading), take(deferred, reading))
            if deferred.refit_due:
                deferred.refit()

        assert deferred.counts == at_once.counts
        assert deferred.counts["fits"] >= 6

    def test_until_it_is_made_forecasts_are_those_of_the_fit_in_force(self):
        late, never = (small(defer_refits=True) for _ in range(2))
        for forecaster in (late, never):
            live(forecaster, daily(4 * DAY))
            forecaster.refit()
        values = daily(6 * DAY)

        for i in range(4 * DAY, 5 * DAY + 9):
            same(take(late, (i, values[i])), take(never, (i, values[i])))
        assert late.refit_due
        late.refit()

        assert not late.refit_due
        assert late.counts["fits"] == 2
        assert not np.array_equal(late.predict().value, never.predict().value)

    @each_horizon(1, 4)
    def test_k_readings_late_it_equals_a_refit_of_a_window_k_readings_longer(self, horizon):
        k, values = 5, daily(9 * DAY)
        late = small(horizon=horizon, train_size=60, defer_refits=True)
        longer = small(horizon=horizon, train_size=60, update_every=DAY + k)
        overdue = 0

        for reading in enumerate(values.tolist()):
            same(take(late, reading), take(longer, reading))
            overdue = overdue + 1 if late.refit_due else 0
            if overdue > (k if late.tuning.has_model else 0):
                late.refit()

        assert late.counts == longer.counts
        np.testing.assert_array_equal(rows(late).x, rows(longer).x)

    @each_horizon(1, 4)
    def test_no_row_is_trained_on_before_it_is_known(self, horizon):
        forecaster = small(horizon=horizon, defer_refits=True)

        for i, reading in enumerate(troubled()):
            take(forecaster, reading)
            if forecaster.refit_due and i % 5 == 0:
                forecaster.refit()
                newest = forecaster._history.timeline.newest
                assert rows(forecaster).t[-1] + horizon - 1 <= newest

    def test_the_first_fit_waits_too_and_one_too_early_is_refused(self):
        forecaster = small(defer_refits=True)
        live(forecaster, daily(2 * DAY))
        before = forecaster.to_bytes()

        with pytest.raises(InvalidInputError, match="the model must have been fitted first, after"):
            forecaster.refit()

        assert forecaster.to_bytes() == before
        live(forecaster, daily(4 * DAY)[2 * DAY :], 2 * DAY)
        assert forecaster.predict().source in ("seasonal", "last")
        forecaster.refit()
        assert forecaster.predict().source == "model"

    def test_with_several_horizons_an_observation_fits_nothing_either(self, monkeypatch):
        forecaster = small(horizon=4, defer_refits=True)
        live(forecaster, daily(4 * DAY))
        forecaster.refit()
        live(forecaster, daily(5 * DAY)[4 * DAY :], 4 * DAY)
        forecaster.refit()
        monkeypatch.setattr(KernelRidge, "fit", pytest.fail)

        live(forecaster, daily(6 * DAY)[5 * DAY :], 5 * DAY)

        assert forecaster.refit_due

    @each_horizon(1, 4)
    def test_each_row_teaches_once_by_a_fit_that_was_not_trained_on_it(self, horizon, monkeypatch):
        forecaster = small(horizon=horizon, train_size=60, defer_refits=True)
        taught = watched_lessons(monkeypatch)

        for i, reading in enumerate(troubled()):
            take(forecaster, reading)
            if (forecaster.refit_due and i % 5 == 0) or i in (
                FIRST + 9,
                FIRST + 10,
            ):  # two in a row
                forecaster.refit()

        times = [t for _, window in taught for t in window]
        assert len(times) == len(set(times))
        assert all(min(window) > trained for trained, window in taught)
        assert max(times) == rows(forecaster).t[-1]

    @each_horizon(1, 4)
    def test_a_late_reading_of_a_step_before_the_refit_teaches_nothing(self, horizon, monkeypatch):
        forecaster, values = small(horizon=horizon, defer_refits=True), daily(7 * DAY)
        live(forecaster, values[: 4 * DAY])
        forecaster.refit()
        live(forecaster, [*values[4 * DAY : 5 * DAY], *[np.nan] * DAY], 4 * DAY)
        forecaster.refit()
        for step in range(5 * DAY, 6 * DAY - horizon):
            forecaster.observe(START + step * HOUR, values[step])
        live(forecaster, values[6 * DAY :], 6 * DAY)
        refit_time = forecaster._model.progress.refit_time
        taught = watched_lessons(monkeypatch)

        forecaster.refit()

        ((trained, window),) = taught
        assert trained == refit_time - DAY - horizon + 1  # no row of the silent day is trained on
        assert min(window) > refit_time - horizon + 1

    def test_a_search_waits_too(self):
        forecaster = small(defer_refits=True, tuner=RandomSearch(2), tune_every=DAY)
        live(forecaster, daily(4 * DAY))
        forecaster.refit()
        live(forecaster, daily(7 * DAY)[4 * DAY :], 4 * DAY)
        assert forecaster.counts["tunings"] == 1

        forecaster.refit()

        assert forecaster.counts["tunings"] == 2

    def test_a_refit_by_hand_comes_at_any_time(self):
        forecaster = small()
        live(forecaster, daily(4 * DAY + 5))
        fits = forecaster.counts["fits"]

        forecaster.refit()

        assert forecaster.counts["fits"] == fits + 1
        assert forecaster.predict().source == "model"


class TestWorkspace:
    @each_horizon(1, 4)
    def test_one_serves_many_in_turn_and_changes_no_number(self, horizon):
        workspace = Workspace()
        alone = [small(horizon=horizon, train_size=60 + 20 * i) for i in range(2)]
        sharing = [
            small(horizon=horizon, train_size=60 + 20 * i, defer_refits=True) for i in range(2)
        ]

        series = [daily(6 * DAY, seed=seed) for seed in range(2)]

        for i in range(6 * DAY):
            for values, one, other in zip(series, alone, sharing, strict=True):
                reading = i, values[i]
                same(take(one, reading), take(other, reading))
                if other.refit_due:
                    other.refit(workspace)

        for one, other in zip(alone, sharing, strict=True):
            assert one.hyperparameters == other.hyperparameters

    @each_horizon(1, 4)
    def test_one_of_its_own_changes_no_number(self, horizon):
        _, forecasts = plain_run(horizon)
        holding = small(horizon=horizon)
        holding.workspace = Workspace()

        for forecast, reading in zip(forecasts, troubled(), strict=True):
            same(take(holding, reading), forecast)

    def test_models_of_different_kinds_can_share_it(self):
        workspace = Workspace()
        fleet = [
            Forecaster.paper("1h", lags=5, train_size=60, update_every=DAY, warmup=3 * DAY),
            small(),
        ]

        for reading in enumerate(daily(6 * DAY).tolist()):
            for forecaster in fleet:
                take(forecaster, reading)
                if reading[0] % DAY == 0 and forecaster.tuning.has_model:
                    forecaster.refit(workspace)

        assert all(forecaster.counts["fits"] > 3 for forecaster in fleet)

    def test_after_a_refit_nothing_but_the_result_is_held(self):
        forecaster, _ = lived(12)
        forecaster.workspace = None
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            forecaster.refit()
            held = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

        assert held < 240 * 240  # an eighth of one matrix

    def test_between_refits_the_rows_are_held_once_at_most(self):
        forecaster = small(train_size=240, lags=40)
        live(forecaster, daily(12 * DAY))
        forecaster.workspace = Workspace()
        rows = forecaster._model.training.inputs.x.nbytes
        forecaster.workspace = None
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            forecaster.predict()
            forecaster.observe(START + 12 * DAY * HOUR, 100.0)
            forecaster.predict()
            held = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

        # The embedded rows of the model, of its baseline (a quarter), and a few columns of weights.
        assert held < 2.2 * rows

    def test_with_a_workspace_the_matrices_are_held_until_it_is_taken_away(self):
        forecaster, _ = lived(12)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            forecaster.workspace = Workspace()
            forecaster.refit()
            held = tracemalloc.get_traced_memory()[0] - before
            forecaster.workspace = None
            after = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

        assert held > 240 * 240 * 8 > 8 * after


def test_a_silence_of_years_keeps_the_rows_before_it_and_little_more():
    forecaster = small(train_size=60)
    values = daily(8 * DAY)
    live(forecaster, values[: 6 * DAY])
    size = len(forecaster.to_bytes())

    live(forecaster, values[6 * DAY :], 6 * DAY + 700 * DAY)

    assert forecaster.counts["fits"] >= 5
    spread = np.ptp(rows(forecaster).t)
    assert spread > 600 * DAY  # rows of before and after
    assert len(forecaster.to_bytes()) < 2.5 * size  # six weeks behind the rows on either side
    twin = Forecaster.from_bytes(forecaster.to_bytes())
    same(twin.predict(), forecaster.predict())


def test_silences_that_follow_one_another_are_filled_with_the_season_that_was_best():
    forecaster = Forecaster.paper("1h", lags=5, train_size=60, update_every=DAY, warmup=3 * DAY)
    week = daily(7 * DAY)  # longer than a row looks back
    live(forecaster, week)

    for weeks in (8, 16):
        live(forecaster, week[:1], weeks * 7 * DAY)

    timeline = forecaster._history.timeline
    steps = timeline.newest - np.arange(1, 3 * DAY)  # a day ago was better than longer ago
    filled = timeline.values(steps)
    assert filled.tolist() == timeline.values(steps - DAY).tolist()
    assert week.min() <= filled.min() < filled.max() <= week.max()


class TestPartsOfBytes:
    def test_what_changes_between_refits_is_small(self):
        forecaster, _ = lived(14)
        live(forecaster, daily(14 * DAY + 7)[14 * DAY :], 14 * DAY)

        whole, later = forecaster.to_bytes(), forecaster.to_bytes(since_refit=True)

        assert len(later) < 8_000 < len(whole)

    def test_a_part_of_another_refit_is_refused(self):
        forecaster, _ = lived(4)
        whole = forecaster.to_bytes()
        forecaster.refit()

        with pytest.raises(StateError, match="must be of the same refit as the whole"):
            Forecaster.from_bytes(whole, forecaster.to_bytes(since_refit=True))

    def test_a_part_of_another_sensor_is_refused(self):
        fleet = [small() for _ in range(2)]
        for seed, forecaster in enumerate(fleet):
            live(forecaster, daily(4 * DAY, seed=seed))

        with pytest.raises(StateError, match="must be of the same refit as the whole"):
            Forecaster.from_bytes(fleet[0].to_bytes(), fleet[1].to_bytes(since_refit=True))

    @pytest.mark.parametrize("kept_after", [0, 1], ids=["before", "after the late reading"])
    def test_a_reading_that_came_late_and_was_excluded_is_in_the_part(self, kept_after):
        values = daily(6 * DAY)
        forecaster = small()
        live(forecaster, [*values[: 3 * DAY], np.nan, *values[3 * DAY + 1 : 4 * DAY]])
        forecaster.refit()
        kept = [forecaster.to_bytes()]
        forecaster.observe(START + 3 * DAY * HOUR, 77.0)
        kept += [forecaster.to_bytes()]
        forecaster.exclude(START + 3 * DAY * HOUR, START + 3 * DAY * HOUR)

        twin = Forecaster.from_bytes(kept[kept_after], forecaster.to_bytes(since_refit=True))

        one, other = state_of(twin), state_of(forecaster)
        for name in other:
            assert one[name].tobytes() == other[name].tobytes(), name

    def test_a_silence_since_the_refit_is_in_the_part(self):
        forecaster = small(train_size=60)
        values = daily(6 * DAY)
        live(forecaster, values[: 5 * DAY])
        whole = forecaster.to_bytes()
        live(forecaster, values[5 * DAY : 5 * DAY + 3], 500 * DAY)

        twin = Forecaster.from_bytes(whole, forecaster.to_bytes(since_refit=True))

        later = values[5 * DAY + 3 :]
        for one, other in zip(
            live(forecaster, later, 500 * DAY + 3), live(twin, later, 500 * DAY + 3), strict=True
        ):
            same(one, other)

    @pytest.mark.parametrize(
        ("act", "error", "message"),
        [
            (lambda f: Forecaster.from_bytes("text"), InvalidInputError, "content must be bytes"),
            (lambda f: Forecaster.from_bytes(b"text"), StateError, "content is not a streamridge"),
            (
                lambda f: Forecaster.from_bytes(f.to_bytes(), b"text"),
                StateError,
                "the later part is not a streamridge",
            ),
            (
                lambda f: Forecaster.from_bytes(f.to_bytes(since_refit=True)),
                StateError,
                "content must hold a forecaster, got 'forecaster since its refit'",
            ),
            (lambda f: f.refit(7), InvalidInputError, "workspace must be a Workspace or None"),
            (lambda f: small(defer_refits="no"), InvalidInputError, "defer_refits must be True or"),
        ],
    )
    def test_bad_input_is_refused_and_nothing_changes(self, act, error, message):
        forecaster, _ = lived(4)
        before = state_of(forecaster)

        with pytest.raises(error, match=message):
            act(forecaster)

        after = state_of(forecaster)
        assert all(before[name].tobytes() == after[name].tobytes() for name in before)


@pytest.mark.slow
def test_a_sensor_that_says_nothing_for_long_takes_no_more_memory():
    forecaster = Forecaster.paper("1h", lags=3, train_size=60, update_every=DAY, warmup=3 * DAY)
    live(forecaster, daily(5 * DAY))

    sizes = []
    for month in range(3):
        first = (5 + 30 * month) * DAY
        live(forecaster, [np.nan] * 30 * DAY, first)
        sizes.append(len(forecaster.to_bytes()))

    assert sizes[2] < 1.2 * sizes[0]
    live(forecaster, daily(2 * DAY), 95 * DAY)
    assert forecaster.predict().source == "model"
    assert np.isfinite(forecaster.predict().value).all()


def test_two_long_gaps_leave_finite_forecasts():
    forecaster = Forecaster.paper("1h", lags=3, train_size=60, update_every=DAY, warmup=3 * DAY)
    values = daily(5 * DAY)

    for first in (0, 300 * DAY, 600 * DAY):
        for forecast in live(forecaster, values, first)[1:]:
            assert np.isfinite([forecast.value, forecast.lower, forecast.upper]).all()


def test_a_long_gap_of_short_steps_is_quick():
    forecaster = Forecaster("1s", seasons=(), lags=3, train_size=60, update_every=24, warmup=50)
    for second in range(80):
        forecaster.observe(START + np.timedelta64(second, "s"), float(second % 7))
    tracemalloc.start()
    try:
        forecaster.observe(START + np.timedelta64(900, "D"), 3.0)
        forecaster.refit()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 300e6  # matrices take some slabs of 34 MB each, a number a second 600 MB
