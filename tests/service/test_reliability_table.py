"""The table of what was tried is made of what the tests say, and leaves nothing out."""

import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

from tests.support.paths import ROOT

SCRIPT = ROOT / "docs" / "record_reliability.py"
RUN = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="10" time="12.5" timestamp="2026-06-13T08:15:00">
<testcase classname="tests.service.test_killed" name="test_at_every_write[sqlite]" time="1">
  <properties><property name="row" value="A1"/><property name="cases" value="74"/></properties>
</testcase>
<testcase classname="tests.service.test_killed" name="test_at_every_write[postgres]" time="1">
  <properties><property name="row" value="A1"/><property name="cases" value="26"/></properties>
</testcase>
<testcase classname="tests.service.test_killed" name="test_too_early" time="1"><properties>
  <property name="row" value="A1 broken"/><property name="cases" value="9"/></properties>
</testcase>
<testcase classname="tests.service.test_lost.TestPower" name="test_nothing_is_lost" time="1">
  <properties><property name="row" value="A2"/><property name="cases" value="388"/></properties>
  <failure message="assert 1 == 0">...</failure>
</testcase>
<testcase classname="tests.service.test_gone" name="test_it_comes_back" time="0">
  <properties><property name="row" value="A13"/><property name="cases" value="100"/></properties>
  <skipped message="NO POSTGRESQL | here"/>
</testcase>
<testcase classname="tests.service.page.test_seven" name="test_it_is_small" time="1">
  <properties><property name="row" value="section 7"/></properties>
</testcase>
<testcase classname="tests.files.test_checkpoint" name="test_every_flipped_byte_is_noticed"/>
<testcase classname="tests.service.test_other" name="test_that_proves_no_row" time="1"/>
<testcase classname="tests.service.test_other" name="test_that_fails_early[1]" time="1">
  <failure message="assert 1 == 0">...</failure>
</testcase>
<testcase classname="" name="tests.service.test_unreadable" time="0">
  <error message="collection failure">...</error>
</testcase>
</testsuite></testsuites>
"""


@pytest.fixture(scope="module")
def script():
    return run_path(str(SCRIPT))


@pytest.fixture
def lines(script, tmp_path):
    """Give the cells of every line of the page's tables, by their first cell and table."""
    (tmp_path / "run.xml").write_text(RUN)
    page = script["page"](tmp_path / "run.xml", "quick", 2.6)
    found, heading = {}, ""
    for line in page.splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        if line.startswith("| ") and not line.startswith(("| row", "| about", "| test ")):
            first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
            found[heading, first] = rest
    found["opening"] = page.partition("\n## ")[0]
    return found


CRASHES = "A. Crashes, disks, versions"


def test_cases_of_a_row_are_summed_over_its_tests(lines):
    fault, tests, tried, result, tier = lines[CRASHES, "A1"]

    assert fault == "`kill -9` at any moment"
    assert tests == "tests/service/test_killed.py: `test_at_every_write`"
    assert (tried, result, tier) == ("100", "passed", "F, N")


def test_a_failure_is_shown(lines):
    assert lines[CRASHES, "A2"][3] == "**failed**: 1 of 1"
    assert lines[CRASHES, "A2"][1] == "tests/service/test_lost.py: `test_nothing_is_lost`"
    assert "Failed: A2." in lines["opening"]


def test_every_failed_test_is_listed_with_its_row_or_without(lines):
    failed = {key[1]: cells for key, cells in lines.items() if key[0] == "Failed tests"}

    assert failed == {
        "`tests/service/test_lost.py::TestPower::test_nothing_is_lost`": ["A2"],
        "`tests/service/test_other.py::test_that_fails_early`": [""],
        "`tests.service.test_unreadable`": [""],
    }


def test_a_skipped_test_does_not_count(lines):
    _, tests, tried, result, _ = lines[CRASHES, "A13"]

    assert "test_it_comes_back" in tests
    assert tried == ""
    assert result == "not tested: 1 of 1 skipped: NO POSTGRESQL / here"


def test_a_row_without_a_test_is_shown(lines, script):
    assert lines[CRASHES, "A5"][3] == "not tested: there is no test yet"
    assert lines["D. Load and live clients", "D8"][3] == f"not tested: {script['REASONS']['D8']}"


def test_tests_of_the_library_count_where_they_are_named(lines):
    assert lines["E. Security", "E5"][2:4] == ["500", "passed"]


def test_broken_products_have_a_table_of_their_own(lines):
    assert lines["Tests of the tests", "A1"][1:] == ["9", "noticed"]


def test_results_without_a_row_are_shown(lines):
    assert lines["Further proofs", "section 7"][1:] == ["1", "passed"]
    assert not any("test_that_proves_no_row" in str(cells) for cells in lines.values())


def test_every_row_is_there_once(lines, script):
    numbers = {"A": 15, "B": 15, "C": 6, "D": 8, "E": 13, "F": 4}
    rows = [f"{letter}{i + 1}" for letter, count in numbers.items() for i in range(count)]

    assert list(script["ROWS"]) == rows
    shown = [first for _, first in (key for key in lines if isinstance(key, tuple))]
    assert [first for first in shown if first in rows[1:]] == rows[1:]
    assert "3 of 61 rows were tested, and 2 of them passed." in lines["opening"]
    assert "took 12 seconds. The load of the machine was 3 on" in lines["opening"]


def test_tests_that_are_named_exist(script):
    for proof in (proof for proofs in script["PROOFS"].values() for proof in proofs):
        file, _, name = proof.partition("::")
        source = (ROOT / file).read_text()
        assert not name or re.search(rf"def {name.rpartition('::')[2]}\(", source), proof


def test_rows_that_tests_name_are_in_the_specification(script):
    named = re.compile(r"""(?:record_property\("row", |counted\()"([^"]+)""")
    files = (ROOT / "tests").rglob("*.py")
    rows = {
        row for file in files if file != Path(__file__) for row in named.findall(file.read_text())
    }

    unknown = {row for row in rows if row.removesuffix(" broken") not in script["ROWS"]}
    assert unknown <= {"section 7"}


@pytest.mark.parametrize("has_failed", [True, False])
def test_the_command_writes_the_page_and_its_exit_code_tells_of_failed_tests(tmp_path, has_failed):
    run = RUN if has_failed else re.sub("<(failure|error) .*", "", RUN)
    page = tmp_path / "page.md"
    (tmp_path / "run.xml").write_text(run)

    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path / "run.xml", "--out", page],
        capture_output=True,
        text=True,
    )

    told = f"tests have failed: {page} lists them\n" if has_failed else ""
    assert (done.returncode, done.stdout, done.stderr) == (int(has_failed), f"{page}\n", told)
    assert page.read_text().startswith("# Reliability\n")
    assert ("## Failed tests" in page.read_text()) == has_failed
