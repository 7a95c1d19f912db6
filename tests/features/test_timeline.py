"""The timeline, compared with a plain dictionary of steps after any actions."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge import InvalidInputError, StateError
from streamridge.features.timeline import CHUNK, Timeline, updated

FIRST, PERIOD = 1000, 7


def filled_in(timeline, steps):
    """Return a mask of the steps that are filled in by forecasts."""
    return timeline.sound(steps) & ~timeline.trusted(steps)


@dataclass(frozen=True)
class Known:
    """The data of one step; `then` holds the data at the last refit."""

    value: float
    extra: float = np.nan
    read: bool = False
    trusted: bool = False
    filled: bool = False
    then: "Known | None" = None


@dataclass
class PlainTimeline:
    """The stored steps, by number."""

    steps: dict = field(default_factory=dict)
    newest: int = FIRST - 1

    def at(self, which):
        """Return one of the stored steps."""
        return sorted(self.steps)[which % len(self.steps)]

    def put(self, known):
        self.newest += 1
        self.steps[self.newest] = known

    def change(self, step, **news):
        self.steps[step] = replace(self.steps[step], **news)

    def append_gap(self, count, period, needed):
        last = range(self.newest - period + 1, self.newest + 1)
        first = self.newest
        while first - 1 in self.steps:
            first -= 1
        pattern = [self.steps[max(step, first)].value for step in last]
        end = self.newest + count
        for step in range(max(self.newest, end - needed) + 1, end + 1):
            self.steps[step] = Known(pattern[(step - last[0]) % period], filled=True)
        self.newest = end

    def mark_refit(self):
        for step, known in self.steps.items():
            self.change(step, then=replace(known, then=None))

    def forget_before(self, step):
        self.steps = {each: known for each, known in self.steps.items() if each >= step}


def restored(state):
    timeline = Timeline(state["extras"].shape[1])
    timeline.restore(state)
    return timeline


class Both:
    """A timeline and its plain version, with the state at the last refit."""

    def __init__(self):
        self.timeline, self.plain, self.pushed = Timeline(extras=1), PlainTimeline(), 0
        self.timeline.start_at(FIRST)
        self.push(1, "good")
        self.keep()

    def push(self, count, kind):
        for _ in range(count):
            self.pushed += 1
            extra = np.nan if self.pushed % 5 == 0 else -float(self.pushed)
            read, trusted = kind != "gap", kind == "good"
            known = Known(float(self.pushed), extra, read, trusted, filled=not read)
            extras = None if np.isnan(extra) else np.array([extra])
            self.timeline.push(known.value, read=read, trusted=trusted, extras=extras)
            self.plain.put(known)

    def correct(self, which):
        step = self.plain.at(which)
        if self.plain.steps[step].filled:  # an excluded step never takes a reading
            self.pushed += 1
            self.timeline.correct(step, float(self.pushed))
            news = {"value": float(self.pushed), "read": True, "trusted": True, "filled": False}
            self.plain.change(step, **news)

    def distrust(self, which, count):
        steps = sorted({self.plain.at(which + i) for i in range(count)})
        self.timeline.distrust(np.array(steps))
        for step in steps:
            self.plain.change(step, trusted=False)

    def unread(self, which):
        step = self.plain.at(which)
        self.timeline.mark_missing(np.array([step]))
        self.plain.change(step, read=False, trusted=False)

    def cut(self, which, count):
        first = self.timeline.after_holes
        first += which % (self.plain.newest - first + 1)
        end = min(first + count, self.plain.newest)
        if end > first:
            self.timeline.cut(first, end)
            for step in range(first, end):
                del self.plain.steps[step]

    def leap(self, count, beyond):
        for each in (self.timeline, self.plain):
            each.append_gap(count, PERIOD, PERIOD + beyond)

    def refit(self, which, after):
        """Mark a refit, drop old steps, and keep the state, as a refit does."""
        oldest = min(self.plain.at(which) + after, self.plain.newest)
        for each in (self.timeline, self.plain):
            each.mark_refit()
            each.forget_before(oldest)
        self.keep()

    def keep(self):
        self.kept = self.timeline.state()

    def reload(self):
        self.timeline = restored(self.timeline.state())

    def check(self):
        """Compare all lookups of the timeline, including steps that it does not store."""
        timeline, known = self.timeline, self.plain.steps
        steps = np.arange(FIRST - 2, self.plain.newest + 3)
        each = [known.get(int(step), Known(np.nan)) for step in steps]
        assert (timeline.start, timeline.newest) == (FIRST, self.plain.newest)
        assert len(timeline) == self.plain.newest - FIRST + 1
        assert timeline.remembered().tolist() == sorted(known)
        assert [timeline.is_remembered(int(step)) for step in steps] == [s in known for s in steps]
        assert [timeline.was_read(step) for step in known] == [one.read for one in known.values()]
        np.testing.assert_array_equal(timeline.values(steps), [one.value for one in each])
        np.testing.assert_array_equal(timeline.extras(steps)[:, 0], [one.extra for one in each])
        self.check_trust(steps, each)
        read, values, _ = timeline.readings()
        assert read.tolist() == [step for step in sorted(known) if known[step].read]
        np.testing.assert_array_equal(values, [known[step].value for step in read])
        self.check_parts()

    def check_parts(self):
        """Compare the timeline with the stored state plus the changes."""
        twin = updated(self.kept, self.timeline.changes())
        state, wanted = twin.state(), self.timeline.state()
        for name in state:
            np.testing.assert_array_equal(state[name], wanted[name])

    def check_trust(self, steps, each):
        timeline = self.timeline
        assert timeline.trusted(steps).tolist() == [one.trusted for one in each]
        assert filled_in(timeline, steps).tolist() == [one.filled for one in each]
        view, then = timeline.as_at_refit(), [one.then for one in each]
        assert view.trusted(steps).tolist() == [bool(one and one.trusted) for one in then]
        # Steps that were neither trusted nor filled were not learned from.
        known = [i for i, one in enumerate(then) if one and (one.trusted or one.filled)]
        assert filled_in(view, steps[known]).tolist() == [then[i].filled for i in known]
        np.testing.assert_array_equal(view.values(steps[known]), [then[i].value for i in known])


COUNTS, PLACES = st.integers(1, 40), st.integers(0, 400)
ACTS = st.one_of(
    st.tuples(st.just("push"), COUNTS, st.sampled_from(["good", "doubted", "gap"])),
    st.tuples(st.just("push"), st.just(CHUNK), st.just("good")),
    st.tuples(st.just("correct"), PLACES),
    st.tuples(st.just("distrust"), PLACES, COUNTS),
    st.tuples(st.just("unread"), PLACES),
    st.tuples(st.just("cut"), PLACES, COUNTS),
    st.tuples(st.just("leap"), st.integers(1, 90), st.integers(0, 9)),
    st.tuples(st.just("refit"), PLACES, st.integers(0, 1)),
    st.tuples(st.sampled_from(["keep", "reload"])),
)


@given(st.lists(ACTS, max_size=14))
def test_a_timeline_equals_a_dictionary_of_steps_after_any_actions(acts):
    both = Both()

    for name, *args in acts:
        getattr(both, name)(*args)

        both.check()


def test_a_late_reading_is_undone_for_the_refit_before_it():
    timeline = grown()
    timeline.push(5.0, read=False, trusted=False)
    timeline.mark_refit()
    timeline.correct(5, 77.0)
    step = np.array([5])

    for filled, value in ((True, 5.0), (False, 77.0)):
        view = timeline.as_at_refit()
        assert filled_in(view, step).tolist() == [filled]
        assert view.value(5) == value
        timeline.mark_refit()

    assert len(timeline.state()["replaced"]) == 0  # the last refit did not see the fill


def grown(count=5):
    """Return a timeline whose every step is a trusted reading."""
    timeline = Timeline()
    for value in range(count):
        timeline.push(float(value), read=True, trusted=True)
    return timeline


def test_changes_hold_a_late_reading_that_was_excluded_since():
    timeline = grown()
    timeline.push(5.0, read=False, trusted=False)
    timeline.mark_refit()
    whole = timeline.state()
    timeline.correct(5, 77.0)
    timeline.distrust(np.array([5]))

    twin = updated(whole, timeline.changes())

    assert twin.was_read(5)
    assert twin.values(np.array([5])) == 77.0


def test_changes_hold_only_steps_changed_since_the_refit():
    timeline = grown(20)
    timeline.mark_refit()
    timeline.push(20.0, read=True, trusted=True)
    timeline.distrust(np.array([3]))

    assert timeline.changes()["steps"].tolist() == [3, 20]


def test_a_gap_of_years_takes_no_memory():
    timeline = grown()

    timeline.append_gap(10**9, period=3, needed=4)

    assert timeline.state()["values"].tolist() == [0, 1, 2, 3, 4, 2, 3, 4, 2]


def test_dropped_steps_free_their_memory():
    timeline = grown(10 * CHUNK)

    timeline.forget_before(timeline.newest)

    assert timeline._values.base is None
    assert len(timeline._values) < 2 * CHUNK + 1


@pytest.mark.parametrize(("oldest", "left"), [(4, [4, 15, 16]), (5, [15, 16]), (14, [15, 16])])
def test_a_long_gap_is_dropped_with_the_steps_before_it(oldest, left):
    timeline = grown()
    timeline.append_gap(12, period=2, needed=2)

    timeline.forget_before(oldest)

    assert timeline.remembered().tolist() == left
    assert timeline.values(np.array([15, 16])).tolist() == [3, 4]


def test_a_step_can_be_added_after_all_steps_are_dropped():
    timeline = grown()

    timeline.forget_before(99)
    timeline.push(5.0, read=True, trusted=True)

    assert timeline.remembered().tolist() == [5]


def test_an_empty_timeline_can_be_saved():
    timeline = Timeline()
    timeline.start_at(7)

    again = restored(timeline.state())
    assert np.isnan(again.values(np.array([6, 7]))).all()
    again.push(1.0, read=True, trusted=True)

    assert again.remembered().tolist() == [7]


def test_dropped_steps_do_not_come_back():
    timeline = grown()
    timeline.forget_before(3)

    timeline.forget_before(1)

    assert timeline.remembered().tolist() == [3, 4]


def test_a_state_shares_no_memory_with_the_timeline():
    timeline = grown()
    state = timeline.state()
    twin = restored(state)

    timeline.distrust(np.array([1]))
    twin.distrust(np.array([2]))

    assert (state["flags"] == state["flags"][0]).all()
    assert timeline.trusted(np.arange(3)).tolist() == [True, False, True]


BAD = {
    "newest before oldest": ("span", [0, 7, 5], StateError, "oldest 7 and newest 5"),
    "oldest before the first": ("span", [1, 0, 4], StateError, "first 1, oldest 0"),
    "a value short": ("values", np.zeros(4), InvalidInputError, r"values must have shape \(5,\)"),
    "a flag short": ("flags", np.zeros(4), InvalidInputError, r"flags must have shape \(5,\)"),
    "other columns": ("extras", np.zeros((5, 1)), InvalidInputError, "extras must have shape"),
    "no fills": ("replaced", np.zeros(2), InvalidInputError, "replaced must have shape"),
    "no holes": ("holes", np.zeros(2), InvalidInputError, "holes must have shape"),
}


@pytest.mark.parametrize(("name", "array", "error", "message"), BAD.values(), ids=BAD)
def test_an_inconsistent_state_is_refused(name, array, error, message):
    timeline = grown()
    state = {**timeline.state(), name: np.array(array)}

    with pytest.raises(error, match=message):
        timeline.restore(state)

    assert timeline.values(np.arange(5)).tolist() == [0, 1, 2, 3, 4]
