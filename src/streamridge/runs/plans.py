"""The plan of kept runs in a file: all that they depend on, so that none is mistaken."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

from streamridge.errors import InvalidInputError
from streamridge.files.atomic import replacing
from streamridge.forecaster.settings import Settings

DIGEST_BYTES = 12
MEND = "Choose another folder, or remove this one."

Plan = dict[str, Any]


def keep_plan(name: str, file: Path, plan: Plan) -> None:
    """Write a plan, or raise when its folder holds another one; methods of both are kept.

    Parameters
    ----------
    name
        What the user calls the folder.
    file
        Of the plan.
    plan
        Plain values; those of "methods" are by method, and a method that only one plan has does not
        make it another.
    """
    wanted = json.loads(json.dumps(plan))
    if file.exists():
        found = _parsed(file)
        other = _differing(found, wanted)
        if other:
            raise InvalidInputError(
                f"{name} must be empty or hold the same runs, got {str(file.parent)!r} with "
                f"another {' and '.join(other)}. {MEND}"
            )
        wanted["methods"] = {**found.get("methods", {}), **wanted["methods"]}
    with replacing(file) as stream:
        stream.write(json.dumps(wanted, indent=1).encode())


def settings_digest(settings: Settings) -> str:
    """Return a short text that stands for how a method forecasts."""
    content = json.dumps(settings.described(), sort_keys=True).encode()
    return blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


def _parsed(file: Path) -> Plan:
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise InvalidInputError(f"{file} must be the plan of runs, got {error}. {MEND}") from None
    if not isinstance(found, dict):
        raise InvalidInputError(f"{file} must be the plan of runs, got {found!r}. {MEND}")
    return found


def _differing(found: Plan, wanted: Plan) -> list[str]:
    """Return what differs between two plans, in words."""
    names = [name for name in {**wanted, **found} if name != "methods"]
    other = [_named(name, found, wanted) for name in names if found.get(name) != wanted.get(name)]
    if other:
        return other
    made, asked = found.get("methods", {}), wanted["methods"]
    changed = [method for method in asked if made.get(method, asked[method]) != asked[method]]
    return [f"setting of {', '.join(changed)}"] if changed else []


def _named(name: str, found: Plan, wanted: Plan) -> str:
    """Return what a part of a plan is called; of a size, the parts that differ."""
    if name != "size" or not isinstance(found.get(name), dict):
        return name
    parts = [part for part in wanted[name] if found[name].get(part) != wanted[name][part]]
    return f"{name} ({', '.join(parts)})"
