"""tprof summary: totals, and what it says of the rest."""

import json
import re

import pytest
from lib import loops
from lib.build import GOLDEN
from lib.rankfile import named, parsed
from lib.tool import generate, summary_of, tprof


def figures(buckets):
    keys = ("calls", "count", "elements", "bytes", "host_ns")
    return {
        name: {key: bucket[key] for key in keys}
        for name, bucket in buckets.items()
        if bucket and bucket["calls"] and name != "ALL"
    }


def test_totals_equal_what_the_generator_wrote(tmp_path):
    expected = generate(tmp_path, 4, 5000)
    found = summary_of(tmp_path)
    assert figures(found["buckets"]) == expected
    for key in ("calls", "count", "elements", "bytes", "host_ns"):
        assert found["buckets"]["ALL"][key] == sum(bucket[key] for bucket in expected.values())
    assert found["ranks"] == [0, 1, 2, 3]
    assert found["missing_ranks"] == []
    assert found["complete"] is True
    assert found["findings"] == []


def test_object_gathers_are_null_without_lines_and_counted_with_them(tmp_path):
    text = (GOLDEN / "two_ranks/rank-00000.json").read_text()
    text = text.replace('"dropped":{"window":7}', '"dropped":{}')
    (tmp_path / "rank-00000.json").write_text(text)
    assert summary_of(tmp_path)["buckets"]["ALLGATHER_OBJ"] is None
    gathers = summary_of(tmp_path, "--lines")["buckets"]["ALLGATHER_OBJ"]
    assert (gathers["calls"], gathers["bytes"]) == (2, 116)


def test_what_our_own_threads_took_is_a_share_of_the_run(tmp_path):
    """Footers tell what was spent, and ledgers how long processes ran; those that did not close don't tell."""
    generate(tmp_path / "job", 3, 2000, unclosed=2)
    spent = ran = 0
    for rank in (0, 1):
        file = tmp_path / f"job/rank-{rank:05}.json"
        cost = 1_000_000 + rank
        file.write_text(file.read_text().replace('"self_cost_ns":0', f'"self_cost_ns":{cost}'))
        lines = parsed(file)
        (footer,) = named(lines, "tprof_footer")
        assert footer["self_cost_ns"] == cost
        spent += cost
        ran += round(named(lines, "tprof_ledger")[-1]["ts"] * 1000)
    assert summary_of(tmp_path / "job")["self_cost"] == {"cpu_ns": spent, "in_calls_ns": 0, "run_ns": ran}
    text = tprof("summary", tmp_path / "job").stdout
    share = re.search(r"^Cost of tprof: 2.00 ms of CPU in its own threads, ([\d.e-]+)% of the processes' run time", text, re.M)[1]
    assert float(share) == pytest.approx(100 * spent / ran, rel=0.05)
    # Footers tell what tprof took inside of some calls.
    calls = []
    for rank in (0, 1):
        file = tmp_path / f"job/rank-{rank:05}.json"
        sample = f'"self_cost_sample":{{"calls":2,"ns":{600 * (rank + 1)}}},"self_cost_ns"'
        file.write_text(file.read_text().replace('"self_cost_ns"', sample))
        ledger = named(parsed(file), "tprof_ledger")[-1]
        calls.append(sum(row["calls"] for row in ledger["rows"] if row["mode"] == "direct"))
    in_calls = 300 * calls[0] + 600 * calls[1]
    assert summary_of(tmp_path / "job")["self_cost"]["in_calls_ns"] == in_calls
    text = tprof("summary", tmp_path / "job").stdout
    assert f"in its own threads and about {in_calls / 1e6:.2f} ms inside of calls, " in text
    for rank in (0, 1):
        (tmp_path / f"job/rank-{rank:05}.json").unlink()
    assert "self_cost" not in summary_of(tmp_path / "job")


def timed_and_waited(rank):
    """Makes a job of one rank whose copies have device time with a known exposed part, and whose gathers have
    no exposed part."""
    loop = loops.Loop([[0]])
    for _ in range(4):
        loop.gather(1000)
        loop.copy("cudaMemcpyAsync", 4096)
    folder = loop.job.write(rank)
    file = folder / "rank-00000.json"
    times = {"H2D": {"exposure_known": 3, "exposure_known_ns": 900, "exposed_ns": 700}, "ALLGATHER": {}}
    lines = []
    for line in file.read_text().splitlines():
        if '"tprof_ledger"' in line:
            ledger = json.loads(line.rstrip(","))
            for row in ledger["args"]["rows"]:
                row |= {"device_ns": 1000, "device_timed": 4, "device_bytes": row["bytes"]} | times[row["bucket"]]
            line = json.dumps(ledger, separators=(",", ":")) + ","
        lines.append(line)
    file.write_text("\n".join(lines) + "\n")
    return folder


def test_times_are_there_where_they_were_taken_and_null_elsewhere(tmp_path):
    found = summary_of(timed_and_waited(tmp_path / "job"))
    buckets = found["buckets"]
    assert (buckets["H2D"]["device_ns"], buckets["H2D"]["exposed_ns"]) == (1000, 700)
    assert (buckets["ALLGATHER"]["device_ns"], buckets["ALLGATHER"]["exposed_ns"]) == (1000, None)
    assert (buckets["D2H"]["device_ns"], buckets["D2H"]["exposed_ns"]) == (None, None)
    assert {op["name"]: op["exposed_ns"] for op in found["ops"]} == {"cudaMemcpyAsync": 700, "ncclAllGather": None}
