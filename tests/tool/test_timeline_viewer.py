"""A merged trace in Catapult, the viewer of chrome://tracing: what its own model has of it."""

import collections
import os

import pytest
from generator import causes, rank_files
from lib import catapult
from lib.chromium import CHROMIUM
from lib.rankfile import parsed
from lib.timeline import Merged
from lib.tool import tprof

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium in PATH (apt-get install chromium)"),
    pytest.mark.skipif(
        catapult.page() is None and not os.environ.get("CI"),
        reason="torch_tb_profiler, which has Catapult, is not installed (scripts/bootstrap test does it)",
    ),
]

RANKS, STEPS = 4, 3
OF_PROCESSES = """Object.values(model.processes).map((p) => ({
  pid: p.pid, name: p.name, index: p.sortIndex,
  lanes: Object.values(p.threads).map((t) => ({
    name: t.name, index: t.sortIndex,
    slices: t.sliceGroup.slices.map((s) => [s.title, s.category, s.start, s.duration, s.colorId]),
  })),
  counters: Object.values(p.counters).map((c) => ({
    name: c.name, series: c.series.map((s) => s.name), samples: c.series[0].samples.length })),
}))"""
OF_ARROWS = """model.flowEvents.map((f) => [f.title, f.id, f.start, f.start + f.duration,
  f.startSlice && [f.startSlice.parentContainer.parent.pid, f.startSlice.title, f.startSlice.start, f.startSlice.end],
  f.endSlice && [f.endSlice.parentContainer.parent.pid, f.endSlice.title, f.endSlice.start, f.endSlice.end]])"""


@pytest.fixture(scope="module", params=["fsdp", "pipeline"])
def seen(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    rank_files.write(causes.case(request.param, RANKS, None, 1, STEPS), folder / "job", 1)
    done = tprof("merge", folder / "job", "-o", folder / "merged.json")
    assert done.returncode == 0, done.stderr
    with catapult.shown(folder / "merged.json", folder) as viewer:
        processes, arrows = viewer.value(OF_PROCESSES), viewer.value(OF_ARROWS)
    return Merged(parsed(folder / "merged.json")), processes, arrows


def test_it_shows_a_process_for_each_rank_in_their_order(seen):
    _, processes, _ = seen
    ranks = sorted((p for p in processes), key=lambda p: p["index"])
    assert [p["pid"] for p in ranks] == list(range(RANKS))
    assert [p["name"] for p in ranks] == [f"rank {rank} on node000" for rank in range(RANKS)]


def test_it_shows_every_slice_on_named_lanes(seen):
    trace, processes, _ = seen
    for process in processes:
        lanes = {lane.get("name"): lane for lane in process["lanes"]}
        steps, exposed = lanes["steps"], lanes["exposed communication"]
        assert [s[0] for s in steps["slices"]] == [f"step {n}" for n in range(STEPS)]
        assert steps["index"] < exposed["index"] < 0 and exposed["slices"]
        shown = sorted(s[0] for lane in process["lanes"] for s in lane["slices"])
        assert shown == sorted(x["name"] for x in trace.lines if x["ph"] == "X" and x["pid"] == process["pid"])
        assert {"python", "pt_autograd_0"} & lanes.keys()


def test_it_knows_the_colors(seen):
    """It has none of its own for a name that it does not know: it takes one by the slice's title."""
    trace, processes, _ = seen
    colors = collections.defaultdict(set)
    for process in processes:
        for lane in process["lanes"]:
            for _, category, _, _, color in lane["slices"]:
                colors[category].add(color)
    buckets = {call["cat"] for call in trace.calls()}
    assert all(len(colors[bucket]) == 1 for bucket in buckets)
    assert len(set.union(*(colors[bucket] for bucket in buckets))) == len(buckets) >= 3


def test_it_draws_every_arrow_from_slice_to_slice_forwards_in_time(seen):
    trace, _, arrows = seen
    expected = sum(len(ends) - 1 for kind in ("collective", "message") for ends in trace.arrows(kind).values())
    between = [arrow for arrow in arrows if arrow[0] != "to the device"]
    assert len(between) == expected > 50
    assert len(arrows) - expected == len(trace.of("DEVICE"))
    for title, _, begin, end, from_slice, to_slice in arrows:
        assert from_slice and to_slice and begin <= end
        for at, (_, name, start, stop) in ((begin, from_slice), (end, to_slice)):
            assert start <= at <= stop, (title, name)
        if title == "collective":
            assert from_slice[0] != to_slice[0] and from_slice[1] == to_slice[1]
        if title == "message":
            assert (from_slice[1].split()[0], to_slice[1].split()[0]) == ("Send", "Recv")


def test_it_shows_rates_of_each_bucket(seen):
    trace, processes, _ = seen
    for process in processes:
        [rates] = [counter for counter in process["counters"] if counter["name"].endswith("bytes/s")]
        lines = [line for line in trace.of("LANE") if line["ph"] == "C" and line["pid"] == process["pid"]]
        assert rates["series"] == list(lines[0]["args"]) and rates["samples"] == len(lines)
