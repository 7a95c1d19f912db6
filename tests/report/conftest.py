import pytest

from streamridge.report import write_report
from tests.support.report_runs import HOSTILE, fixed_run, make_run


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return the folder of a report about two sensors, one with a hostile name."""
    folder = tmp_path_factory.mktemp("report") / "new"
    runs = [make_run(sensor=HOSTILE), fixed_run(sensor=HOSTILE), make_run(sensor="ramp-7")]
    path = write_report(runs, folder, title=f"Roads {HOSTILE}", unit="<b>vehicles</b>")
    assert path == folder / "index.html"
    return folder
