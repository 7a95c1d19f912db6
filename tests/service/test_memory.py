"""The memory of machines and processes."""

import os
import subprocess
import sys

import pytest

from streamridge_service.memory import (
    default_memory,
    family_bytes,
    machine_bytes,
    proportional_bytes,
    resident_bytes,
    return_free_memory,
)

GB = 10**9
MEMINFO = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\n"
ALL = 16_000_000 * 1024


def machine(folder, files):
    """Make a folder with files of /proc and /sys."""
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


V1 = "4:memory:/docker/abc\n1:cpu:/\n"
V2 = "0::/system.slice/streamridge.service\n"
CASES = {
    "no control groups": ({}, ALL),
    "version 2": (
        {
            "proc/self/cgroup": V2,
            "sys/fs/cgroup/system.slice/streamridge.service/memory.max": "6000000000\n",
        },
        6 * GB,
    ),
    "version 2, of a group around it": (
        {
            "proc/self/cgroup": V2,
            "sys/fs/cgroup/system.slice/streamridge.service/memory.max": "max\n",
            "sys/fs/cgroup/system.slice/memory.max": "3000000000\n",
        },
        3 * GB,
    ),
    "in a container": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2000000000\n"},
        2 * GB,
    ),
    "version 1": (
        {
            "proc/self/cgroup": V1,
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "5000000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
        5 * GB,
    ),
    "no limit": ({"proc/self/cgroup": V2, "sys/fs/cgroup/memory.max": "max\n"}, ALL),
}


@pytest.mark.parametrize(("files", "expected"), CASES.values(), ids=CASES)
def test_the_memory_of_a_machine_is_limited_by_its_control_groups(tmp_path, files, expected):
    assert machine_bytes(machine(tmp_path, files)) == expected


def test_the_default_is_half_of_the_memory(tmp_path):
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2000000000\n"}

    assert default_memory(machine(tmp_path, files)) == "1000MB"


def test_a_machine_without_these_files_has_its_physical_memory(tmp_path):
    assert machine_bytes(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_the_memory_of_a_process_is_measured():
    return_free_memory()  # free memory of earlier tests would be filled first
    before = resident_bytes()

    filled = bytearray(os.urandom(1)) * 50_000_000
    held = resident_bytes() - before
    del filled
    return_free_memory()

    assert held > 45_000_000
    assert resident_bytes() - before < 10_000_000


def test_children_count_and_a_process_that_has_ended_holds_nothing():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    alive = resident_bytes(child.pid)
    family = family_bytes()

    child.communicate(b"\n")

    assert 0 < alive < family
    assert family > resident_bytes() * 0.9
    assert resident_bytes(child.pid) == proportional_bytes(child.pid) == 0


def test_shared_memory_counts_in_part():
    child = subprocess.Popen([sys.executable, "-c", "print(); input()"], stdin=-1, stdout=-1)
    child.stdout.readline()

    assert 0 < proportional_bytes(child.pid) < resident_bytes(child.pid)
    child.communicate(b"\n")
