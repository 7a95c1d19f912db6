"""Makes docs/reliability.md from a run of the tests: each promise, its tests, cases, result.

    python docs/record_reliability.py build/reliability.xml --run quick

Tests say which row of the specification they prove, by `record_property("row", "A1")`, and how many
cases they tried, by `record_property("cases", 74)`. A row "A1 broken" is the same harness on a
product that was broken on purpose: it passes if the harness notices. Failed tests are listed even
if they name no row, and the exit code is then 1. `--proofs` prints the tests outside tests/service
that prove a row, for the command line of pytest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

PAGE = Path(__file__).with_name("reliability.md")
COMMANDS = {"quick": "make reliability", "all": "make reliability RUN=all"}


class Row(NamedTuple):
    """A row of the specification: the fault, and the tiers that try it.

    F is tried on every change, N before a release.
    """

    fault: str
    tier: str


SECTIONS = {
    "A": "Crashes, disks, versions",
    "B": "Readings: order, time, value, volume",
    "C": "Numerics",
    "D": "Load and live clients",
    "E": "Security",
    "F": "Operation",
}
ROWS = {
    "A1": Row("`kill -9` at any moment", "F, N"),
    "A2": Row("power loss: writes that were not synced vanish", "F"),
    "A3": Row("an SQLite that can damage its log", "F"),
    "A4": Row("disk full at any write", "N"),
    "A5": Row("a sync fails", "N"),
    "A6": Row("a damaged state or page", "F, N"),
    "A7": Row("a database of an older or newer format", "F, N"),
    "A8": Row("another number of workers or threads", "F"),
    "A9": Row("a slow restart", "F, N"),
    "A10": Row("SIGTERM under load, streams open", "F, N"),
    "A11": Row("two processes, one database", "F, N"),
    "A12": Row("the log grows behind readers", "N"),
    "A13": Row("PostgreSQL gone at any moment", "N"),
    "A14": Row("a backup while readings are written", "F"),
    "A15": Row("killed for lack of memory", "N"),
    "B1": Row("late readings, and out of order", "F, N"),
    "B2": Row("exact duplicates", "F"),
    "B3": Row("another value for the same time", "F"),
    "B4": Row("times in the future", "F"),
    "B5": Row("the clock jumps", "F, N"),
    "B6": Row("the hour that comes twice, or not at all", "F"),
    "B7": Row("gaps; a sensor silent for 8 days", "F"),
    "B8": Row('NaN, infinities, `"5"`, `true`, null', "F"),
    "B9": Row("negative and huge values", "F"),
    "B10": Row("constant, zero and stuck sensors", "F"),
    "B11": Row("a million new names", "F, N"),
    "B12": Row("giant, nested, packed and slow bodies", "F"),
    "B13": Row("times between steps", "F"),
    "B14": Row("odd files", "F, N"),
    "B15": Row("extreme times", "F"),
    "C1": Row("a factorization fails", "F"),
    "C2": Row("a worker dies or hangs", "N"),
    "C3": Row("a hyper-gradient that is NaN or huge", "F"),
    "C4": Row("a kernel that is not symmetric or definite", "F"),
    "C5": Row("memory of a sensor", "F, N"),
    "C6": Row("all sensors refit at once", "F"),
    "D1": Row("39,000 sensors, sustained", "F, N"),
    "D2": Row("39,000 readings in one batch", "N"),
    "D3": Row("a month at once", "N"),
    "D4": Row("slow and dead clients of the event stream", "N"),
    "D5": Row("overload", "N"),
    "D6": Row("refits of a whole day", "N"),
    "D7": Row("the disk fills over months", "N"),
    "D8": Row("a week of soak", "N"),
    "E1": Row("open by default", "F"),
    "E2": Row("a stolen store of tokens", "F"),
    "E3": Row("guessing, and floods", "F"),
    "E4": Row("a scope that is not checked", "F"),
    "E5": Row("unsafe loading", "F"),
    "E6": Row("path traversal", "F"),
    "E7": Row("requests to elsewhere", "F"),
    "E8": Row("a script as a sensor's name", "F"),
    "E9": Row("a formula in a CSV export", "F"),
    "E10": Row("rebinding, and other sites", "F"),
    "E11": Row("leaks in errors and logs", "F"),
    "E12": Row("everything else that can be sent", "F, N"),
    "E13": Row("an old interface", "F"),
    "F1": Row("a wrong setting", "F"),
    "F2": Row("the wish to trust it: `verify`", "F"),
    "F3": Row("alerting", "F"),
    "F4": Row("probes of a proxy", "F"),
}

# Tests of the library that prove a row, or a part of one, and how many cases each tries; they were
# there before the service.
PROOFS = {
    "B6": {"tests/series/test_zones.py": 1},
    "C1": {
        "tests/models/test_kernel_ridge.py::test_dual_weights_solve_the_normal_equations": 1,
        "tests/models/test_kernel_ridge.py::test_the_least_pivot_allowed_grows_with_the_size": 1,
        "tests/learners/test_online.py::test_a_refit_that_keeps_failing_can_be_postponed": 1,
        "tests/learners/test_online.py"
        "::test_a_refit_that_fails_changes_nothing_and_the_learner_continues": 1,
        "tests/forecaster/test_promises.py"
        "::TestFitsThatFail::test_any_fit_error_is_survived_the_same_way": 1,
    },
    "C3": {
        "tests/laws/test_steps.py::test_every_move_is_feasible_and_finite": 100,
        "tests/laws/test_steps.py::test_ten_thousand_runs_stay_feasible_with_nan_gradients": 0,
        "tests/learners/test_lazy_descent.py"
        "::test_weights_stay_on_the_simplex_under_any_gradients": 100,
        "tests/learners/test_lazy_descent.py"
        "::test_a_gradient_that_is_not_finite_is_skipped_and_counted": 1,
    },
    "C4": {
        "tests/laws/test_kernels.py::test_gram_matrix_is_symmetric_and_positive_semidefinite": 1,
        "tests/laws/test_kernels.py"
        "::test_any_gram_matrix_is_semidefinite_and_well_conditioned_with_a_ridge": 0,
    },
    "C5": {
        "tests/test_full_size.py"
        "::test_a_full_size_forecaster_fits_into_a_megabyte_and_continues_bit_for_bit": 1,
    },
    "E5": {
        "tests/files/test_checkpoint.py::test_every_cut_is_noticed": 60,
        "tests/files/test_checkpoint.py::test_every_flipped_byte_is_noticed": 500,
    },
}

# Why no test of a run proves a row.
REASONS = {
    "A12": "in the slow suite",
    "A13": "in the slow suite",
    "A15": "in the slow suite",
    "D6": "in the slow suite",
    "D8": "takes an hour; on request only",
}

SHOWN = 4
ORDER = ("failed", "passed", "skipped")
HEAD = ("row", "fault", "tests", "cases tried", "result", "tier")


@dataclass(frozen=True)
class Case:
    """One test case of a run: what it proves, how many cases of its own it tried, what came out."""

    test: str
    rows: tuple[str, ...]
    tried: int
    outcome: str
    reason: str = ""


def main() -> None:
    """Write the page, or print the further tests to run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("xml", type=Path, nargs="?", help="the file of pytest --junitxml")
    parser.add_argument("--run", choices=COMMANDS, default="quick", help="the suite that was run")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--proofs", action="store_true", help="print the tests of the library")
    options = parser.parse_args()
    if options.proofs:
        sys.stdout.write("\n".join(sorted(each for tests in PROOFS.values() for each in tests)))
        return
    if options.xml is None:
        parser.error("xml must be given, as pytest writes it by --junitxml.")
    options.out.write_text(page(options.xml, options.run, os.getloadavg()[2]))
    sys.stdout.write(f"{options.out}\n")
    if any(case.outcome == "failed" for case in cases_of(options.xml)):
        sys.exit(f"tests have failed: {options.out} lists them")


def cases_of(xml: Path) -> Iterator[Case]:
    """Yield the cases of a run that prove a row, or have failed."""
    for element in ElementTree.parse(xml).iter("testcase"):
        test = _test(element)
        noted = [(each.get("name"), each.get("value", "")) for each in element.iter("property")]
        rows = [value for name, value in noted if name == "row"]
        tried = sum(int(value) for name, value in noted if name == "cases")
        for row, proofs in PROOFS.items():
            found = [count for proof, count in proofs.items() if _is_of(test, proof)]
            rows += [row] * len(found)
            tried += sum(found)
        outcome, reason = _outcome(element)
        if rows or outcome == "failed":
            yield Case(test, tuple(dict.fromkeys(rows)), tried or 1, outcome, reason)


def _test(element: ElementTree.Element) -> str:
    """Return where a test stands, without its parameters; a module that could not be imported."""
    if not element.get("classname"):
        return element.get("name", "")
    parts = element.get("classname", "").split(".")
    classes = [part for part in parts if part[:1].isupper()]
    file = "/".join(part for part in parts if part not in classes) + ".py"
    return "::".join([file, *classes, element.get("name", "").partition("[")[0]])


def _is_of(test: str, proof: str) -> bool:
    return test == proof or test.startswith(f"{proof}::")


def _outcome(element: ElementTree.Element) -> tuple[str, str]:
    """Return what came out of a test case, and why if it did not run."""
    if element.find("failure") is not None or element.find("error") is not None:
        return "failed", ""
    skipped = element.find("skipped")
    return ("passed", "") if skipped is None else ("skipped", skipped.get("message", ""))


def page(xml: Path, run: str, load: float) -> str:
    """Return the page of a run; `load` is the load of the machine, averaged over 15 minutes."""
    cases = list(cases_of(xml))
    proved = {row: [case for case in cases if row in case.rows] for row in ROWS}
    lines = [*_opening(xml, run, load, proved), "", *_failed(cases)]
    for letter, title in SECTIONS.items():
        rows = [_line(row, proved[row]) for row in ROWS if row.startswith(letter)]
        lines += [f"## {letter}. {title}", "", *_table(HEAD, rows), ""]
    lines += _broken(cases)
    return "\n".join([*lines, *_others(cases)]).rstrip() + "\n"


def _opening(xml: Path, run: str, load: float, proved: dict[str, list[Case]]) -> Iterator[str]:
    suites = list(ElementTree.parse(xml).iter("testsuite"))
    day = min(suite.get("timestamp", "")[:10] for suite in suites)
    seconds = sum(float(suite.get("time", 0)) for suite in suites)
    tried = [cases for cases in proved.values() if any(c.outcome != "skipped" for c in cases)]
    failed = [row for row, cases in proved.items() if _result(row, cases).startswith("**failed")]
    yield "# Reliability"
    yield ""
    yield (
        "This page lists the faults that the service must survive, the tests that cause them, and "
        f"the results. `{COMMANDS[run]}` wrote it from a run of the {run} suite on {day}, which "
        f"took {seconds:.0f} seconds. The load of the machine was {load:.0f} on "
        f"{os.cpu_count()} cores."
    )
    yield ""
    yield (
        f"{len(tried)} of {len(ROWS)} rows were tested, and {len(tried) - len(failed)} of them "
        f"passed. {_listed(failed)}Tier F runs on every change, tier N before a release with "
        '`make test-all`. "Cases tried" is the number that a test records, such as the moments at '
        "which a process was killed; a test that records none counts as one."
    )


def _listed(failed: list[str]) -> str:
    return f"Failed: {', '.join(failed)}. " if failed else ""


def _line(row: str, cases: list[Case]) -> tuple[str, ...]:
    fault, tier = ROWS[row]
    tried = sum(case.tried for case in cases if case.outcome != "skipped")
    return row, fault, _tests(cases), f"{tried:,}" if tried else "", _result(row, cases), tier


def _tests(cases: list[Case]) -> str:
    """Return the tests of a row by file; of many, the first few and how many more there are."""
    names = sorted({case.test for case in cases})
    shown = []
    for file, tests in groupby(names[:SHOWN], key=lambda name: name.partition("::")[0]):
        words = ", ".join(f"`{test.rpartition('::')[2]}`" for test in tests)
        shown.append(f"{file}: {words}")
    more = [f"and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return "; ".join([*shown, *more])


def _result(row: str, cases: list[Case]) -> str:
    """Return what came out of the tests of a row, in words."""
    if not cases:
        return f"not tested: {REASONS.get(row, 'there is no test yet')}"
    counts = {word: sum(case.outcome == word for case in cases) for word in ORDER}
    if counts["failed"]:
        return f"**failed**: {counts['failed']} of {len(cases)}"
    if counts["skipped"]:
        reason = next(case.reason for case in cases if case.outcome == "skipped")
        told = f"{counts['skipped']} of {len(cases)} skipped: {_plain(reason)}"
        return f"passed; {told}" if counts["passed"] else f"not tested: {told}"
    return "passed"


def _plain(text: str) -> str:
    """Return a text that does not break a table."""
    return " ".join(text.replace("|", "/").split())[:120]


def _failed(cases: list[Case]) -> Iterator[str]:
    """Yield the table of failed tests; a test may fail before it names its row."""
    failed = {(f"`{c.test}`", ", ".join(c.rows)) for c in cases if c.outcome == "failed"}
    if not failed:
        return
    yield "## Failed tests"
    yield ""
    yield "A test that failed before it named a row is missing in the tables of the rows."
    yield ""
    yield from _table(("test", "row"), sorted(failed))
    yield ""


def _broken(cases: list[Case]) -> Iterator[str]:
    """Yield the table of harnesses that were tried on a product that was broken on purpose."""
    rows = sorted({row for case in cases for row in case.rows if row.endswith(" broken")})
    if not rows:
        return
    yield "## Tests of the tests"
    yield ""
    yield "A harness that cannot fail proves nothing. Here it is tried on a product that was broken"
    yield "on purpose, and passes if it notices."
    yield ""
    lines = []
    for row in rows:
        found = [case for case in cases if row in case.rows]
        noticed = all(case.outcome == "passed" for case in found)
        tried = sum(case.tried for case in found)
        result = "noticed" if noticed else _result(row, found)
        lines.append((row.removesuffix(" broken"), _tests(found), f"{tried:,}", result))
    yield from _table(("row", "tests", "cases tried", "result"), lines)
    yield ""


def _others(cases: list[Case]) -> Iterator[str]:
    """Yield the table of further proofs."""
    known = {*ROWS, *(f"{row} broken" for row in ROWS)}
    others = sorted({row for case in cases for row in case.rows} - known)
    if not others:
        return
    yield "## Further proofs"
    yield ""
    lines = []
    for row in others:
        found = [case for case in cases if row in case.rows]
        tried = sum(case.tried for case in found if case.outcome != "skipped")
        lines.append((row, _tests(found), f"{tried:,}", _result(row, found)))
    yield from _table(("about", "tests", "cases tried", "result"), lines)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    main()
