"""The flags of `replay` that say how to read files, for other commands that read them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from inspect import signature
from typing import Any, get_type_hints

from streamridge.cli.replay import replay
from streamridge.runs.selection import Selection

# The argument of a command that takes these flags.
READING = "reading"


def with_reading_flags(
    command: Callable[..., None], *, besides: Collection[str]
) -> Callable[..., None]:
    """Return a command with the flags of `replay` that make a `Selection`, passed on by name.

    Parameters
    ----------
    command
        Takes the values of the flags as `**reading`.
    besides
        Parts of a selection that the command decides, or names in its own way.
    """
    parts = {part.name for part in fields(Selection)} - set(besides)
    shared = {
        name: flag
        for name, flag in signature(replay, eval_str=True).parameters.items()
        if name in parts
    }
    own = signature(command, eval_str=True).parameters
    flags = [*(flag for name, flag in own.items() if name != READING), *shared.values()]
    command.__signature__ = signature(command).replace(parameters=flags)  # type: ignore[attr-defined]
    hints = {
        **get_type_hints(replay, include_extras=True),
        **get_type_hints(command, include_extras=True),
    }
    command.__annotations__ = {flag.name: hints[flag.name] for flag in flags}
    return command


def selection_of_flags(reading: dict[str, Any], **own: Any) -> Selection:
    """Return the selection of flags as they were given, and of what the command decides."""
    given = {name: value for name, value in reading.items() if value is not None}
    return Selection(**own, **given)
