"""Build the distributions, and try them in empty environments on every Python at hand.

python packaging/check.py [--python PATH ...], with the package `build` installed. It leaves the
wheel and the sdist in dist/.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
CONSUMER = ROOT / "packaging" / "consumer"
OLDEST = (3, 11)
# Files that only a complete wheel has.
IN_WHEEL = (
    "streamridge/py.typed",
    "streamridge_service/py.typed",
    "streamridge_service/page/index.html",
    "streamridge_service/page/vendor/uplot/uPlot.iife.min.js",
    "dist-info/licenses/LICENSE",
    "dist-info/sboms/uplot.cdx.json",
    "dist-info/entry_points.txt",
)
IN_SDIST = ("src/streamridge/py.typed", "tests/conftest.py", "docs/index.md", "CITATION.cff")


def main() -> None:
    """Build, and try what was built."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--python", action="append", type=Path, help="default: all that are found")
    pythons = newest_first(parser.parse_args().python or found_pythons())
    wheel, sdist = build()
    with zipfile.ZipFile(wheel) as files:
        require_files(files.namelist(), IN_WHEEL)
    with tarfile.open(sdist) as files:
        require_files(files.getnames(), IN_SDIST)
    for version, python in pythons.items():
        try_examples(python, wheel)
        report(f"Python {version}: the wheel runs the examples of README.md")
    newest = next(iter(pythons.values()))
    try_examples(newest, sdist)
    report("The sdist runs the examples of README.md")
    try_types(newest, wheel)
    report("mypy and pyright accept a program with the package, and refuse its mistakes")


def build() -> tuple[Path, Path]:
    """Return the wheel and the sdist. The wheel is built from the sdist."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    report(f"Built {wheel.name} and {sdist.name}")
    return wheel, sdist


def require_files(names: list[str], expected: tuple[str, ...]) -> None:
    """Raise unless each expected file is there."""
    missing = [end for end in expected if not any(name.endswith(end) for name in names)]
    if missing:
        raise SystemExit(f"missing in the distribution: {', '.join(missing)}")


def try_examples(python: Path, distribution: Path) -> None:
    """Install a distribution without extras into an empty environment and run the examples."""
    with environment(python) as (own_python, folder):
        install(own_python, distribution)
        script = ROOT / "packaging" / "readme_examples.py"
        run(own_python, "-I", script, ROOT / "README.md", cwd=folder)


def try_types(python: Path, wheel: Path) -> None:
    """Check programs that use the installed package with two type checkers."""
    with environment(python) as (own_python, folder):
        install(own_python, wheel, "mypy", "pyright[nodejs]")
        for program in CONSUMER.glob("*.py"):
            shutil.copy(program, folder)
        for checker in (("mypy", "--strict"), ("pyright",)):
            require_mistakes(run_checker(own_python, checker, folder), checker[0])


def run_checker(python: Path, checker: tuple[str, ...], folder: Path) -> set[tuple[str, int]]:
    """Return the files and lines in which a type checker finds errors."""
    done = subprocess.run(
        [python.with_name(checker[0]), *checker[1:], *sorted(folder.glob("*.py"))],
        cwd=folder,
        env=clean_variables(python),
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    if not lines:
        raise SystemExit(f"{checker[0]} found nothing:\n{done.stdout}{done.stderr}")
    return {(name, int(line)) for name, line in lines}


def require_mistakes(found: set[tuple[str, int]], checker: str) -> None:
    """Raise unless the errors are in exactly the lines that are marked as refused."""
    marked = {
        (program.name, number)
        for program in CONSUMER.glob("*.py")
        for number, line in enumerate(program.read_text().splitlines(), 1)
        if line.endswith("# refused")
    }
    if found != marked:
        raise SystemExit(f"{checker}: errors in {sorted(found)}, expected in {sorted(marked)}")


@contextmanager
def environment(python: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the Python of a new environment, and an empty folder."""
    with TemporaryDirectory() as folder:
        home, work = Path(folder, "environment"), Path(folder, "work")
        work.mkdir()
        run(python, "-m", "venv", "--without-pip", home)  # pip would take longest
        yield home / "bin" / "python", work


def install(python: Path, *packages: str | Path) -> None:
    """Install packages into the environment of a Python."""
    run(sys.executable, "-m", "pip", "--quiet", "--python", python, "install", *packages)


def found_pythons() -> list[Path]:
    """Return this Python, those of the search path and those of pyenv."""
    on_path = (shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], OLDEST[1] + 9))
    of_pyenv = Path.home().glob(".pyenv/versions/*/bin/python")
    return [Path(sys.executable), *of_pyenv, *(Path(each) for each in on_path if each)]


def newest_first(pythons: list[Path]) -> dict[str, Path]:
    """Return one Python of each minor version that is new enough, by its version."""
    code = "import sys; print(*sys.version_info[:2])"
    versions: dict[tuple[int, ...], Path] = {}
    for python in pythons:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        version = tuple(map(int, done.stdout.split()))
        if not done.returncode and version >= OLDEST:
            versions.setdefault(version, python)
    return {".".join(map(str, key)): versions[key] for key in sorted(versions, reverse=True)}


def run(*words: str | Path, cwd: Path = ROOT) -> None:
    """Run a program; its environment has no path to the source tree."""
    done = subprocess.run(words, cwd=cwd, env=clean_variables(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")


def clean_variables(python: Path | None = None) -> dict[str, str]:
    """Return the environment variables, with the programs of a Python first in the path."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    if python is not None:
        kept["PATH"] = f"{python.parent}{os.pathsep}{kept['PATH']}"
        kept["VIRTUAL_ENV"] = str(python.parents[1])
    return kept


def report(line: str) -> None:
    """Print a result, and the processor seconds so far."""
    times = os.times()
    seconds = times.children_user + times.children_system
    print(f"{seconds:6.1f} s  {line}", flush=True)


if __name__ == "__main__":
    main()
