"""The clock that suits the times of a sensor: its phase, and whether it follows local days."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from streamridge.series.clock import LONGEST_MONTH, MONTH, Clock, follows_days
from streamridge.series.holidays import Holidays
from streamridge.series.lengths import DAY, Length
from streamridge.series.time_format import NAIVE, TimeFormat
from streamridge.series.times import EPOCH, Times


def clock_of_times(
    times: Times,
    step: timedelta,
    zone: ZoneInfo | None,
    written: TimeFormat,
    holidays: Holidays | None = None,
) -> Clock:
    """Return the clock on which most times lie, given how they are written.

    Steps that can follow local days do so, unless more times lie on a clock of elapsed time, such
    as times of a weather model in UTC that are written in local time.
    """
    if not step % MONTH and not ((times - EPOCH) % np.timedelta64(step)).any():
        return Clock(step, timedelta(0), zone, holidays, even=True)
    elapsed = Clock(step, phase_of(times, step), zone, holidays)
    local = _calendar(step, zone, written)
    if local == NAIVE:
        return elapsed
    shown = local.local(times)
    by_day = replace(elapsed, phase=phase_of(shown, step), calendar=local)
    here, there = (int((c.times(c.steps(times)) == times).sum()) for c in (by_day, elapsed))
    only_there_round = not elapsed.phase and bool(by_day.phase)
    return elapsed if there > here or (there == here and only_there_round) else by_day


def phase_of(times: Times, step: timedelta) -> timedelta:
    """Return the offset within a step that most times share, or the median offset of long steps."""
    if not step % MONTH:
        return _phase_in_months(times, step // MONTH)
    within = (times - EPOCH) % np.timedelta64(step)
    shared = shared_offset(within)
    if shared is not None:
        return shared.astype("m8[us]").tolist()
    if step <= DAY:
        return timedelta(0)
    # Times without a shared offset need the middle of a step.
    half = np.timedelta64(step) // 2
    around = (within - within[0] + half) % np.timedelta64(step) - half
    middle = np.sort(around)[len(around) // 2]
    return ((within[0] + middle) % np.timedelta64(step)).astype("m8[us]").tolist()


def _phase_in_months(times: Times, months: int) -> timedelta:
    """Return the phase of a clock of calendar months; last days of months stay last days."""
    month = times.astype("M8[M]")
    within = times - month.astype("M8[us]")
    is_last = times.astype("M8[D]") == (month + 1).astype("M8[D]") - 1
    if is_last.all():
        within = np.timedelta64(30, "D") + within % np.timedelta64(1, "D")
    shared = shared_offset(within)
    usual = np.sort(within)[len(within) // 2] if shared is None else shared
    before = month.astype(np.int64) % months
    shared_before = shared_offset(before)
    lead = before[0] if shared_before is None else shared_before
    return int(lead) * LONGEST_MONTH + usual.astype("m8[us]").tolist()


def shared_offset(within: NDArray[Any]) -> Any:
    """Return the offset within a step that most readings have, None if there is no such."""
    offsets, counts = np.unique(within, return_counts=True)
    most = int(counts.argmax())
    return offsets[most] if counts[most] > len(within) / 2 else None


def round_clock(step: timedelta, zone: ZoneInfo | None, written: TimeFormat) -> Clock:
    """Return a clock whose steps begin at midnight, in local time if days matter to them."""
    return Clock(step, zone=zone, calendar=_calendar(step, zone, written))


def times_ahead(times: Times, step: Length, horizon: int, written: TimeFormat) -> Times:
    """Return the times of the next steps from each time on, shape (n, horizon)."""
    ahead = np.arange(horizon)
    if isinstance(step, int) or not (len(times) and follows_days(step)):
        length = step if isinstance(step, int) else np.timedelta64(step)
        return times[:, None] + ahead * length
    clock = clock_of_times(times, step, None, written)
    steps = clock.steps(times)[:, None] + ahead
    return clock.times(steps.ravel()).reshape(steps.shape)


def _calendar(step: timedelta, zone: ZoneInfo | None, written: TimeFormat) -> TimeFormat:
    """Return the local time that steps follow, `NAIVE` if they count elapsed time."""
    if not follows_days(step):
        return NAIVE
    return replace(written, unit="us") if zone is None else TimeFormat(zone=zone.key)
