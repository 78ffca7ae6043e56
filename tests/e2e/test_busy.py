"""Compares the lines of when devices computed (BUSY) with the stand-in's own schedule of its kernels
(lib/device_truth.py)."""

import json
import signal

import pytest
from lib import device_truth
from lib.build import BUILD
from lib.contract import SCHEMA
from lib.exposed_truth import play
from lib.launch import start
from lib.rankfile import RankFile, parsed
from lib.spans import covered, union
from lib.tool import tprof

pytestmark = pytest.mark.timed

# Shapes in which the host is far ahead of the device, on one stream or several, on one device or two.
SHAPES = (
    "partly_hidden", "many_waits", "fsdp2", "two_devices", "graphs", "short_kernels", "tensor_parallel_beside",
    "driver_launches", "per_thread", "default_stream", "streams_remade",
)  # fmt: skip
# Gaps up to this count as computation. An event is at most as late.
GAP_NS = 10_000

Spans = list[tuple[int, int]]  # ns, in order


def told(file: RankFile) -> dict[int, list[tuple[int, int, bool]]]:
    """Returns device -> (begin, end, whether it is unsure) of its lines, on CLOCK_MONOTONIC."""
    found: dict[int, list] = {}
    base = file.header["monotonic_ns"]
    for line in file.lines:
        if line.get("cat") != "BUSY":
            continue
        device = line["args"]["device"]
        assert line["tid"] == 3 * 2**22 + device
        begin = base + round(line["ts"] * 1000)
        found.setdefault(device, []).append((begin, begin + round(line["dur"] * 1000), "unsure" in line["args"]))
    return found


def truth_of(folder, file: RankFile) -> dict[int, Spans]:
    ran = device_truth.ran_of(folder, file)
    found = {device: device_truth.computation(ran, device) for device in {work.device for work in ran}}
    return {device: spans for device, spans in found.items() if spans}


def stopped_ns(folder, file: RankFile) -> int:
    """Returns for how long the machine had no core for the process. Work that ends meanwhile does so in time by the
    stand-in's schedule, but nobody who asks then sees it before the stand-in itself has had a core. No shape and no
    ending does nothing for so long."""
    ran = device_truth.ran_of(folder, file)
    moments = sorted(moment for work in ran for moment in (work.reached, work.began, work.ended))
    gaps = [after - before for before, after in zip(moments, moments[1:])]
    return sum(gap for gap in gaps if gap > 40_000_000)


def length(spans: Spans) -> int:
    return sum(end - begin for begin, end in spans)


def common(some: Spans, others: Spans) -> int:
    return sum(covered(a, b, others) for a, b in some)


def cut(spans: Spans, begin: int, end: int) -> Spans:
    return [(max(a, begin), min(b, end)) for a, b in spans if a < end and b > begin]


def compared(lines, truth: Spans) -> tuple[int, int, int]:
    """Returns how long a device computed, as its lines say, wrongly; did so while they say that it was idle; and
    may have done so. That is within the time that they tell of, from the first one on to the end of the last."""
    assert all(one[1] <= other[0] for one, other in zip(lines, lines[1:]))  # in order, without an overlap
    truth = cut(truth, lines[0][0], lines[-1][1])
    sure = [(a, b) for a, b, unsure in lines if not unsure]
    every = union([(a, b) for a, b, _ in lines])
    unsure_ns = sum(b - a for a, b, unsure in lines if unsure)
    return length(sure) - common(sure, truth), length(truth) - common(truth, every), unsure_ns


def check(folder, file: RankFile, lines, truth: Spans, within: Spans | None = None) -> int:
    """The page promises a twentieth of a call's time, and 0.2 ms. Returns how long nobody knows."""
    wrong, missed, unsure = compared(lines, truth)
    spans = truth if within is None else within
    chance = length(spans) / 20 + GAP_NS * len(spans)
    assert wrong - stopped_ns(folder, file) <= chance + 200_000
    assert missed <= chance
    return unsure


@pytest.mark.parametrize("shape", SHAPES)
def test_lines_say_when_kernels_ran(shape, tmp_path):
    for file in play(tmp_path, shape, "device_synchronize").ranks():
        lines, truth = told(file), truth_of(tmp_path, file)
        assert lines.keys() == truth.keys()
        for device, spans in truth.items():
            unsure, busy = check(tmp_path, file, lines[device], spans), length(spans)
            begin, end = lines[device][0][0], lines[device][-1][1]
            # A host without a core comes late.
            assert unsure <= (end - begin) / 3 + 1_000_000
            # Nothing but a copy before the first kernel of its stream, and what is behind the last one, is left out.
            assert busy - length(cut(spans, begin, end)) <= busy / 20 + 200_000


@pytest.mark.parametrize("ending", ["nothing", "item", "idle_host"])
def test_where_nobody_knows_no_line_says_anything_else(ending, tmp_path):
    """The host is late with some launches and away between steps: a stream runs dry at unknown times."""
    for file in play(tmp_path, "partly_hidden", ending, STANDIN_SLOW_LAUNCH="2000:7").ranks():
        (lines,), (truth,) = told(file).values(), truth_of(tmp_path, file).values()
        # Ahead of the device the host is late with nothing.
        assert check(tmp_path, file, lines, truth) > 0 or ending != "idle_host"


@pytest.mark.parametrize("shape", ["light_second_stream", "short_kernels", "two_devices", "graphs"])
def test_by_cupti_lines_are_exactly_the_kernels(shape, tmp_path):
    """But for gaps that are too short, pieces of what goes on, and the last second, which CUPTI may not have told."""
    for file in play(tmp_path, shape, "device_synchronize", "cupti").ranks():
        truth = truth_of(tmp_path, file)
        ran = device_truth.ran_of(tmp_path, file)
        assert told(file).keys() == truth.keys()
        for device, lines in told(file).items():
            kernels = [w for w in ran if w.device == device and w.what in ("kernel", "graph")]
            expected = joined(union([(w.began, w.ended) for w in kernels]), GAP_NS)
            found = joined([(a, b) for a, b, unsure in lines if not unsure], GAP_NS)
            assert len(found) == len(expected)
            for one, other in zip(found, expected):
                assert one == pytest.approx(other, abs=3000)  # the error of CUPTI's clock
            assert all(begin >= expected[-1][1] - 3000 for begin, _, unsure in lines if unsure)


def joined(spans: Spans, gap: int) -> Spans:
    found: Spans = []
    for begin, end in spans:
        if found and begin - found[-1][1] <= gap:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


@pytest.mark.parametrize("timing", ["host", "events", "cupti"])
def test_a_job_without_kernels_has_no_line(timing, tmp_path):
    run = start([BUILD / "native_trainer", "--ranks", 2, "--steps", 3], tmp_path, TPROF_TIMING=timing)
    assert run.code == 0, run.stderr
    assert [told(file) for file in run.ranks()] == [{}, {}]


def test_lines_are_in_windows_only_and_true_there(tmp_path):
    run = play(
        tmp_path, "partly_hidden", "device_synchronize", TPROF_STEP="call:ncclAllGather",
        TPROF_SCHEDULE="wait=2,warmup=1,active=4,repeat=2",
    )  # fmt: skip
    (file,) = run.ranks()
    (lines,), (truth,) = told(file).values(), truth_of(tmp_path, file).values()
    base = file.header["monotonic_ns"]
    windows = [line["args"] for line in file.lines if line["name"] == "tprof_window"]
    assert len(windows) == 2
    inside = 0
    for window in windows:
        begin = base + round(window["ts"] * 1000)
        end = begin + round(window["dur"] * 1000)
        here = [line for line in lines if begin <= line[0] and line[1] <= end]
        inside += len(here)
        if here:  # else the writer saw the steps of a short window too late
            check(tmp_path, file, here, truth, cut(truth, begin, end))
    assert 0 < inside == len(lines)


def test_a_kill_loses_no_line_that_was_known(tmp_path):
    run = play(
        tmp_path, "many_waits", "item", code=-signal.SIGKILL, steps=100, STANDIN_DIE="0:ncclAllGather:1500"
    )  # fmt: skip
    assert tprof("recover", run.traces).returncode == 0
    (file,) = run.ranks()
    (lines,), (truth,) = told(file).values(), truth_of(tmp_path, file).values()
    check(tmp_path, file, lines, truth)
    # A kill loses what the timing thread had not read yet: a fifth of a second, and the interval that went on.
    assert lines[-1][1] >= truth[-1][1] - 1_000_000_000


def test_merge_and_anonymize_keep_the_lines_and_their_lane(tmp_path):
    run = play(tmp_path, "two_devices", "device_synchronize")
    (file,) = run.ranks()
    expected = {device: len(lines) for device, lines in told(file).items()}
    assert expected.keys() == {0, 1}
    merged, public = tmp_path / "merged.json", tmp_path / "public"
    assert tprof("merge", "--positions", run.traces, "-o", merged).returncode == 0
    assert tprof("anonymize", run.traces, "-o", public).returncode == 0
    for lines in (json.loads(merged.read_text()), *map(parsed, public.glob("*.json"))):
        found = [line for line in lines if line.get("cat") == "BUSY"]
        assert [error.message for line in found for error in SCHEMA.iter_errors(line)] == []
        for device, count in expected.items():
            lane = 3 * 2**22 + device
            assert [line["tid"] for line in found].count(lane) == count
            names = [line for line in lines if line["name"] == "thread_name" and line["tid"] == lane]
            assert len(names) == 1
    assert {line["args"]["name"] for line in json.loads(merged.read_text()) if line["name"] == "thread_name"} >= {
        "compute, device 0", "compute, device 1",
    }  # fmt: skip


@pytest.mark.parametrize("shape", ["ddp_copies", "ddp", "d2h_awaited", "copy_in_group", "evaluation"])
def test_copies_say_that_their_stream_computes(shape, tmp_path):
    for file in play(tmp_path, shape, "device_synchronize").ranks():
        ran = device_truth.ran_of(tmp_path, file)
        begun: dict[tuple, int] = {}  # when the first kernel came to a stream
        for work in ran:
            if work.what in ("kernel", "graph") and not work.in_graph:
                stream = (work.device, work.stream)
                begun[stream] = min(work.reached, begun.get(stream, work.reached))
        copies = [work for work in ran if device_truth.is_copy(work) and not work.in_graph]
        computing = [w for w in copies if begun.get((w.device, w.stream), w.reached) < w.reached]
        lines = [line for line in file.lines if line.get("cat") == "DEVICE" and "device" in line["args"]]
        assert len(lines) == len(copies) > 0
        assert sum("computes" in line["args"] for line in lines) == len(computing)
