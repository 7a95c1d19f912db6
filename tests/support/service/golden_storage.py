"""A small storage that has lived, kept as a file for every format that there was.

python -m tests.support.service.golden_storage

writes the file of the present format into tests/service/golden. Its states have a former format, as
after an update. A released file is never written again.
"""

import gzip
import sqlite3
import tempfile
from contextlib import closing
from hashlib import blake2b
from math import pi, sin
from pathlib import Path

import msgspec
import numpy as np

from streamridge.files import checkpoint
from streamridge_service.intake import IngestOptions
from streamridge_service.ledger.layout import digest_of
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


def in_format_1(state):
    """Return a state as if it were of format 1, with a valid digest."""
    place, size = len(checkpoint.MAGIC), checkpoint.DIGEST_BYTES
    body = state[:place] + (1).to_bytes(4, "little") + state[place + 4 : -size]
    return body + blake2b(body, digest_size=size).digest()


def make_former(path, snapshots):
    """Give the stored snapshots states of format 1."""
    with closing(sqlite3.connect(path)) as database, database:
        for each in snapshots:
            former = msgspec.structs.replace(each, state=in_format_1(each.state))
            sensor = former.point.sensor
            database.execute("UPDATE states SET state = ? WHERE sensor = ?", (former.state, sensor))
            row = digest_of(former), sensor
            database.execute("UPDATE snapshots SET digest = ? WHERE sensor = ?", row)


def main():
    with tempfile.TemporaryDirectory() as folder:
        serving(lived, Path(folder) / "lived.db", **SETTINGS)
        with open_ledger(str(Path(folder) / "lived.db"), read_only=True) as ledger:
            ledger.copy_to(str(Path(folder) / "golden.db"))
            snapshots = [ledger.snapshot(sensor.id) for sensor in ledger.sensors()]
        make_former(Path(folder) / "golden.db", snapshots)
        content = (Path(folder) / "golden.db").read_bytes()
    packed = gzip.compress(content, 9, mtime=0)
    (FOLDER / f"format_{current_format()}.db.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
