"""Which plan a ledger is served by: the first is a fact, each later one is asked of all sensors.

So a plan has its place in the log, and every sensor makes its forecaster anew when it comes there.
"""

from __future__ import annotations

import msgspec

from streamridge.service.ledger.base import Ledger
from streamridge.service.ledger.records import EVERYONE, Action
from streamridge.service.plan import SECOND, Plan, Plans
from streamridge.service.problems import Problem


def plans_of(ledger: Ledger) -> Plans | None:
    """Return the plans that a ledger was served by; None if it never was."""
    first = ledger.facts().get("plan")
    if first is None:
        return None
    later = [(action.seq, _plan(action.body)) for action in ledger.actions(EVERYONE)]
    return Plans(((0, _plan(first)), *later))


def follow(ledger: Ledger, plan: Plan, now: int) -> bool:
    """Note that a ledger is served by a plan from now on; return whether it was another before.

    Raises a `Problem` if the step is another: readings are stored by it.
    """
    plans = plans_of(ledger)
    if plans is None:
        ledger.put_facts({"plan": msgspec.json.encode(plan).decode()})
        return False
    if plans.latest.step != plan.step:
        seconds = plans.latest.step // SECOND
        raise Problem(
            "sr-conflicting-declaration",
            f"the database was served with a step of {seconds} seconds; pass --step "
            f"{seconds}s, or another --database.",
        )
    is_another = plans.latest != plan
    if is_another:
        body = msgspec.json.encode(plan)
        ledger.append(actions=[Action(ledger.last() + 1, EVERYONE, "plan", body, now)])
    return is_another


def _plan(body: str | bytes) -> Plan:
    return msgspec.json.decode(body, type=Plan)
