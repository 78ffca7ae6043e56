"""The queries of tprof export's page give what the same sums over the lines give."""

import collections
import dataclasses
import json
import re
import statistics

import pytest
from lib import jobs, loops
from lib.clocks import nanoseconds
from lib.rankfile import lines_of, parsed
from test_export import PAGE, call_of, events_of, export
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
        rank.ops = [dataclasses.replace(op, autograd=op.function == "ncclReduceScatter") for op in rank.ops]
    made.job.write(folder / "run")
    for rank, file in enumerate(sorted((folder / "run").iterdir())):
        lines = []
        for line in lines_of(file):
            line = line.replace('"bucket":"H2D",', '"bucket":"H2D","host_memory":"pageable",')
            line = line.replace('"dur":5.000', f'"dur":{1 + len(lines) % 7 ** 2}.000')
            lines.append(line)
            event = json.loads(line)
            if event["ph"] == "X" and "seq" in event["args"]:
                number = {key: event["args"][key] for key in ("comm", "seq")}
                args = number | {"stream": 1, "call_tid": event["tid"]}
                timed = {"cat": "DEVICE", "name": event["name"], "ph": "X", "pid": rank, "tid": 8388609}
                timed |= {"ts": event["ts"] + 1, "dur": 3 + number["seq"] % 5, "args": args | {"queued": 1}}
                lines.append(json.dumps(timed, separators=(",", ":")))
        first = next(i for i, line in enumerate(lines) if '"cat":' in line)
        for n, at in enumerate(made.steps):
            of_rank = pushed("forward", at * jobs.STEP_NS / 1000, 10 + n + rank) | {"pid": rank}
            lines.insert(first, json.dumps(of_rank, separators=(",", ":")))
        file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return folder / "run", export(folder / "run", folder / "run.db"), made.steps


def test_queries_of_the_page_run(loop):
    """Each query gives what the same sums over the lines give."""
    folder, db, steps = loop
    calls, groups, times = [], collections.defaultdict(list), {}
    ranges, threads, ids, bases = collections.defaultdict(list), {}, {}, {}
    for rank, file in enumerate(sorted(folder.iterdir())):
        for line in parsed(file):
            if line["name"] == "thread_name":
                threads[rank, line["tid"]] = line["args"]["name"]
            elif line["name"] == "tprof_comm":
                ids[rank, line["args"]["comm"]] = line["args"]["id"]
            elif line["name"] == "tprof_header":
                bases[rank] = line["args"]["base_time_ns"]
            elif line["name"] == "forward":
                ranges[rank].append(round(line["dur"] * 1000))
            elif line.get("cat") == "DEVICE":
                times[rank, line["args"]["comm"], line["args"]["seq"]] = round(line["dur"] * 1000)
        for event in events_of(file):
            call = call_of(event, rank) | {"at": nanoseconds(event["ts"])}
            calls.append(call)
            if call["seq"] is not None and call["bucket"] != "P2P":
                groups[ids[rank, call["comm"]], call["seq"], call["function"]].append(bases[rank] + call["at"])

    def summed(key, *values):
        sums = collections.defaultdict(lambda: [0] * (1 + len(values)))
        for call in calls:
            if (group := key(call)) is not None:
                for i, n in enumerate((1, *(call[value] for value in values))):
                    sums[group][i] += n
        return {(*group, *total) for group, total in sums.items()}

    def step(call):
        return sum(begun <= (call["at"] + jobs.STEP_NS // 2) // jobs.STEP_NS for begun in steps)

    gathers = collections.Counter(c["host_ns"].bit_length() - 1 for c in calls if c["function"] == "ncclAllGather")
    timed = collections.defaultdict(lambda: [0, 0])
    for call in calls:
        if (ns := times.get((call["rank"], call["comm"], call["seq"]))) is not None:
            timed[call["function"], call["bytes"]][0] += 1
            timed[call["function"], call["bytes"]][1] += ns
    found = [[tuple(row) for row in db.execute(query)] for query in QUERIES]
    assert [bool(of_query) for of_query in found] == [True] * 9
    totals, _, forward, by_step, apart, bandwidth, by_pass, pageable, bins = found
    # The ledger's own time is 5 us a call.
    of_buckets = summed(lambda call: (call["bucket"],), "elements", "bytes")
    assert {row[:4]: row[4] / row[1] for row in totals} == dict.fromkeys(of_buckets, 5000)
    assert [row[3] for row in totals] == sorted((row[3] for row in totals), reverse=True)
    assert forward == [(r, len(ns), sum(ns), statistics.fmean(ns), min(ns), max(ns)) for r, ns in sorted(ranges.items())]
    assert {row[:2]: row[2] for row in by_step} == {
        (s, r): total for s, r, _, total in summed(lambda c: (step(c), c["rank"]) if step(c) else None, "bytes")
    }
    assert len(apart) == 20
    for *group, ranks, ns in apart:
        began = groups[tuple(group)]
        assert (ranks, ns) == (len(began), max(began) - min(began))
    assert [row[:3] for row in bandwidth] == [(*key, n) for key, (n, _) in sorted(timed.items())]
    assert [row[3] for row in bandwidth] == pytest.approx([k[1] * n / ns for k, (n, ns) in sorted(timed.items())])
    names = {key: name.startswith("pt_autograd_") for key, name in threads.items()}
    backward = summed(lambda c: (names[c["rank"], c["thread"]], c["function"]), "bytes")
    assert set(by_pass) == backward and {row[0] for row in by_pass} == {0, 1}
    assert set(pageable) == summed(lambda c: (c["rank"], c["bucket"]) if c["bucket"] == "H2D" else None, "bytes")
    assert dict(bins) == {1 << bits: n for bits, n in gathers.items()}
