"""The middle of a rank file is not read where its two ends tell all. Communicators that were made
there are known, too, of a rank that closed and of one that did not."""

import dataclasses
import json

import pytest
from lib import handmade, jobs
from lib.tool import tprof

EDGE = 1 << 16  # bytes that are read at each end
RANKS, LINES = 9, 1500
COMMANDS = (["check", "--no-lines"], ["summary"])


@pytest.fixture
def job(tmp_path):
    """Returns a job with rank files of 0.5 MB, each with a group born in its middle."""
    job = jobs.plain(RANKS, LINES)
    job.comms += [list(range(5)), list(range(5, RANKS))]
    for n, rank in enumerate(job.ranks):
        group = 1 if n < 5 else 2
        rank.order, rank.split_at = [0, group], LINES
        again = [op for op in rank.ops if op.collective]
        rank.ops += [dataclasses.replace(op, comm=group, at=op.at + LINES) for op in again]
    return job.write(tmp_path / "job")


def said(job, command):
    result = tprof(*command, job, "--json")
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return json.loads(result.stdout)


def wipe(file, begin, end):
    """Overwrites the bytes between the two, so that none of them is a line any more."""
    with open(file, "r+b") as f:
        f.seek(begin)
        f.write(bytes(end - begin))


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_closed_file_the_two_ends_are_read(job, command):
    whole = said(job, command)
    for file in job.iterdir():
        wipe(file, EDGE, file.stat().st_size - EDGE)
    assert said(job, command) == whole


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_file_with_a_snapshot_the_beginning_is_read(job, command):
    for file in list(job.iterdir()):
        text = file.read_text()
        cut = text.rindex('{"name":"tprof_ledger"')
        rest = text[cut:].removesuffix("]\n").replace('"complete":true', '"complete":false')
        header = json.loads(text.split("\n")[1].removesuffix(","))["args"]
        file.write_text(text[:cut])
        (job / f".{file.stem}.snapshot").write_bytes(
            jobs.snapshot(header["base_time_ns"], cut, rest.encode())
        )
    whole = tprof(*command, job, "--json")
    assert '"snapshot"' in whole.stdout
    for file in job.glob("*.json"):
        wipe(file, EDGE, file.stat().st_size - EDGE)
    assert tprof(*command, job, "--json").stdout == whole.stdout


def test_a_rank_that_was_told_in_the_middle_is_known(job):
    file = job / "rank-00000.json"
    lines = file.read_text().replace('"rank":0,"world_size":9', '"rank":null,"world_size":null').split("\n")
    told = handmade.as_text(handmade.metadata("tprof_identity", rank=0, world_size=RANKS))
    lines.insert(len(lines) // 2, told + ",")
    file.write_text("\n".join(lines))
    assert said(job, ["summary"])["ranks"] == list(range(RANKS))


def test_a_ledger_longer_than_what_is_read_at_the_end_is_read_whole(job):
    before = said(job, ["summary"])["buckets"]["H2D"]["calls"]
    file = job / "rank-00000.json"
    text = file.read_text()
    at = text.rindex('"rows":[') + len('"rows":[')
    copies = handmade.row(bucket="H2D", name="cudaMemcpyAsync", dtype="byte", comm=None, device=0)
    file.write_text(text[:at] + 2000 * (handmade.as_text(copies) + ",") + text[at:])
    assert said(job, ["summary"])["buckets"]["H2D"]["calls"] == before + 2000
