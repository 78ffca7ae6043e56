"""Copies that no random program makes (test_random_calls.py): their host memory, batches and what is not counted of them."""

import collections
import re
import sys

import pytest
from lib.build import BUILD
from lib.launch import start
from lib.tool import told, tprof


@pytest.fixture(scope="module", params=["on", "all", "off"])
def copies(request, tmp_path_factory):
    """Runs with event lines, with those of all copies, and with none."""
    folder = tmp_path_factory.mktemp("copies") / "run"
    run = start([str(BUILD / "copies")], folder, TPROF_EVENTS=request.param)
    assert (run.code, run.stdout, run.stderr) == (0, "", "")
    file = run.only_rank()
    tally = run.only_tally()
    return request.param, file, tally


def test_batch_is_one_call(copies):
    """There are batches of all five directions, one of two copies, and a refused one."""
    _, file, _ = copies
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for row in file.ledger_rows():
        if row["name"].startswith("cudaMemcpyBatchAsync"):
            for place, figure in enumerate(("calls", "bytes", "failed")):
                rows[row["bucket"]][place] += row[figure]
    assert dict(rows) == {
        "H2D": [2, 100 + 300, 1],
        "D2D": [1, 300, 0],
        "D2H": [1, 400, 0],
        "MANAGED": [1, 500, 0],
        "H2H": [1, 600, 0],
    }


def by_memory(rows, memory, name, direction, figures):
    """Returns the figures of direct calls between host and device, by direction, function and host memory."""
    sums = collections.Counter()
    for row in rows:
        if row["mode"] != "direct" or row[direction] not in ("H2D", "D2H"):
            continue
        plain = re.sub(r"_pt(ds|sz)$", "", row[name])
        for figure, ours in figures.items():
            sums[row[direction], plain, row.get(memory), figure] += row[ours]
    return +sums


def test_host_memory_of_the_ledger_is_that_of_the_tally(copies):
    """The driver is asked about memory that no wrapper allocated, as the call is made."""
    _, file, tally = copies
    ours = by_memory(
        file.ledger_rows(), "host_memory", "name", "bucket", {"calls": "calls", "bytes": "bytes", "failed": "failed"}
    )
    theirs = by_memory(
        tally["rows"], "memory", "function", "kind", {"calls": "returned", "bytes": "bytes", "failed": "failed"}
    )
    assert ours == theirs
    # None stands for batches of pinned and of pageable memory.
    assert {key[2] for key in theirs} == {"pageable", "pinned", "managed", None}


def test_lines_and_summary_tell_the_host_memory_of_the_ledger(copies):
    events, file, _ = copies
    rows = [row for row in file.ledger_rows() if row["bucket"] in ("H2D", "D2H")]
    if events != "off":
        lines = collections.Counter(
            (event["cat"], event["args"].get("host_memory"))
            for event in file.events
            if event["cat"] in ("H2D", "D2H") and "result" not in event["args"]
        )
        ledger = collections.Counter()
        for row in rows:
            ledger[row["bucket"], row.get("host_memory")] += row["calls"] * (row["mode"] != "replayed")
        assert lines == +ledger
    told_bytes = {
        (bucket, kind): figures["bytes"]
        for bucket, kinds in told("summary", file.path)[1]["host_memory"].items()
        for kind, figures in kinds.items()
        if figures["bytes"]
    }
    ledger_bytes = collections.Counter()
    for row in rows:
        executed = row["mode"] != "captured" and row["calls"] != 0
        ledger_bytes[row["bucket"], row.get("host_memory", "unknown")] += row["bytes"] * executed
    assert told_bytes == {key: size for key, size in ledger_bytes.items() if size}


CALL = """
import ctypes, sys
ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL), ctypes.CDLL("libcudart.so.13", ctypes.RTLD_GLOBAL)
loaded = ctypes.CDLL(None)
assert not any(getattr(loaded, name)(*range(9)) for name in sys.argv[1:])
"""


@pytest.mark.parametrize("library", ["cudart", "cuda"])
def test_calls_that_only_pass_are_named_each(library, tmp_path):
    moves = re.compile(r"cu(da)?(Mem(cpy|Prefetch|Discard)|Fabric|Graph.*(SetParams|SetEnabled|DestroyNode))")
    elsewhere = re.compile("cuFabric|cudaMemPrefetchAsync_v2|.*WithAttributes")  # in other versions
    wrapped = [f for f in told("coverage")[1]["functions"] if f["library"] == library and not f["buckets"]]
    names = [f["name"] for f in wrapped if moves.match(f["name"]) and not elsewhere.match(f["name"])]
    assert len(names) > 30
    run = start([sys.executable, "-c", CALL, *names], tmp_path / "run", TPROF_DRIVER="1")
    assert (run.code, run.stderr) == (0, "")
    file = run.only_rank()
    assert file.ledger_rows() == []
    unseen = file.footer["coverage"]["unseen"]
    kinds = {entry["path"]: entry["kind"] for entry in unseen if entry["kind"] != "uncalled_cudart"}
    assert kinds == {n: "graph_edited" if "Graph" in n else "uncounted" for n in names}
    summary = tprof("summary", file.path).stdout
    assert [n for n in names if n not in summary] == []


def test_what_is_not_counted_of_batches_and_arrays_is_said(tmp_path):
    run = start([BUILD / "copies", "array"], tmp_path / "run")
    assert (run.code, run.stderr) == (0, "")
    file = run.only_rank()
    assert [(row["name"], row["calls"], row["bytes"]) for row in file.ledger_rows()] == [("cudaMemcpy3D", 1, 0)]
    assert file.footer["coverage"]["unseen"] == [
        {"path": path, "kind": "uncounted"} for path in ("cudaMemcpyBatchAsync", "cudaArray_t")
    ]
