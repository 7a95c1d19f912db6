"""Station files of Caltrans PeMS: a row for every station and five minutes, without a header.

The first twelve columns belong to the whole station, the others to its lanes. If too few samples
arrived, PeMS fills in a value of its own; the column `observed` tells which share was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamridge.errors import InvalidInputError, listed
from streamridge.files.blocks import Block
from streamridge.files.layouts import Choice, Split, split_long
from streamridge.series.readings import PEMS_TIME, Piece

COLUMNS = (
    "time",
    "station",
    "district",
    "freeway",
    "direction",
    "lane_type",
    "length",
    "samples",
    "observed",
    "flow",
    "occupancy",
    "speed",
)


def is_station_row(cells: Sequence[str]) -> bool:
    """Return whether these cells look like a row of a station file."""
    return len(cells) >= len(COLUMNS) and PEMS_TIME.fullmatch(cells[0]) is not None


def is_pems(block: Block) -> bool:
    """Return whether a block has the columns of a station file."""
    return tuple(block.columns)[: len(COLUMNS)] == COLUMNS


def split_pems(block: Block, choice: Choice, *, observed: float = 50.0) -> Split:
    """Part a block by station; the values are the total flows.

    Parameters
    ----------
    block
        Rows with the columns of `COLUMNS`; each of these may be an extra.
    choice
        The stations that are wanted, and the extras.
    observed
        The least share in percent that must have been measured. Other flows were filled in by
        PeMS: they become missing and are counted in `imputed`.
    """
    if not is_pems(block):
        raise InvalidInputError(
            f"{block.origin.name} must be a PeMS station file, with rows such as "
            f"06/13/2021 08:15:00,716078,7,..., got columns {listed(block.columns)}."
        )
    with_share = replace(choice, extras=(*choice.extras, "observed"))
    split = split_long(block, with_share)
    pieces = [_without_imputed(piece, observed, choice.extras) for piece in split.pieces]
    return replace(split, pieces=pieces)


def _without_imputed(piece: Piece, observed: float, extras: Sequence[str]) -> Piece:
    imputed = (piece.extras["observed"] < observed) & ~np.isnan(piece.values)
    return replace(
        piece,
        values=np.where(imputed, np.nan, piece.values),
        extras={name: piece.extras[name] for name in extras},
        imputed=int(imputed.sum()),
        aggregate="sum",
    )
