"""Programs that make no NCCL or CUDA call don't notice the preload: no file, thread, output."""

import sys

import pytest
from lib.launch import start, torchrun

THREADS = "grep Threads: /proc/{}/status"
PROGRAMS = {
    "bash": ["bash", "-c", f"(exit 3); echo $?; {THREADS.format('$$')}; echo a b | wc -w"],
    # A recipe runs in a shell whose parent is make itself.
    "make": ["make", f"--eval=threads:; @{THREADS.format('$$PPID')}; :", "threads"],
    "python": [sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/task'))[1:])"],
    "failing python": [sys.executable, "-c", "import sys; sys.exit('no data')"],
    "python with torch": [
        sys.executable,
        "-c",
        "import os, torch; print(torch.ones(3).sum().item(), len(os.listdir('/proc/self/task')))",
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_left_alone(name, tmp_path):
    plain = start(PROGRAMS[name], tmp_path / "plain", preload=False)
    traced = start(PROGRAMS[name], tmp_path / "traced")
    assert (traced.code, traced.stdout, traced.stderr) == (plain.code, plain.stdout, plain.stderr)
    assert plain.stdout or plain.stderr
    assert not traced.traces.exists()


def test_torchruns_agent_is_left_alone(tmp_path):
    """The rank prints its parent's threads; the only file is the rank's."""
    command = torchrun("agent_threads.py", 1)
    plain = start(command, tmp_path / "plain", preload=False)
    traced = start(command, tmp_path / "traced")
    assert plain.code == 0, plain.stderr
    assert traced.lines() == plain.lines() and "agent" in traced.stdout
    assert [file.name for file in traced.traces.iterdir()] == ["rank-00000.json"]


def test_data_loader_workers_start_alike_and_write_nothing(pair_of):
    pair = pair_of("dataloader-2")
    starts = [line for line in pair.traced.lines() if "starts with" in line]
    assert starts == [line for line in pair.plain.lines() if "starts with" in line]
    assert len(starts) == 4
    assert len(list(pair.traced.traces.iterdir())) == 2
