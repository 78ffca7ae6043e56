"""tprof check where a process is stopped, or where a host may wait for its device: who is behind in calls need not be
who is stuck."""

import signal

import pytest
from lib import jobs
from lib.commanded import commanded
from lib.runs import until
from lib.tool import told, worse_than_notes

SECOND = 10**9 // jobs.STEP_NS


def stood(folder, last):
    """Writes two killed ranks that stood for a minute: rank 1 called one collective more than rank 0, which then made
    the call `last`."""
    job = jobs.Job([[0, 1]], [], 11)
    ops = [jobs.Op("ncclAllReduce", at, 64, 0, "float32", "sum") for at in (1, 2, 3, 5)]
    job.ranks = [jobs.Rank(list(ops), [0], end="recovered", until=60 * SECOND) for _ in range(2)]
    job.ranks[0].ops[3:] = [jobs.Op(last, 4, 64)]
    (hang,) = worse_than_notes(job.write(folder))
    assert (hang["kind"], hang["ranks"], hang["seq"]) == ("hang", [0], 3)
    return hang["text"]


@pytest.mark.parametrize("last, reads", [("cudaMemcpy", True), ("cudaMemcpyAsync", False)])
def test_a_host_that_reads_from_its_device_is_not_blamed_alone(tmp_path, last, reads):
    """cudaMemcpy is to the host in these jobs, cudaMemcpyAsync to the device."""
    text = stood(tmp_path / "job", last)
    assert "never came to collective 3 (ncclAllReduce)" in text and "stood still before it, for " in text
    assert text.endswith("its host may wait for its device, and that for other devices") == reads


@pytest.mark.parametrize("count, alone", [(64, False), (4096, True)])
def test_a_call_that_no_rank_ever_made_may_be_one_too_many(tmp_path, count, alone):
    """A rank that did not make a call of each step is behind."""
    job = jobs.Job([[0, 1]], [], 11)
    ops = [jobs.Op("ncclAllReduce", at, 64, 0, "float32", "sum") for at in (1, 2, 3)]
    job.ranks = [jobs.Rank(list(ops), [0], end="recovered", until=60 * SECOND) for _ in range(2)]
    job.ranks[1].ops.append(jobs.Op("ncclAllReduce", 5, count, 0, "float32", "sum"))
    (hang,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (hang["kind"], hang["ranks"], hang["seq"]) == ("hang", [0], 3)
    said = "no rank has called another ncclAllReduce of >= 16.00 KiB there: rank 1 may have made a call too many"
    assert (said in hang["evidence"]) == alone
    assert any("may have made a call too many" in line for line in hang["evidence"]) == alone


def test_a_stopped_process_is_named(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 5)

        def hangs():
            _, found = told("check", job.traces, "--stuck-after", "1")
            return [f for f in found["findings"] if f["kind"] == "hang"]

        job.process.send_signal(signal.SIGSTOP)
        (stopped,) = until(hangs)
        assert stopped["ranks"] == [0] and stopped["severity"] == "error"
        assert stopped["next"].startswith(f"let it go on: kill -CONT {job.process.pid} on ")
        job.process.send_signal(signal.SIGCONT)
        job.does("gather", 1)
        until(lambda: not hangs())
