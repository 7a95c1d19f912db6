"""The plans of a ledger: the first is a fact, each later plan is an action on all sensors.

A later plan has a position in the log, at which every sensor starts a new forecaster.
"""

from __future__ import annotations

import msgspec

from streamridge_service.ledger.ledger import Ledger
from streamridge_service.ledger.records import EVERYONE, Action
from streamridge_service.plan import SECOND, Plan, Plans
from streamridge_service.problems import Problem


def read_plans(ledger: Ledger) -> Plans | None:
    """Return the plans that a ledger was served with; None if it was never served."""
    first = ledger.facts().get("plan")
    if first is None:
        return None
    later = [(action.seq, _plan(action.body)) for action in ledger.actions(EVERYONE)]
    return Plans(((0, _plan(first)), *later))


def record_plan(ledger: Ledger, plan: Plan, now: int) -> bool:
    """Record the plan that a ledger is served with; return whether it differs from the last.

    Raises a `Problem` if the step differs, since readings are stored by step.
    """
    plans = read_plans(ledger)
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
    differs = plans.latest != plan
    if differs:
        body = msgspec.json.encode(plan)
        ledger.append(actions=[Action(ledger.last_seq() + 1, EVERYONE, "plan", body, now)])
    return differs


def _plan(body: str | bytes) -> Plan:
    return msgspec.json.decode(body, type=Plan)
