"""The queries of tprof export's page give what the same sums over the lines give."""

import collections
import dataclasses
import json
import re
import statistics

import pytest
from lib import jobs, loops
from lib.rankfile import lines_of
from test_export import PAGE, export, rows
from test_summary_ranges import pushed

QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """Returns folder, database, and where steps begin, of two ranks of a training loop. It has all
    that the page's queries ask for: a backward pass, a device time of each collective, a range
    `forward` of each step, and pageable memory."""
    folder = tmp_path_factory.mktemp("loop")
    made = loops.fsdp(loops.Shape(steps=9))
    for rank in made.job.ranks:
        rank.ops = [
            dataclasses.replace(op, autograd=op.function == "ncclReduceScatter", ns=1000 * (1 + n % 49),
                                device=(1000, 1000 * (3 + n % 5)) if op.collective else None)
            for n, op in enumerate(rank.ops)
        ]  # fmt: skip
    made.job.write(folder / "run")
    for rank, file in enumerate(sorted((folder / "run").iterdir())):
        lines = [line.replace('"bucket":"H2D",', '"bucket":"H2D","host_memory":"pageable",') for line in lines_of(file)]
        first = next(i for i, line in enumerate(lines) if '"cat":' in line)
        for n, at in enumerate(made.steps):
            of_rank = pushed("forward", at * jobs.STEP_NS / 1000, 10 + n + rank) | {"pid": rank}
            lines.insert(first, json.dumps(of_rank, separators=(",", ":")))
        file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return folder / "run", export(folder / "run", folder / "run.db"), made.steps


def grouped(of, key, *values):
    """Returns what GROUP BY does: the key, how many, and the sums of some columns; a row whose key is None is in none."""
    sums = collections.defaultdict(lambda: [0] * (1 + len(values)))
    for row in of:
        if (group := key(row)) is not None:
            sums[group] = [a + b for a, b in zip(sums[group], (1, *(row[value] for value in values)))]
    return {(*group, *total) for group, total in sums.items()}


def test_queries_of_the_page_run(loop):
    """Each query gives what the same sums over the tables give, which test_export.py compares with the lines."""
    _, db, _ = loop
    calls = rows(db, "calls")
    gathers = [call["host_ns"] for call in calls if call["function"] == "ncclAllGather"]
    names = {(row["process"], row["thread"]): row["name"] for row in rows(db, "threads")}
    ids = {(row["process"], row["comm"]): row["id"] for row in rows(db, "communicators")}
    together, forward = collections.defaultdict(list), collections.defaultdict(list)
    for call in calls:
        together[ids.get((call["process"], call["comm"])), call["seq"], call["function"]].append(call["ts_ns"])
    for of in rows(db, "ranges"):
        forward[of["rank"]].append(of["ns"])
    found = [[tuple(row) for row in db.execute(query)] for query in QUERIES]
    assert [bool(of_query) for of_query in found] == [True] * 9
    totals, [(count, ranks, total, *_)], of_ranges, by_step, apart, bandwidth, by_pass, pageable, bins = found
    assert {(*row[:1], *row[2:4]) for row in totals} == {
        (bucket, elements, size) for bucket, _, elements, size in grouped(calls, lambda c: (c["bucket"],), "elements", "bytes")
    }
    assert [row[3] for row in totals] == sorted((row[3] for row in totals), reverse=True)
    assert (count, ranks) == (len(gathers) - 2 * 5, 2) and 0 < total < sum(gathers)
    assert of_ranges == [(r, len(ns), sum(ns), statistics.fmean(ns), min(ns), max(ns)) for r, ns in sorted(forward.items())]
    steps = grouped(calls, lambda c: (c["step"], c["rank"]) if c["step"] else None, "bytes")
    assert by_step == sorted((step, rank, size) for step, rank, _, size in steps)
    assert len(apart) == 20 and apart == sorted(apart, key=lambda row: (-row[4], row[:2]))
    for *group, made, ns in apart:
        began = together[tuple(group)]
        assert (made, ns) == (len(began), max(began) - min(began))
    rates = grouped((c for c in calls if c["device_ns"]), lambda c: (c["function"], c["bytes"]), "device_ns")
    assert bandwidth == [(f, size, n, pytest.approx(size * n / ns)) for f, size, n, ns in sorted(rates)]
    autograd = lambda c: names[c["process"], c["thread"]].startswith("pt_autograd_")  # noqa: E731
    assert set(by_pass) == grouped(calls, lambda c: (autograd(c), c["function"]), "bytes")
    assert {row[0] for row in by_pass} == {0, 1}
    assert set(pageable) == grouped(calls, lambda c: (c["rank"], c["bucket"]) if c["bucket"] == "H2D" else None, "bytes")
    assert dict(bins) == {1 << bits: n for bits, n in collections.Counter(ns.bit_length() - 1 for ns in gathers).items()}
