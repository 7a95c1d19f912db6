"""Run the examples of README.md with the installed package; no extra is installed.

python packaging/readme_examples.py README.md, in an empty folder.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

# Flags with a value that need the extra `plot`.
FIGURES = ("--plot", "--report")
BLOCKS = re.compile(r"```(python|sh)\n(.*?)```", flags=re.DOTALL)


def main() -> None:
    """Run each block in order."""
    (readme,) = sys.argv[1:]
    run = {"python": run_program, "sh": run_commands}
    for language, block in BLOCKS.findall(Path(readme).read_text(encoding="utf-8")):
        run[language](block)


def run_program(block: str) -> None:
    """Run a block of Python as a program of its own."""
    subprocess.run([sys.executable, "-I", "-c", block], check=True)


def run_commands(block: str) -> None:
    """Run the lines of a block that call `streamridge`."""
    for line in block.splitlines():
        if line.startswith("streamridge "):
            words = shlex.split(line, comments=True)[1:]
            if set(words) & set(FIGURES):
                require_hint(words)
            require_success(without_figures(words))


def require_success(words: list[str]) -> None:
    """Raise unless the command succeeds."""
    done = run_command(words)
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)}: exit code {done.returncode}\n{done.stderr}")


def require_hint(words: list[str]) -> None:
    """Raise unless the command names the extra that it needs for figures."""
    done = run_command(words)
    if done.returncode == 0 or "streamridge[plot]" not in done.stderr:
        raise SystemExit(f"{shlex.join(words)}: no hint at the extra `plot`\n{done.stderr}")


def without_figures(words: list[str]) -> list[str]:
    """Return the command without the flags that need the extra `plot`."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in FIGURES:
            next(rest)  # its value
        else:
            kept.append(word)
    return kept


def run_command(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the installed command."""
    command = Path(sys.executable).with_name("streamridge")
    return subprocess.run([str(command), *words], capture_output=True, text=True)


if __name__ == "__main__":
    main()
