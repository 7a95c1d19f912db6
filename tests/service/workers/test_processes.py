"""How worker processes are started."""

import socket
import tempfile
from multiprocessing import connection
from multiprocessing.process import current_process

from streamridge_service.workers import processes
from streamridge_service.workers.processes import process_context


def test_a_long_folder_of_temporary_files_leaves_room_for_sockets(tmp_path, monkeypatch):
    processes._make_folder_of_sockets.cache_clear()
    deep = tmp_path / ("a" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    monkeypatch.setattr(
        current_process(), "_config", {**current_process()._config, "tempdir": None}
    )

    process_context()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(connection.arbitrary_address("AF_UNIX"))
    assert tempfile.gettempdir() == str(deep)


def test_later_starts_leave_the_folder_of_temporary_files_alone(monkeypatch):
    process_context()
    monkeypatch.setattr(processes, "util", None)  # would fail if it were used again

    process_context()
