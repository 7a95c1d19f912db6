"""What a clock says of one step or moment is what it says of many."""

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamridge.series.clock import Clock, IndexClock
from streamridge.series.zones import parse_zone

ZONES = [None, "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/New_York"]
STEPS = [timedelta(minutes=1), timedelta(minutes=7), timedelta(minutes=15), timedelta(hours=1)]


@given(
    moment=st.integers(-(10**15), 10**16),
    step=st.sampled_from([*STEPS, timedelta(days=7)]),
    phase=st.integers(0, 59),
    halves=st.booleans(),
)
def test_the_nearest_step_of_one_moment_and_of_an_array_agree(moment, step, phase, halves):
    clock = Clock(step, timedelta(seconds=phase))
    half = step // timedelta(microseconds=1) // 2
    if halves:  # exactly between two steps
        moment = moment // half * half + phase * 10**6
    times = np.array([moment]).astype("M8[us]")

    nearest, on_grid = clock.nearest(moment)

    assert nearest == clock.steps(times)[0]
    assert on_grid == (clock.times(clock.steps(times)) == times)[0]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("step", STEPS)
def test_the_shift_of_one_step_and_of_an_array_agree(zone, step):
    clock = Clock(step, timedelta(seconds=30), parse_zone(zone))
    year = timedelta(days=365) // step
    steps = np.linspace(41 * year, 57 * year, 97).astype(np.int64)

    assert [clock.shift(each) for each in steps.tolist()] == clock.shifts(steps).tolist()


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_are_steady_only_where_no_shift_differs(zone):
    clock, found = Clock(timedelta(hours=1), zone=parse_zone(zone)), set()
    for first in range(440_000, 440_000 + 24 * 365, 24 * 5):
        steps = np.arange(first, first + 24 * 42)
        steady = clock.is_steady(first, first + 24 * 42)
        found.add(steady)
        # Whole stretches of some days are looked at, so that some are unsteady without need.
        assert not steady or np.ptp(clock.shifts(steps)) == 0

    assert found == ({True} if zone is None else {True, False})


def test_an_index_has_no_shift_and_is_steady():
    assert IndexClock(10).shift(7) == 0
    assert IndexClock(10).is_steady(0, 10**6)
