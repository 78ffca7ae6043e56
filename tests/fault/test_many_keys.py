"""A thread makes more kinds of calls than its ledger has rows: each bucket's sums are exact, and it is said."""

import json

import pytest
from lib import runs, tally
from lib.rankfile import named
from lib.tool import tprof

SIZES = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1]  # bytes of the data types, in NCCL's order
COUNTS = [1 << k for k in range(10)]
RANKS = 3
TIMES = {"ALLGATHER": RANKS, "RESHARDING": RANKS, "ALLREDUCE": 1, "BROADCAST": 1}
assert len(SIZES) == len(tally.DTYPES)


def expected(comms: int) -> dict[str, tuple[int, int, int]]:
    """Returns (calls, elements, bytes) by bucket, from what keys.cpp says that it calls."""
    sums = {
        bucket: (
            comms * len(SIZES) * len(COUNTS),
            comms * len(SIZES) * sum(COUNTS) * times,
            comms * sum(SIZES) * sum(COUNTS) * times,
        )
        for bucket, times in TIMES.items()
    }
    copied = sum(1 << k for k in range(15))
    return {**sums, "P2P": (2 * comms, 16 * comms, 64 * comms), "H2D": (15, copied, copied), "D2H": (15, copied, copied)}


def by_bucket(rows: list[dict]) -> dict[str, tuple[int, int, int]]:
    sums: dict = {}
    for row in rows:
        figures = (row["calls"], row["elements"], row["bytes"])
        sums[row["bucket"]] = tuple(map(sum, zip(sums.get(row["bucket"], (0, 0, 0)), figures)))
    return sums


@pytest.mark.parametrize("comms", [20, 240])
def test_sums_of_buckets_are_exact_and_what_has_no_row_is_said(comms, tmp_path):
    traced = runs.run(tmp_path, runs.client("keys", comms), TPROF_QUOTA="1MiB", RANK="0", WORLD_SIZE="1")
    assert (traced.code, traced.stderr) == (7, "")
    runs.recover(traced.traces)  # where a busy machine lets it write for more than 5 s, it leaves the rest to that
    lines = traced.only_rank_file()
    ledger = named(lines, "tprof_ledger")[-1]
    assert by_bucket(ledger["rows"]) == expected(comms)
    others = sum(row["calls"] for row in ledger["rows"] if row["name"] == "other")
    assert (others > 500) == (comms == 240)
    noted = [entry["calls"] for entry in runs.footer(lines)["coverage"]["unseen"] if entry["kind"] == "ledger_full"]
    assert noted == [others] * (others != 0)
    assert all(row["comm"] is None for row in ledger["rows"] if row["name"] == "other")
    assert len(ledger["comms"]) == (0 if others else comms)
    reports = [json.loads(tprof(command, traced.traces, "--json").stdout) for command in ("summary", "check")]
    for report in reports:
        findings = [f for f in report["findings"] if f["kind"] == "ledger_full"]
        assert len(findings) == bool(others) and all(f"{others:,} calls" in f["text"] for f in findings)
    buckets = reports[0]["buckets"]
    assert {b: buckets[b]["calls"] for b in TIMES} == {b: expected(comms)[b][0] for b in TIMES}
