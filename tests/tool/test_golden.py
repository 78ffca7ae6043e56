"""Compares what the tool makes of hand-written traces with golden files, byte by byte.

To accept a change: look at the new output, then write it over the file in tests/golden.
"""

import gzip
import json
import subprocess

import pytest
from lib.build import BUILD, GOLDEN
from lib.tool import tprof

TRACES = GOLDEN / "two_ranks"


def test_merged_trace_is_the_golden_one(tmp_path):
    assert tprof("merge", TRACES, "-o", tmp_path / "merged.json").returncode == 0
    assert (tmp_path / "merged.json").read_text() == (GOLDEN / "two_ranks.merged.json").read_text()


def test_compressed_merge_holds_the_same_bytes(tmp_path):
    assert tprof("merge", TRACES, "-o", tmp_path / "merged.json.gz").returncode == 0
    with gzip.open(tmp_path / "merged.json.gz", "rt") as merged:
        assert merged.read() == (GOLDEN / "two_ranks.merged.json").read_text()


@pytest.mark.parametrize("options, name", [([], "screen"), (["--lines", "--per-rank", "--verbose"], "summary")])
def test_summary_is_the_golden_one(options, name):
    result = tprof("summary", "two_ranks", *options, cwd=GOLDEN)
    assert result.stdout == (GOLDEN / f"two_ranks.{name}.txt").read_text()
    assert result.returncode == 1  # rank 1 did not close


def test_summary_json_is_the_golden_one():
    result = tprof("summary", "two_ranks", "--json", cwd=GOLDEN)
    assert json.loads(result.stdout) == json.loads((GOLDEN / "two_ranks.summary.json").read_text())


def test_event_lines_add_up_to_the_golden_summary():
    """Computes the golden summary from the event lines by hand: only executed and accepted calls count."""
    totals = {}
    for file in TRACES.iterdir():
        for line in file.read_text().split("\n")[:-1]:  # the last one of rank 1 is cut
            if '"ph":"X"' not in line or '"captured"' in line or '"result"' in line:
                continue
            event = json.loads(line.rstrip(","))
            if event["cat"] not in ("GRAPH", "NVTX"):
                calls, size = totals.get(event["cat"], (0, 0))
                totals[event["cat"]] = (calls + 1, size + event["args"]["bytes"])
    golden = json.loads((GOLDEN / "two_ranks.summary.json").read_text())["buckets"]
    assert set(totals) == {"ALLGATHER", "RESHARDING", "H2D", "D2H", "P2P"}
    for bucket, (calls, size) in totals.items():
        assert (golden[bucket]["calls"], golden[bucket]["bytes"]) == (calls, size)
    # There are three launches of a graph with one all-reduce of 1024 bytes, on two ranks.
    assert (golden["ALLREDUCE"]["calls"], golden["ALLREDUCE"]["bytes"]) == (6, 6144)


def test_sentences_of_findings_are_the_golden_ones():
    """Each stands here once, so that other tests need only say which one comes, and with which values."""
    words = subprocess.check_output([BUILD / "unit_analysis", "[.print]", "-o", "/dev/null"], text=True)
    assert words == (GOLDEN / "sentences.txt").read_text()
