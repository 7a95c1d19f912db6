"""In which order readings are learned from: a function of the log alone.

Within the grace, steps are taken in the order of their times, in whatever order they arrived. What
arrives later than that is taken where it arrived, as a late reading.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamridge.service.ledger.records import Action, Entry, Kind
from streamridge.service.plan import Plan, Rule

Item = Entry | Action
# On the same step, readings come first, then what is late, then what was asked for.
ON_TIME, LATE, ASKED = range(3)


def in_order(items: Iterable[Item], newest: int, plan: Plan, rule: Rule | None) -> list[Item]:
    """Return what arrived, in the order in which it is learned from.

    Parameters
    ----------
    items
        Readings and actions of one sensor, in order of arrival.
    newest
        Time of the newest step before them.
    plan, rule
        How steps are made.
    """
    keys = {}
    for item in items:
        if isinstance(item, Action):
            keys[item.seq] = newest, ASKED, item.seq
            continue
        step = plan.step_of(item.time, rule)
        if is_late(item, step, newest, plan):
            keys[item.seq] = newest, LATE, item.seq
        else:
            keys[item.seq] = step, ON_TIME, item.seq
            newest = max(newest, step)
    return sorted(items, key=lambda item: keys[item.seq])


def is_late(entry: Entry, step: int, newest: int, plan: Plan) -> bool:
    """Return whether a reading is not taken at its step: it came too late, or is not live."""
    return entry.kind != Kind.LIVE or newest - step > plan.open_for
