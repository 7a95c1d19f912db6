"""A small storage that has lived, kept as a file for every format that there was.

python -m tests.service.golden.storage

writes that of the present format beside this file. One that was released is never written again.
"""

import asyncio
import gzip
import tempfile
from math import pi, sin
from pathlib import Path

import numpy as np

from streamridge.service.intake import Wish
from streamridge.service.ledger.opening import open_ledger
from streamridge.service.ledger.schema import current_format
from streamridge.service.plan import HOUR, Declaration
from streamridge.service.rows import Batch, Row
from tests.service.living import serving, settled

FOLDER = Path(__file__).parent
START = 1_700_000_000_000_000 // HOUR * HOUR
# By these names, refits are due soon after there are enough readings.
NAMES = ("north-9", "south-24")
HOURS = 216
SETTINGS = {"step": "1h", "train_size": 72}


def rows(first, last):
    """Return readings of all sensors, hour by hour."""
    noise = np.random.default_rng(3).normal(0, 5, (HOURS + 96, len(NAMES)))
    return [
        (name, START + hour * HOUR, round(100 + 50 * sin(hour / 24 * 2 * pi) + own, 1))
        for hour in range(first, last)
        for name, own in zip(NAMES, noise[hour].tolist(), strict=True)
    ]


async def fed(service, first, last):
    """Feed hours one by one, and wait until each has been worked off."""
    for hour in range(first, last):
        batch = [Row(i + 1, *row) for i, row in enumerate(rows(hour, hour + 1))]
        await service.take(Batch(batch, []), Wish())
        await settled(service)


async def lived(service):
    """Let two sensors live; one of them is declared anew, and a hyperparameter of it set."""
    await fed(service, 0, 200)
    await service.declare(NAMES[1], Declaration(label="South", bounds=(0.0, 900.0)))
    north = service.intake.sensors[NAMES[0]]
    await service.act(north, "set", {"values": {"regularization": 0.7}})
    await fed(service, 200, HOURS)
    await asyncio.sleep(0.2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        serving(lived, Path(folder) / "lived.db", **SETTINGS)
        with open_ledger(str(Path(folder) / "lived.db"), read_only=True) as ledger:
            ledger.copy_to(str(Path(folder) / "golden.db"))
        content = (Path(folder) / "golden.db").read_bytes()
    packed = gzip.compress(content, 9, mtime=0)
    (FOLDER / f"format_{current_format()}.db.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
