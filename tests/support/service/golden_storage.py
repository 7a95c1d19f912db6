"""A small storage that has lived, kept as a file for every format that there was.

python -m tests.support.service.golden_storage

writes the file of the present format into tests/service/golden.
A released file is never written again.
"""

import gzip
import tempfile
from math import pi, sin
from pathlib import Path

import numpy as np

from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.ledger.schema import current_format
from streamridge_service.plan import HOUR, Declaration
from streamridge_service.rows import Batch, Row
from tests.support.paths import ROOT
from tests.support.service.in_process import serving, settled

FOLDER = ROOT / "tests" / "service" / "golden"
START = 1_700_000_000_000_000 // HOUR * HOUR
# Sensors of these names are refitted soon after they have enough readings.
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
    """Feed hours one by one, and wait until each is processed."""
    for hour in range(first, last):
        batch = [Row(i + 1, *row) for i, row in enumerate(rows(hour, hour + 1))]
        await service.ingest.store(Batch(batch, []), IngestOptions())
        await settled(service)


async def lived(service):
    """Feed two sensors; declare one of them again, and set a hyperparameter of it."""
    await fed(service, 0, 200)
    await service.operators.declare(NAMES[1], Declaration(label="South", bounds=(0.0, 900.0)))
    north = service.intake.sensors[NAMES[0]]
    await service.operators.run(north, "set", {"values": {"regularization": 0.7}})
    await fed(service, 200, HOURS)


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
