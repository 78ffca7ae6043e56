"""Stacks: those of our threads, of which the process's thread-local memory takes its part, and small ones of the
program's, on which our wrappers run."""

import re

import pytest
from lib import runs
from lib.build import BUILD, LIBTPROF, STANDIN

CALLS = runs.client("calls", 400, 2)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("by", ["a library", "GLIBC_TUNABLES"])
@pytest.mark.parametrize("kib", [0, 200, 208, 216, 232, 300, 1024])
def test_our_threads_have_the_same_room_whatever_thread_local_memory_the_process_has(kib, by, tmp_path):
    own = kib if by == "a library" else 0
    env = {"LD_PRELOAD": f"{LIBTPROF}:{BUILD}/libfault_thread_local_{own}.so"}
    env |= {"TPROF_TIMING": "events", "TPROF_METRICS": "100ms", "TPROF_RING_DIR": "/dev/shm"}
    if own != kib:
        env["GLIBC_TUNABLES"] = f"glibc.rtld.optional_static_tls={kib * 1024}"
    traced = runs.run(tmp_path, CALLS, libraries=STANDIN, **env)
    assert (traced.code, traced.stderr) == (7, "")
    threads, room = map(int, re.search(r"^(\d+) threads with (-?\d+) KiB", traced.stdout, re.MULTILINE).groups())
    assert threads >= 2 and room >= 240
    (counts,) = traced.counted()
    assert runs.ledger(traced.only_rank_file()) == runs.expected_ledger(counts)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sites", ["off", "native", "python", "both"])
@pytest.mark.parametrize("timing", ["host", "events"])
def test_a_thread_of_the_smallest_stack_calls_as_others_do(timing, sites, tmp_path):
    command = runs.client("small", 4)
    plain = runs.run(tmp_path / "plain", command, preload=False, libraries=STANDIN)
    env = {"TPROF_CALLSITE": sites, "TPROF_TIMING": timing, "TPROF_MEMORY": "1"}
    traced = runs.run(tmp_path / "traced", command, libraries=STANDIN, **env)
    assert traced.outcome() == plain.outcome() == (7, "all threads are gone\n")
    (counts,) = traced.counted()
    assert runs.ledger(traced.only_rank_file()) == runs.expected_ledger(counts)
