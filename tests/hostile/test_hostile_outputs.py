"""Outputs that would destroy something or cannot be written, and checkpoints that are none."""

import os
import pickle

import pytest

from streamridge import Forecaster
from streamridge.files import checkpoint
from tests.support.hostile_files import column, require_contract, written

GOOD = column(1, 2, 3)
QUICK = ("replay", "flow.csv", "--method", "last", "--warmup", "0")
FOREIGN = "a diary\n"


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a file of readings, links to it, and files of other people."""
    written(GOOD, tmp_path / "flow.csv")
    (tmp_path / "link.csv").symlink_to("flow.csv")
    (tmp_path / "twin.csv").hardlink_to(tmp_path / "flow.csv")
    (tmp_path / "lost.csv").symlink_to("nowhere/else.csv")
    written(FOREIGN, tmp_path / "diary.csv")
    written(FOREIGN, tmp_path / "file")
    (tmp_path / "folder.csv").mkdir()
    return tmp_path


# Flags, and a part of what is said.
REFUSED = {
    "the input": (
        ["--predictions", "flow.csv"],
        "predictions must not replace a file that is read",
    ),
    "the input, by force": (["--predictions", "flow.csv", "--force"], "must not replace a file"),
    "a link to the input": (["--predictions", "link.csv", "--force"], "must not replace a file"),
    "a twin of the input": (["--predictions", "twin.csv", "--force"], "must not replace a file"),
    "a folder": (["--predictions", "folder.csv"], "must be a file, got the folder 'folder.csv'"),
    "a folder, by force": (["--predictions", "folder.csv", "--force"], "got the folder"),
    "a file of others": (
        ["--predictions", "diary.csv"],
        "predictions must be new or replace a file that this command wrote, got 'diary.csv'. Pass "
        "--force to replace it",
    ),
    "within a file": (["--predictions", "file/p.csv"], "must be a folder that can be written"),
    "an ending that nobody knows": (["--predictions", "p.xlsx"], "must end in .csv"),
    "no ending": (["--predictions", "p"], "must end in .csv"),
    "no name": (["--predictions", ""], "must be a file, got the folder '.'"),
    "a null character": (["--predictions", "a\0.csv"], "Invalid value for '--predictions'"),
    "a name too long": (["--predictions", "x" * 300 + ".csv"], "File name too long"),
    "a report with a name too long": (["--report", "x" * 300], "File name too long"),
    "a report in a file": (["--report", "file"], "must be a folder that can be written"),
    "kept runs in a file": (["--keep", "file"], "must be a folder that can be written"),
    "forecasters in a file": (["--save", "file"], "must be a folder that can be written"),
    "predictions and JSON on one stream": (["--predictions", "-", "--json"], "json"),
    "a file and a folder of one name": (
        ["--predictions", "out.csv", "--report", "out.csv"],
        "report must not be inside another output file, got 'out.csv'",
    ),
}


@pytest.mark.parametrize(("flags", "said"), REFUSED.values(), ids=REFUSED)
def test_an_output_that_would_destroy_or_fail_is_refused_before_any_work(
    flags, said, invoke, folder
):
    result = invoke(*QUICK, *flags)

    require_contract(result, 2, said)
    assert (folder / "flow.csv").read_text() == GOOD
    assert (folder / "diary.csv").read_text() == (folder / "file").read_text() == FOREIGN


WRITTEN = {
    "a folder that is not there": (["--predictions", "new/er/p.csv"], "new/er/p.csv"),
    "a file of others, by force": (["--predictions", "diary.csv", "--force"], "diary.csv"),
    "a link that leads to a new folder": (["--predictions", "lost.csv"], "lost.csv"),
    "an odd name": (["--predictions", "a\x1b[31m\n.csv"], "a\x1b[31m\n.csv"),
}


@pytest.mark.parametrize(("flags", "name"), WRITTEN.values(), ids=WRITTEN)
def test_an_output_is_replaced_by_the_next_run(flags, name, invoke, folder):
    for _ in range(2):  # the second time it replaces what the first one wrote
        result = invoke(*QUICK, *flags)

        require_contract(result, 0, "Predictions: ")
        assert (folder / name).read_text().startswith("sensor,method,time,horizon,actual,value")
    assert (folder / "flow.csv").read_text() == GOOD


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_is_reported_and_the_table_is_printed(invoke, folder):
    (folder / "full.csv").symlink_to("/dev/full")

    result = invoke(*QUICK, "--predictions", "full.csv")

    require_contract(result, 3, "No space left on device")
    assert "RMSE" in result.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(invoke, folder):
    (folder / "closed").mkdir(mode=0o500)

    result = invoke(*QUICK, "--predictions", "closed/p.csv")

    require_contract(result, 2, "must be a folder that can be written, got 'closed'")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the bytes of a saved forecaster."""
    path = tmp_path_factory.mktemp("saved") / "a.sr"
    forecaster = Forecaster("1h", sensor="a")
    forecaster.observe("2021-06-13T00:00", 5.0)
    forecaster.save(path)
    return path.read_bytes()


VERSION = len(checkpoint.MAGIC)
DAMAGED = {
    "cut short by a byte": (lambda content: content[:-1], "is damaged: it was cut short"),
    "cut in half": (lambda content: content[: len(content) // 2], "is damaged: it was cut short"),
    "altered by a bit": (
        lambda content: content[:500] + bytes([content[500] ^ 1]) + content[501:],
        "is damaged: it was cut short or altered",
    ),
    "with more behind it": (lambda content: content + b"more", "is damaged"),
    "its first bytes": (lambda content: content[:10], "is not a streamridge checkpoint"),
    "of a newer version": (
        lambda content: content[:VERSION] + b"\xff\0\0\0" + content[VERSION + 4 :],
        "version",
    ),
    "empty": (lambda content: b"", "is not a streamridge checkpoint"),
    "a table": (lambda content: GOOD.encode(), "is not a streamridge checkpoint"),
    "a pickle": (lambda content: pickle.dumps({}), "is not a streamridge checkpoint"),
    "an archive": (lambda content: b"PK\x03\x04" + b"x" * 99, "is not a streamridge checkpoint"),
    "null characters": (lambda content: b"\0" * 999, "is not a streamridge checkpoint"),
}


@pytest.mark.parametrize("command", ["inspect", "forecast"])
@pytest.mark.parametrize(("damage", "said"), DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_is_not_a_checkpoint_is_refused(damage, said, command, saved, invoke, tmp_path):
    written(damage(saved), tmp_path / "a.sr")

    result = invoke(command, "a.sr")

    require_contract(result, 2, "a.sr")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("path", "inspected", "forecast"),
    [
        ("folder", "folder cannot be read: Is a directory", "must hold saved forecasters (.sr)"),
        ("nowhere.sr", *2 * ["nowhere.sr cannot be read: No such file or directory"]),
        ("a\0.sr", "Invalid value for 'FILE.sr'", "must be a file that can be read"),
        ("", "cannot be read", "must be a file that can be read"),
    ],
    ids=["a folder", "not there", "a null character", "no name"],
)
def test_a_checkpoint_that_does_not_exist_is_refused(path, inspected, forecast, invoke, tmp_path):
    (tmp_path / "folder").mkdir()

    require_contract(invoke("inspect", path), 2, inspected)
    require_contract(invoke("forecast", path), 2, forecast)


NEW = {
    "another sensor": ("time,b\n2021-06-13T01:00,1\n", "the readings must have a column 'a'"),
    "nothing": ("", "got an empty file"),
    "words": ("time,a\n2021-06-13T01:00,x\n", "new.csv line 2, column a: must be a number"),
    "another grid": ("time,a\n2021-06-13T01:00,1\n2021-06-13T01:10,1\n", "aggregate must be sum"),
    "an index": ("time,a\n1,1\n2,2\n", "step must be a whole number"),
}


@pytest.mark.parametrize(("content", "said"), NEW.values(), ids=NEW)
def test_unsuitable_new_readings_do_not_change_a_forecaster(content, said, saved, invoke, tmp_path):
    written(saved, tmp_path / "a.sr")
    written(content, tmp_path / "new.csv")

    result = invoke("forecast", "a.sr", "--readings", "new.csv", "--save", ".")

    require_contract(result, 2, said)
    assert (tmp_path / "a.sr").read_bytes() == saved


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere.csv", "nowhere.csv must be a file that can be read, got: No such file"),
        ("folder", "folder must be a file that can be read, got: Is a directory"),
        ("a\0.csv", "must be a file that can be read"),
        ("", "must be a file that can be read"),
        ("http://host/flow.csv", "must be a file that can be read"),
    ],
    ids=["not there", "a folder", "a null character", "no name", "an address"],
)
def test_an_input_that_is_not_a_file_is_refused(path, said, invoke, tmp_path):
    (tmp_path / "folder").mkdir()

    require_contract(invoke("replay", path), 2, said)


def test_a_report_of_methods_without_a_model_is_written(invoke, folder):
    result = invoke(*QUICK, "--report", "page")

    require_contract(result, 0, "Report: page/index.html")
    assert "Traceback" not in (folder / "page" / "index.html").read_text()
