"""A sensor's state is a function of its log."""

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamridge import Forecaster, Workspace
from streamridge_service.ledger.records import Action, Kind, SensorRow, StoredReading
from streamridge_service.plan import MINUTE, SECOND, Declaration, Plan
from streamridge_service.workers.snapshots import refitted
from streamridge_service.workers.steps import in_order, step_values
from streamridge_service.workers.tracker import Tracker, to_datetime
from tests.support.tiers import tiered
from tests.support.workers.logs import (
    DAY,
    PLAN,
    SENSOR,
    START,
    STEP,
    World,
    daily,
    entries,
    numbered,
)


@pytest.fixture(scope="module")
def lived():
    """Return a sensor that was followed for five days and a half, with two refits."""
    return World().follow(entries(daily(4 * DAY + DAY // 2)))


@pytest.fixture(scope="module")
def four_days():
    """Return a sensor that was followed for four days."""
    return World().follow(entries(daily(4 * DAY)))


def swapped(log, seed, share=0.05):
    """Return a log in which neighbours have changed places, each at most once."""
    rng, log, i = random.Random(seed), list(log), 0
    while i < len(log) - 1:
        if rng.random() < share:
            log[i], log[i + 1] = log[i + 1], log[i]
            i += 1
        i += 1
    return numbered(log)


class TestOneLogOneState:
    def test_a_tracker_makes_the_forecasts_of_a_forecaster(self, lived):
        plain = Forecaster.from_settings(PLAN.settings(Declaration()))
        for entry in lived.log[: 2 * DAY]:
            plain.observe(to_datetime(entry.time), entry.value)
        issued = lived.issued[2 * DAY - 1]

        forecast = plain.predict()

        assert issued.values == tuple(forecast.value.tolist())
        assert issued.lower == tuple(forecast.lower.tolist())
        assert issued.time == lived.log[2 * DAY].time

    def test_every_reading_makes_one_forecast(self, lived):
        assert [each.seq for each in lived.issued] == [each.seq for each in lived.log]

    def test_the_model_makes_forecasts_after_the_first_refit_point(self, lived):
        kinds = [each.point.kind for each in lived.snapshots]

        assert kinds[-2:] == ["refit", "refit"]
        assert lived.issued[-1].source == "model"
        assert lived.tracker.summary.fitted

    def test_a_tracker_loaded_from_its_last_snapshot_is_equal(self, lived):
        assert lived.made_again().to_bytes() == lived.tracker.to_bytes()

    def test_a_tracker_loaded_at_every_reading_is_equal(self, four_days):
        other = World()
        for entry in four_days.log:
            if entry.seq > 4 * DAY - DAY // 8:
                other.tracker = other.made_again()
            other.take(entry)

        assert other.digest == four_days.digest

    def test_a_refit_uses_only_readings_before_its_refit_point(self, lived):
        before, last = lived.snapshots[-2:]
        tracker = Tracker.resumed(SENSOR, PLAN, before)
        since = [e for e in lived.log if before.point.seq < e.seq <= last.point.seq]
        tracker.catch_up(since)
        saved = msgspec.structs.replace(tracker.saved_state(), point=last.point)

        assert refitted(saved, Workspace()).state == last.state


class TestOrder:
    @pytest.mark.parametrize(
        "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]
    )
    def test_any_order_within_the_grace_gives_the_same_bytes(self, lived, seed, record_property):
        record_property("row", "B1")

        world = World().follow(swapped(entries(daily(4 * DAY + DAY // 2)), seed))

        assert world.rebuilt > 10
        assert world.digest == lived.digest

    @settings(max_examples=20, deadline=None)
    @given(st.randoms(use_true_random=False))
    def test_any_order_of_arrival_is_processed_in_one_order(self, rng):
        log = entries(daily(DAY // 2))
        keys = [entry.time + rng.uniform(0, PLAN.open_for - STEP) for entry in log]
        shuffled = numbered([e for _, e in sorted(zip(keys, log, strict=True))])

        ordered = in_order(shuffled, log[0].time - STEP, PLAN)

        assert [each.time for each in ordered] == [each.time for each in log]

    def test_without_the_grace_the_order_matters(self, lived):
        # The harness notices: a tracker that takes readings as they come has another state.
        hasty = World(plan=msgspec.structs.replace(PLAN, grace=-STEP))
        hasty.follow(swapped(entries(daily(4 * DAY + DAY // 2)), 0))

        assert hasty.rebuilt == 0
        assert hasty.tracker.to_bytes() != lived.tracker.to_bytes()

    def test_late_readings_are_used_at_the_next_refit(self):
        log = entries(daily(4 * DAY))
        late = log.pop(3 * DAY + 10)
        world = World().follow(numbered([*log, late]))

        assert world.rebuilt == 0
        assert world.tracker.forecaster.counts["late"] == 1
        assert world.made_again().to_bytes() == world.tracker.to_bytes()

    @pytest.mark.parametrize("times", [2, 5])
    def test_a_repeated_reading_is_learned_once(self, times, record_property):
        # The intake recognizes duplicates before they get here; the state would not change either.
        record_property("row", "B2")

        assert forecasts(repeated(times)) == forecasts(repeated(1))

    def test_a_tracker_that_learns_duplicates_fails_these_tests(self, monkeypatch, record_property):
        record_property("row", "B2 broken")

        def stepping(self, entry, waiting):
            self._learn(max(entry.time, self.summary.newest + STEP), entry.value, waiting)
            return [self.forecast(entry.seq)]

        monkeypatch.setattr(Tracker, "_observe", stepping)

        assert forecasts(repeated(2)) != forecasts(repeated(1))


def repeated(times):
    """Return two days of readings, each of which comes some times in a row."""
    return numbered([entry for entry in entries(daily(2 * DAY)) for _ in range(times)])


def forecasts(log):
    return [issued.values for issued in World().follow(log).issued]


class TestGaps:
    @pytest.mark.parametrize("cases", [5, pytest.param(1000, marks=pytest.mark.slow)])
    def test_forecasts_recover_within_twenty_readings_after_any_gap(
        self, lived, cases, record_property
    ):
        record_property("row", "B7")
        record_property("cases", cases)
        fitted = refitted(lived.tracker.saved_state(), Workspace())
        rng = np.random.default_rng(7)

        for case in range(cases):
            log = with_gaps(rng, after=fitted.point.until, silence=8 * DAY if case == 0 else 0)
            tracker = Tracker.resumed(SENSOR, PLAN, fitted)
            issued = [each for entry in log for each in tracker.process(entry)]

            # Each forecast is made of a reading that came, and of nothing that was filled in.
            assert [each.seq for each in issued] == [entry.seq for entry in log]
            for each in issued:
                assert np.isfinite([*each.lower, *each.values, *each.upper]).all()
                assert each.lower <= each.values <= each.upper
            # The model has weight again, along with experts that may be better for a while.
            assert tracker.forecaster.tuning.experts["model"] > 0

    @pytest.mark.parametrize("cases", [20, pytest.param(1000, marks=pytest.mark.slow)])
    def test_gaps_before_the_first_fit_are_harmless(self, cases, record_property):
        record_property("row", "B7")
        record_property("cases", cases)
        rng = np.random.default_rng(0)

        for _ in range(cases):
            for issued in World().follow(with_gaps(rng, after=START)).issued:
                assert np.isfinite([*issued.lower, *issued.values, *issued.upper]).all()
                assert issued.lower <= issued.values <= issued.upper

    def test_a_forecast_of_later_steps_changes_nothing(self, lived):
        before = lived.tracker.to_bytes()

        ahead = lived.tracker.forecast_from(lived.tracker.newest + 5 * STEP + 1)

        assert ahead.time == lived.tracker.newest + 6 * STEP
        assert lived.tracker.to_bytes() == before
        assert lived.tracker.forecast_from(lived.tracker.newest) is None


def with_gaps(rng, after, silence=0):
    """Return readings of up to a day with gaps of all kinds, and then twenty without.

    Some steps are missing, some say that there was no measurement, and whole spans are missing. A
    silence at the history may be as long as wanted.
    """
    steps, first = int(rng.integers(1, DAY)), (after - START) // STEP + 1 + silence
    values = np.array(daily(first + steps + 20, seed=int(rng.integers(100)))[first:])
    values[:steps][rng.random(steps) < rng.uniform(0, 0.9)] = np.nan
    missing = np.zeros(len(values), bool)
    missing[:steps] = rng.random(steps) < rng.uniform(0, 0.9)
    for begin in rng.integers(0, steps, int(rng.integers(4))):
        missing[begin : min(begin + int(rng.integers(1, DAY // 2)), steps)] = True
    return [
        StoredReading(
            10_000 + i, 1, START + (first + i) * STEP, None if np.isnan(v) else float(v), 0
        )
        for i, v in enumerate(values)
        if not missing[i]
    ]


class TestRules:
    @pytest.mark.parametrize("rule", ["sum", "mean", "last"])
    def test_finer_readings_are_combined(self, rule, record_property):
        record_property("row", "B13")
        record_property("cases", 3)
        values, third = daily(2 * DAY), 5 * MINUTE
        fine = [
            StoredReading(3 * i + k + 1, 1, START + i * STEP + k * third, value + k, 0)
            for i, value in enumerate(values)
            for k in range(3)
        ]
        shares = {"sum": lambda v: 3 * v + 3, "mean": lambda v: v + 1, "last": lambda v: v + 2}
        coarse = World().follow(entries([shares[rule](value) for value in values]))
        combining = World(plan=msgspec.structs.replace(PLAN, rule=rule)).follow(fine)

        # The last step is still open.
        made = [each.values for each in combining.issued]
        np.testing.assert_allclose(made, [e.values for e in coarse.issued[:-1]], rtol=1e-9)

    def test_the_order_within_a_step_does_not_matter(self):
        plan = msgspec.structs.replace(PLAN, rule="mean")
        fine = [
            StoredReading(i + 1, 1, START + i * 5 * MINUTE, value, 0)
            for i, value in enumerate(daily(6 * DAY))
        ]
        world = World(plan=plan).follow(fine)
        other = World(plan=plan).follow(swapped(fine, 1))

        assert other.digest == world.digest


class TestNull:
    """A value may come after null for the same step."""

    def filled(self, values, at, after):
        """Return a log in which a step is null at first; its value comes some steps later."""
        log = entries([None if i == at else value for i, value in enumerate(values)])
        fill = StoredReading(0, 1, log[at].time, values[at], 0, Kind.FILL)
        log.insert(at + 1 + after, fill)
        return numbered(log)

    @pytest.mark.parametrize("after", [0, 1])
    def test_while_its_step_is_open_the_state_is_that_without_null(self, four_days, after):
        world = World().follow(self.filled(daily(4 * DAY), 3 * DAY + 50, after))

        assert world.digest == four_days.digest
        assert world.made_again().to_bytes() == world.tracker.to_bytes()

    def test_the_newest_step_is_forecast_again(self):
        values = daily(2 * DAY)
        log = self.filled(values, 2 * DAY - 1, 0)

        last = Tracker(SENSOR, PLAN).catch_up(log)[-1]

        assert last.seq == log[-1].seq
        assert last.values == World().follow(entries(values)).issued[-1].values

    def test_later_it_is_a_late_reading(self):
        log = self.filled(daily(4 * DAY), 3 * DAY + 10, 20)

        world = World().follow(log)

        assert world.rebuilt == 0
        assert world.tracker.forecaster.counts["late"] == 1
        assert world.made_again().to_bytes() == world.tracker.to_bytes()

    def test_the_value_counts_in_a_new_start(self):
        values = daily(DAY)
        times, found = step_values(self.filled(values, 5, 40), PLAN)

        assert found.tolist() == values
        assert len(times) == DAY

    def test_with_a_rule_it_replaces_null_of_its_time(self):
        plan = msgspec.structs.replace(PLAN, rule="sum")
        fine = [StoredReading(i + 1, 1, START + i * 5 * MINUTE, 1.0 + i % 7, 0) for i in range(90)]
        nulled = msgspec.structs.replace(fine[61], value=None)
        fill = msgspec.structs.replace(fine[61], kind=Kind.FILL)

        world = World(plan=plan).follow(numbered([*fine[:61], nulled, fill, *fine[62:]]))

        assert world.digest == World(plan=plan).follow(fine).digest


class TestActions:
    def test_an_action_does_not_change_the_order_of_processing(self):
        values = daily(4 * DAY)
        *before, null, last = entries([*values[:-2], None, values[-1]])
        fill = StoredReading(last.seq + 1, 1, null.time, values[-2], 0, Kind.FILL)
        world = World().follow([*before, null])
        # An action saves the state of a sensor at once.
        world.snapshots.append(refitted(world.tracker.saved_state(), Workspace()))
        world.tracker = world.made_again()

        world.follow([last, fill])

        assert world.rebuilt == 1
        assert world.made_again().to_bytes() == world.tracker.to_bytes()

    def act(self, world, kind, **body):
        seq = world.log[-1].seq + 1
        world.take(Action(seq, 1, kind, msgspec.json.encode(body), 0))
        return world.tracker

    def test_hyperparameters_are_set_and_frozen(self):
        world = World().follow(entries(daily(4 * DAY)))

        tracker = self.act(world, "set", values={"regularization": 0.5})
        assert tracker.forecaster.hyperparameters["regularization"] == 0.5
        tracker = self.act(world, "freeze", names=["regularization"])
        assert "regularization" in tracker.forecaster.tuning.frozen

        assert world.made_again().to_bytes() == tracker.to_bytes()

    def test_hyperparameters_are_rolled_back(self):
        world = World().follow(entries(daily(5 * DAY)))
        space = world.tracker.settings.model.space

        tracker = self.act(world, "rollback")

        assert tracker.forecaster.hyperparameters == pytest.approx(space.named(space.values))

    def test_a_span_is_excluded(self):
        world = World().follow(entries(daily(4 * DAY)))

        tracker = self.act(
            world, "exclude", start=str(to_datetime(START)), end=str(to_datetime(START + STEP))
        )

        assert tracker.forecaster.tuning.has_model
        assert world.made_again().to_bytes() == tracker.to_bytes()


class TestKinds:
    def test_a_held_reading_changes_no_byte(self, record_property):
        record_property("row", "B4")
        log = entries(daily(2 * DAY))
        ahead = StoredReading(DAY + 1, 1, START + 9 * DAY * STEP, 1e5, 0, Kind.HELD)
        with_one = numbered([*log[:DAY], ahead, *log[DAY:]])

        assert World().follow(with_one).digest == World().follow(log).digest

    def test_a_backfill_requests_a_new_start(self):
        world = World().follow(entries(daily(3 * DAY), kind=Kind.BACKFILL))

        assert world.tracker.restart == "start"
        assert not world.issued

    def test_the_first_of_two_values_counts_until_a_revision(self):
        log = entries([1.0, 2.0, 3.0])
        again = StoredReading(4, 1, log[1].time, 9.0, 0)
        revised = msgspec.structs.replace(again, seq=5, kind=Kind.REVISION)

        assert step_values([*log, again], PLAN)[1].tolist() == [1.0, 2.0, 3.0]
        assert step_values([*log, again, revised], PLAN)[1].tolist() == [1.0, 9.0, 3.0]

    def test_a_log_of_an_earlier_version_counts_as_it_did(self):
        # Without a rule, it may have several times about one step.
        first, second = entries([1.0, 2.0])
        beside = [
            StoredReading(3, 1, first.time + 80 * SECOND, 5.0, 0),
            StoredReading(4, 1, first.time, 7.0, 0, Kind.REVISION),
            StoredReading(5, 1, second.time - 80 * SECOND, None, 0),
        ]

        assert step_values([first, second, *beside], PLAN)[1].tolist() == [5.0, 2.0]


def test_refits_are_spread_over_the_steps(record_property):
    record_property("row", "C6")
    record_property("cases", 4000)
    counts = np.bincount([PLAN.stagger(f"sensor-{i}") for i in range(4000)], minlength=DAY)

    assert counts.max() <= 1.5 * counts.mean()


@pytest.mark.parametrize(
    "value", tiered([0.0, 1.0, 1e-300, 1e6, 1e12], quick=lambda value: value in (0.0, 1e12))
)
def test_a_constant_sensor_has_finite_forecasts(value, record_property):
    record_property("row", "B10")
    record_property("cases", 4)
    plan = Plan(step=STEP, train_size=96)
    world = World(plan=plan, sensor=SensorRow(1, "stuck", START))

    world.follow(entries([value] * 500))

    for issued in world.issued:
        assert np.isfinite([*issued.lower, *issued.values, *issued.upper]).all()
        assert issued.lower <= issued.values <= issued.upper
    assert world.tracker.summary.equal == 500


def test_values_outside_the_bounds_count_as_gaps(record_property):
    record_property("row", "B9")
    rng = np.random.default_rng(0)
    values = daily(4 * DAY)
    planted = set(rng.choice(len(values), len(values) // 100, replace=False).tolist())
    record_property("cases", len(planted))
    bounded = SensorRow(1, "north", START, msgspec.json.encode(Declaration(bounds=(0.0, 1000.0))))
    wild = [-50.0 if i in planted else value for i, value in enumerate(values)]
    gaps = [None if i in planted else value for i, value in enumerate(values)]

    with_wild, with_gaps = (World(bounded).follow(entries(each)) for each in (wild, gaps))

    assert [e.values for e in with_wild.issued] == [e.values for e in with_gaps.issued]
    assert [e.upper for e in with_wild.issued] == [e.upper for e in with_gaps.issued]
