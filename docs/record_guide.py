"""Records the main commands in the guide, as a terminal of 80 columns shows them.

Run it with `make recording` after a change of what commands print. Figures of seconds differ from
run to run.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

GUIDE = Path(__file__).with_name("guide.md")
BEGIN, END = "<!-- recording -->", "<!-- end of the recording -->"
COLUMNS = 80
# Of longer outputs the first and the last lines are shown.
LONGEST, FIRST, LAST = 30, 18, 6
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
    """Replace the recording in the guide."""
    with TemporaryDirectory() as folder:
        recording = "\n\n".join("\n".join(recorded(each, folder)) for each in COMMANDS)
    before, _, rest = GUIDE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    GUIDE.write_text(f"{before}{BEGIN}\n```text\n{recording}\n```\n{END}{after}")


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
