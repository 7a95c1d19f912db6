"""Rules for the tests themselves."""

import re

import pytest

from tests.support.paths import ROOT

# The formatter leaves one module in a line.
IMPORTED = re.compile(
    r"^\s*(?:from|import) (\.[\w.]*|tests\b(?: import \w+$|[\w.]*))", re.MULTILINE
)
SHARED = ("tests.support", "tests.oracles", "tests import oracles")
MODULES = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))


def wrong_imports(source):
    """Return imports of test modules: shared code belongs into tests/support."""
    names = IMPORTED.findall(source)
    return [name for name in names if not f"{name}.".startswith(tuple(f"{s}." for s in SHARED))]


def test_no_test_module_imports_another_test_module():
    wrong = {str(module): wrong_imports((ROOT / module).read_text()) for module in MODULES}

    assert {module: names for module, names in wrong.items() if names} == {}


# Where pauses are part of the proof: faults come at random moments, readers rest, or a patched
# service hangs.
WITH_PAUSES = {
    "tests/service/http/test_server.py",
    "tests/service/ledger/test_log_length.py",
    "tests/service/ledger/test_postgres_outages.py",
    "tests/service/test_killed.py",
    "tests/service/test_soak.py",
    "tests/service/test_workers.py",
    "tests/support/page/fake_service.py",
    "tests/support/waiting.py",
    "tests/test_structure.py",
}


def test_tests_wait_for_events_and_not_for_a_time():
    pause = re.compile(r"\btime\.sleep\(|\bwait_for_timeout\(")
    found = {str(path) for path in MODULES if pause.search((ROOT / path).read_text())}

    assert found <= WITH_PAUSES


@pytest.mark.parametrize(
    "line", ["from tests.runs.test_replay import frame", "from . import x", "import tests.conftest"]
)
def test_a_forbidden_import_is_noticed(line):
    assert len(wrong_imports(line)) == 1
    assert len(wrong_imports(f"import re\n\n\ndef late():\n    {line}\n")) == 1
