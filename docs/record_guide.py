"""Records a newcomer's path and the main commands in their pages, in a terminal of 80 columns.

Run it with `make recording` after a change of what commands print. Figures of seconds differ from
run to run.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

import numpy as np

from streamridge.datasets import simulate_roads

DOCS = Path(__file__).parent
PATH_PAGE = DOCS / "tutorial" / "first-forecast.md"
PAGE = DOCS / "reference" / "recording.md"
PICTURE = DOCS / "images" / "tomorrow.png"
BEGIN, END = "<!-- recording -->", "<!-- end of the recording -->"
PATH_BEGIN, PATH_END = "<!-- first path -->", "<!-- end of the first path -->"
COLUMNS = 80
# Of longer outputs the first and the last lines are shown.
LONGEST, FIRST, LAST = 30, 18, 6
# The files that a newcomer has: five weeks of one station, and the day after them.
EXPORT, NEXT_EXPORT, WEEKS = "pems_output.txt", "pems_next_day.txt", 5
HEADING = ("5 Minutes", "Flow (Veh/5 Minutes)", "# Lane Points", "% Observed")
PATH_COMMANDS = (
    f"""streamridge replay {EXPORT} --sensor "{HEADING[1]}" \\
    --step 15min --aggregate sum""",
    f"""streamridge forecast {EXPORT} --sensor "{HEADING[1]}" \\
    --step 15min --aggregate sum --horizon 96 \\
    --plot tomorrow.png --out tomorrow.csv --save models""",
    f"""streamridge forecast models --readings {NEXT_EXPORT} \\
    --aggregate sum --date-format monthfirst --horizon 4 --save models""",
)
# They run in this order in one empty folder. The last command is refused.
COMMANDS = (
    "streamridge --version",
    "streamridge simulate --detectors 4 --days 12 --out roads.csv",
    """streamridge replay roads.csv --sensor ramp-3 --sensor mainline-1 \\
    --to 2017-01-11T23:45 --train-size 480 \\
    --predictions predictions.csv --report report --save models""",
    """streamridge compare roads.csv --sensor ramp-3 --train-size 480 \\
    --methods ohl,fixed,last,week""",
    "streamridge forecast models/ramp-3.sr --readings roads.csv",
    "streamridge inspect models/ramp-3.sr",
    "streamridge replay roads.csv --step 5min",
)


def main() -> None:
    """Replace the recordings in their pages, and the picture of the newcomer's path."""
    with TemporaryDirectory() as folder:
        write_exports(Path(folder))
        record(PATH_COMMANDS, folder, PATH_PAGE, PATH_BEGIN, PATH_END)
        copy(Path(folder) / "tomorrow.png", PICTURE)
    with TemporaryDirectory() as folder:
        record(COMMANDS, folder, PAGE, BEGIN, END)


def record(commands: Sequence[str], folder: str, page: Path, begin: str, end: str) -> None:
    """Run commands in a folder, and put what they print between two marks of a page."""
    recording = "\n\n".join("\n".join(recorded(each, folder)) for each in commands)
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n```text\n{recording}\n```\n{end}{after}")


def write_exports(folder: Path) -> None:
    """Write simulated counts in the form in which PeMS exports the flow of a station."""
    day = 96
    roads = simulate_roads(np.random.default_rng(4), detectors=1, days=7 * WEEKS + 1)
    flows = roads.flows[:, 0].round().astype(int).tolist()
    write_export(folder / EXPORT, flows[:-day], 0)
    write_export(folder / NEXT_EXPORT, flows[-day:], len(flows) - day)


def write_export(path: Path, flows: Sequence[int], first: int) -> None:
    """Write counts of 15 minutes as three rows of five minutes each."""
    lines = ["\t".join(HEADING)]
    for at, flow in enumerate(flows, start=first):
        for part in range(3):
            time = datetime(2017, 1, 1) + timedelta(minutes=15 * at + 5 * part)
            lines.append(f"{time:%m/%d/%Y %H:%M}\t{(flow + part) // 3}\t5\t100")
    path.write_text("\n".join(lines) + "\n")


def recorded(command: str, folder: str) -> list[str]:
    """Return the lines of a command and of what it prints, and its exit code if it fails."""
    width = {"COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *words_of(command)],
        cwd=folder,
        env={**os.environ, **width},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    code = [f"(exit code {done.returncode})"] if done.returncode else []
    return [f"$ {command}", *shortened(folded(done.stdout.splitlines())), *code]


def words_of(command: str) -> list[str]:
    """Return the words of a command that may go over several lines."""
    return shlex.split(command.replace("\\\n", " "))


def folded(lines: Iterable[str]) -> list[str]:
    """Return lines broken where a terminal breaks them."""
    return [
        line[at : at + COLUMNS].rstrip()
        for line in lines
        for at in range(0, max(len(line), 1), COLUMNS)
    ]


def shortened(lines: list[str]) -> list[str]:
    """Return the first and the last lines of many."""
    if len(lines) <= LONGEST:
        return lines
    return [*lines[:FIRST], f"({len(lines) - FIRST - LAST} lines more)", *lines[-LAST:]]


if __name__ == "__main__":
    main()
