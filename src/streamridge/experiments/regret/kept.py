"""Plays on disk: one file each, whole or not there, so that a study goes on where it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from streamridge.arrays import Matrix
from streamridge.errors import StateError
from streamridge.experiments.regret.players import Play
from streamridge.files.checkpoint import read_checkpoint, write_checkpoint

KIND = "play"
ARRAYS = ("iterates", "gradients", "errors")
COUNTS = ("refits", "evaluations", "moves", "update_every")


@dataclass(frozen=True)
class Played:
    """A play, and what was measured of it.

    Parameters
    ----------
    play
        The play of one method.
    fresh
        (T, d), the gradients at its points on models that are refitted before every step.
    seconds
        CPU time of the play, without the measurements.
    """

    play: Play
    fresh: Matrix
    seconds: float


def write_played(path: Path, played: Played) -> None:
    """Write a play to a file."""
    counts = {name: getattr(played.play, name) for name in COUNTS}
    arrays = {name: getattr(played.play, name) for name in ARRAYS}
    header = {"kind": KIND, "seconds": played.seconds, **counts}
    write_checkpoint(path, header, {**arrays, "fresh": played.fresh})


def read_played(path: Path) -> Played | None:
    """Return the play of a file, or None if there is no such file."""
    if not path.exists():
        return None
    try:
        header, arrays = read_checkpoint(path)
        if header.get("kind") != KIND:
            raise StateError(f"{path} must hold a play, got {header.get('kind')!r}.")
    except StateError as error:
        raise StateError(f"{error} Or remove the file: the same command makes it anew.") from None
    parts = {name: arrays[name] for name in ARRAYS} | {name: header[name] for name in COUNTS}
    return Played(Play(**parts), arrays["fresh"], header["seconds"])
