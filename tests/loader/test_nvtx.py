"""NCCL's own NVTX ranges are the cross-check: calls that no wrapper saw are told, to the call."""

import os
import signal
import sys

import pytest
from lib.build import BUILD, LIBTPROF
from lib.cuda import library_path
from lib.launch import start
from lib.rankfile import named
from lib.tool import merged, tprof

# Calls as vLLM's pynccl makes them. NCCL refuses them for want of a communicator, and tells of them.
PREAMBLE = """
import ctypes, os, threading
nccl = ctypes.CDLL("libnccl.so.2")
size = ctypes.c_size_t
def reduce(n=1):
    for _ in range(n): nccl.ncclAllReduce(None, None, size(4), 7, 0, None, None)
def scatter(n=1):
    for _ in range(n): nccl.ncclReduceScatter(None, None, size(4), 7, 0, None, None)
"""


def run(folder, command, **variables):
    ours = {"RANK": "0", "NVTX_INJECTION64_PATH": str(LIBTPROF)}
    done = start(command, folder, **(ours | variables))
    assert done.stderr == ""
    return done


def calling(text):
    # Python 3.12 warns of a fork where there are threads.
    return [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PREAMBLE + text]


def missed(folder):
    """Returns the missed calls of each rank file, in order of their processes; None where they are not known."""
    found = []
    for footer in named(merged(folder / "traces", folder / "merged.json"), "tprof_footer"):
        entries = footer["coverage"].get("missed")
        found.append(None if entries is None else {e["name"]: e["calls"] for e in entries})
    return found


@pytest.fixture
def vendors():
    return library_path() or pytest.skip("no libnccl.so.2 and libcudart.so.13 of NVIDIA's on this machine")


def test_the_real_nccl_tells_of_calls_past_us(tmp_path, vendors):
    done = run(tmp_path, calling("reduce(3); scatter(2)"), LD_LIBRARY_PATH=vendors)
    assert done.code == 0
    assert missed(tmp_path) == [{"ncclAllReduce": 3, "ncclReduceScatter": 2}]


def test_the_real_nccl_tells_of_no_call_past_us_where_all_came_through(tmp_path, vendors):
    """NCCL's own nested calls are not told either: ncclBcast is ncclBroadcast."""
    run(tmp_path, [BUILD / "every_call"], LD_LIBRARY_PATH=vendors)
    assert missed(tmp_path) == [{}]


def test_calls_of_many_threads_are_told_to_the_call(tmp_path):
    text = """
threads = [threading.Thread(target=reduce, args=(500,)) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
    run(tmp_path, calling(text))
    assert missed(tmp_path) == [{"ncclAllReduce": 2000}]


def test_a_killed_process_has_told_it_too(tmp_path):
    done = run(tmp_path, calling("reduce(5); os.kill(os.getpid(), 9)"))
    assert done.code == -signal.SIGKILL
    assert missed(tmp_path) == [{"ncclAllReduce": 5}]


def test_a_forked_child_tells_of_its_own(tmp_path):
    text = """
reduce(2)
child = os.fork()
if child == 0:
    scatter(3)
    os._exit(0)
os.waitpid(child, 0)
"""
    run(tmp_path, calling(text))
    tables = sorted(missed(tmp_path), key=str)
    assert tables == [{"ncclAllReduce": 2}, {"ncclReduceScatter": 3}]


def test_summary_and_doctor_say_how_many_passed_by(tmp_path):
    run(tmp_path, calling("reduce(7)"))
    for command in ("summary", "doctor"):
        assert "7 of ncclAllReduce (counted: 0)" in tprof(command, tmp_path / "traces").stdout


@pytest.mark.parametrize("switch", [{"TPROF_NVTX": "off"}, {"NVTX_INJECTION64_PATH": None}])
def test_without_it_nothing_is_claimed(tmp_path, switch):
    run(tmp_path, [BUILD / "tests/loader/ways/ways_linked"], **switch)
    assert missed(tmp_path) == [None]


def test_a_disabled_library_leaves_no_trace(tmp_path):
    run(tmp_path, calling("reduce(1)"), TPROF_DISABLE="1")
    assert not (tmp_path / "traces").exists()


@pytest.mark.parametrize(
    ("users", "in_force"), [(None, LIBTPROF), ("/opt/nsight/libToolsInjection64.so", None)]
)
def test_tprof_run_asks_for_the_ranges_unless_a_tool_of_the_users_does(tmp_path, users, in_force):
    env = {"PATH": os.environ["PATH"]}
    if users:
        env["NVTX_INJECTION64_PATH"] = users
    printed = ("--", "printenv", "NVTX_INJECTION64_PATH")
    done = tprof("run", "--quiet", "--out", tmp_path / "traces", *printed, env=env)
    assert done.stdout.strip() == str(users or in_force)


def test_a_preload_that_was_lost_on_the_way_shows(tmp_path):
    """A launcher takes LD_PRELOAD away and leaves the rest: NVTX alone brings the library in."""
    run(tmp_path, [BUILD / "tests/loader/ways/ways_linked"], LD_PRELOAD=None)
    assert missed(tmp_path) == [{"ncclAllGather": 2, "ncclAllReduce": 1}]
