"""Holds what tprof merge adds for viewers against the job that was simulated, and against the rank files."""

import collections
import itertools
import json
import os

import pytest
from generator import causes, rank_files, scale
from generator.operations import Collective
from lib import handmade, tool
from lib.spans import union
from lib.timeline import Merged, merged, name_of, ns
from lib.tool import tprof

LAYOUTS = {"fsdp": 8, "pipeline": 4, "zero3_offload": 4, "moe": 4}


def merge(folder, to, *options: str) -> Merged:
    done = tprof("merge", folder, "-o", to, *options)
    assert done.returncode == 0, done.stderr
    return merged(to)


class Job:
    def __init__(self, folder, layout: str, cause: str | None = None):
        self.folder, self.file = folder / "job", folder / "merged.json"
        self.case = causes.case(layout, LAYOUTS[layout], cause, 1, 4)
        rank_files.write(self.case, self.folder, 1)
        self.trace = merge(self.folder, self.file)


@pytest.fixture(scope="module", params=LAYOUTS)
def job(request, tmp_path_factory):
    return Job(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def fsdp(tmp_path_factory):
    return Job(tmp_path_factory.mktemp("fsdp"), "fsdp")


def test_names_say_function_and_size(job):
    calls = job.trace.calls()
    assert len(calls) == sum(len(trace.calls) for trace in job.case.traces.values())
    sizes = {}
    for call in calls:
        args = call["args"]
        assert call["name"] == name_of(args["op"], call["cat"], args["bytes"])
        sizes[call["pid"], call["tid"], ns(call["ts"])] = (args["op"], call["cat"], args["bytes"], call["cname"])
    times = job.trace.of("DEVICE")
    assert times
    for time in times:
        args = time["args"]
        op, bucket, size, color = sizes[time["pid"], args["call_tid"], ns(time["ts"]) - ns(args["queued"])]
        assert (time["name"], args["op"], time["cname"]) == (name_of(op, bucket, size), op, color)


def assert_within_slices(trace: Merged, ends: list[dict]) -> None:
    slices = trace.slices()
    for end in ends:
        at, name = ns(end["ts"]), end["name"]
        around = [s for b, e, s in slices[end["pid"], end["tid"]] if b <= at <= e]
        assert around, end
        assert name != "collective" or any("seq" in s["args"] for s in around), end


def assert_goes_in_order(ends: list[dict]) -> None:
    """As viewers need it: they take what comes in the order of time."""
    assert [end["ph"] for end in ends] == ["s"] + ["t"] * (len(ends) - 2) + ["f"]


def test_arrows_join_the_ranks_of_each_collective_as_they_came(job):
    """The job says when each rank truly came. Ranks of one host have one clock."""
    came = collections.defaultdict(dict)
    for rank, trace in job.case.traces.items():
        for call in trace.calls:
            if isinstance(call.op, Collective) and call.op.peer is None:
                came[call.op.comm, call.seq][rank] = call.device_begin
    expected = collections.Counter(
        tuple(sorted(ranks, key=lambda rank: (ranks[rank], rank))) for ranks in came.values() if len(ranks) > 1
    )
    arrows = job.trace.arrows("collective")
    assert collections.Counter(tuple(end["pid"] for end in ends) for ends in arrows.values()) == expected
    assert sum(expected.values()) > 0 or job.case.loop.shape == "pipeline"
    for ends in arrows.values():
        assert_goes_in_order(ends)
    assert_within_slices(job.trace, list(itertools.chain(*arrows.values())))


def test_arrows_go_from_a_send_to_its_receive(tmp_path):
    job = Job(tmp_path, "pipeline")
    sent, received = collections.Counter(), collections.Counter()
    for rank, trace in job.case.traces.items():
        for call in trace.calls:
            if isinstance(call.op, Collective) and call.op.function in ("ncclSend", "ncclRecv"):
                peer = job.case.comms[call.op.comm][call.op.peer]
                ends = (rank, peer) if call.op.function == "ncclSend" else (peer, rank)
                (sent if call.op.function == "ncclSend" else received)[ends] += 1
    assert sent == received and sum(sent.values()) > 20
    arrows = job.trace.arrows("message")
    assert collections.Counter(tuple(end["pid"] for end in ends) for ends in arrows.values()) == sent
    for ends in arrows.values():
        assert_goes_in_order(ends)
    assert_within_slices(job.trace, list(itertools.chain(*arrows.values())))


def test_without_device_times_arrows_join_the_calls_of_hosts(tmp_path):
    tool.generate(tmp_path / "run", 3, 200)
    trace = merge(tmp_path / "run", tmp_path / "m.json")
    seqs = collections.Counter(
        call["args"]["seq"] for call in trace.calls() if "comm" in call["args"] and call["cat"] != "P2P"
    )
    arrows = trace.arrows("collective")
    assert len(arrows) == sum(count == 3 for count in seqs.values()) > 20
    for ends in arrows.values():
        assert_goes_in_order(ends)
        assert {end["pid"] for end in ends} == {0, 1, 2}
    assert_within_slices(trace, list(itertools.chain(*arrows.values())))


@pytest.mark.parametrize("ranks", ["0", "0,3"])
def test_arrows_join_written_ranks_alone(fsdp, tmp_path, ranks):
    trace = merge(fsdp.folder, tmp_path / "m.json", "--ranks", ranks)
    arrows = trace.arrows("collective")
    assert bool(arrows) == ("," in ranks)
    for ends in arrows.values():
        assert [end["ph"] for end in ends] == ["s", "f"]
        assert {end["pid"] for end in ends} == {0, 3}


def test_the_lane_of_steps_has_those_of_the_job(job):
    found = tool.summary_of(job.folder, "--by", "step")["steps"]
    lanes = job.trace.lane("steps")
    assert lanes.keys() == job.case.traces.keys()
    base = next(line for line in job.trace.lines if line["name"] == "tprof_header")["args"]["base_time_ns"]
    for rank, trace in job.case.traces.items():
        assert [line["name"] for line in lanes[rank]] == [f"step {step['step']}" for step in found]
        marks = [mark.begin for mark in trace.steps] + [trace.end]
        for line, begin, end in zip(lanes[rank], marks, marks[1:]):
            assert ns(line["dur"]) == pytest.approx(end - begin, rel=1e-4)
    for step, slices in zip(found, zip(*lanes.values())):
        assert base + min(ns(line["ts"]) for line in slices) == step["ts"]


def test_the_lane_of_exposed_time_is_communication_without_computation(job):
    lanes = job.trace.lane("exposed communication")
    for rank, trace in job.case.traces.items():
        busy = trace.computing()
        ran = union([
            (call.device_begin, call.device_end)
            for call in trace.calls
            if isinstance(call.op, Collective) and call.device_end is not None
        ])  # fmt: skip
        # Time that both have is hidden; before the first kernel nobody followed the device.
        ran = [(max(b, busy[0][0]), e) for b, e in ran if e > busy[0][0]]
        both = sum(max(0, min(e, to) - max(b, at)) for b, e in ran for at, to in busy)
        exposed = sum(e - b for b, e in ran) - both
        # Clocks drift by some 1e-5, and each end is rounded.
        assert sum(ns(line["dur"]) for line in lanes[rank]) == pytest.approx(exposed, rel=1e-4, abs=500)
        assert exposed > 0


def test_rates_add_up_to_the_bytes_of_the_calls(job):
    bytes_of = collections.Counter()
    for call in job.trace.calls():
        bytes_of[call["pid"], call["cat"]] += call["args"]["bytes"]
    titles = {"ALLGATHER": "AllGather", "RESHARDING": "ReduceScatter", "ALLREDUCE": "AllReduce",
              "ALLTOALL": "AlltoAll"}  # fmt: skip
    rates = collections.defaultdict(list)
    for line in job.trace.of("LANE"):
        if line["ph"] == "C":
            rates[line["pid"]].append((ns(line["ts"]), line["args"]))
    moments = sorted({at for of in rates.values() for at, _ in of})
    assert all(at % 1_000_000 == 0 for at in moments) and moments[-1] / 1e6 <= 1000
    sums = collections.Counter()
    for rank, of in rates.items():
        assert all(rate == 0 for rate in of[-1][1].values())
        for (at, values), (until, _) in itertools.pairwise(of):
            for bucket, rate in values.items():
                sums[rank, bucket] += rate * (until - at) / 1e9
    expected = {(rank, titles.get(bucket, bucket)): size for (rank, bucket), size in bytes_of.items()}
    assert {key: round(size) for key, size in sums.items()} == expected


def without_figures_of_files(text: str) -> dict:
    return {key: value for key, value in json.loads(text).items() if key not in ("files", "path", "paths")}


@pytest.mark.parametrize("cause", [None, "slow_gpu", "divergence"])
@pytest.mark.parametrize("layout", ["fsdp", "moe"])
def test_every_command_says_of_the_merged_trace_what_it_says_of_the_files(tmp_path, layout, cause):
    job = Job(tmp_path, layout, cause)
    # Not what compares clocks: those of one host agree in rank files, in a merged trace to a microsecond.
    commands = [["summary", "--by", by] for by in ("op", "comm", "size", "step", "layer", "phase")]
    for command in [*commands, ["check"]]:
        told = [tprof(command[0], path, *command[1:], "--json") for path in (job.folder, job.file)]
        assert told[0].stdout and told[0].returncode == told[1].returncode
        assert without_figures_of_files(told[0].stdout) == without_figures_of_files(told[1].stdout)
    verdicts = [tool.told("report", path)[1]["verdict"] for path in (job.folder, job.file)]
    assert verdicts[0] == verdicts[1]
    assert tprof("diff", job.folder, job.file).returncode == 0


def test_the_bytes_do_not_depend_on_the_number_of_processors(tmp_path):
    scale.write(tmp_path / "run", 6, 9000, slow=True)
    cpu = min(os.sched_getaffinity(0))
    files = [tmp_path / "all.json", tmp_path / "one.json"]
    assert tprof("merge", tmp_path / "run", "-o", files[0]).returncode == 0
    alone = {"preexec_fn": lambda: os.sched_setaffinity(0, {cpu})}
    assert tprof("merge", tmp_path / "run", "-o", files[1], **alone).returncode == 0
    assert files[0].read_bytes() == files[1].read_bytes()


def test_arrows_between_ranks_are_left_out_where_there_is_no_room(fsdp, tmp_path):
    size = sum(file.stat().st_size for file in fsdp.folder.glob("*.json"))
    done = tprof("merge", fsdp.folder, "-o", tmp_path / "m.json", "--max-size", size + 1000)
    assert done.returncode == 0 and "no arrows between ranks" in done.stderr
    trace = merged(tmp_path / "m.json")
    assert not trace.arrows("collective") and len(trace.arrows("to the device")) == len(trace.of("DEVICE"))
    assert [call["name"] for call in trace.calls()] == [call["name"] for call in fsdp.trace.calls()]
    roomy = tprof("merge", fsdp.folder, "-o", tmp_path / "n.json", "--max-size", 3 * size)
    assert "no arrows" not in roomy.stderr
    assert (tmp_path / "n.json").read_bytes() == fsdp.file.read_bytes()


def test_a_copy_for_others_keeps_what_viewers_show(fsdp, tmp_path):
    assert tprof("anonymize", fsdp.file, "-o", tmp_path / "public").returncode == 0
    [copy] = (tmp_path / "public").iterdir()
    public = merged(copy)
    shown = [
        [(line["name"], line["cname"], line["ts"]) for line in trace.calls() + trace.of("DEVICE")]
        for trace in (fsdp.trace, public)
    ]
    assert shown[0] == shown[1]
    assert public.of("LANE") == fsdp.trace.of("LANE")
    assert [len(ends) for ends in public.arrows("collective").values()] == [
        len(ends) for ends in fsdp.trace.arrows("collective").values()
    ]


def rank_of_copies(folder, drawn: int, timed: dict[str, int]) -> None:
    """Writes a rank whose ledger has so many timed copies of each bucket, all by one function. The first are
    H2D, and `drawn` of these have a line of their call. All have a device time."""
    copy = {"name": "cudaMemcpyAsync", "cat": "H2D"}
    rows = [
        handmade.row(bucket=bucket, name="cudaMemcpyAsync", dtype="byte", comm=None, device=0, calls=n, device_timed=n)
        for bucket, n in timed.items()
    ]
    lines = []
    for i in range(sum(timed.values())):
        if i < drawn:
            lines.append(handmade.event(**copy, ts=10 + 100 * i, args={"bytes": 2048, "device": 0}))
        times = {"device": 0, "call_tid": 7, "queued": 20}
        lines.append({"cat": "DEVICE", "name": "cudaMemcpyAsync", "ph": "X", "pid": 0, "tid": 1 << 23,
                      "ts": 30 + 100 * i, "dur": 5, "args": times})  # fmt: skip
    folder.mkdir()
    text = handmade.array(handmade.header(world_size=1), *lines, handmade.ledger(*rows), handmade.footer())
    (folder / "rank-00000.json").write_text(text)


@pytest.mark.parametrize(
    ("timed", "drawn", "name"),
    [
        ({"H2D": 3, "D2D": 4}, 3, "D2D"),
        ({"H2D": 5}, 3, "H2D"),  # of some no line was written
        ({"H2D": 5, "D2D": 2}, 3, "cudaMemcpyAsync"),  # either could be meant
        ({"H2D": 3, "D2D": 2, "D2H": 1}, 3, "cudaMemcpyAsync"),
    ],
)
def test_copies_without_a_line_have_no_arrow_and_a_name_if_the_ledger_leaves_one(tmp_path, timed, drawn, name):
    rank_of_copies(tmp_path / "job", drawn, timed)
    trace = merge(tmp_path / "job", tmp_path / "m.json")
    times = sorted(trace.of("DEVICE"), key=lambda time: time["ts"])
    assert [time["name"] for time in times] == ["H2D 2 KiB"] * drawn + [name] * (sum(timed.values()) - drawn)
    assert all((time["name"] == "cudaMemcpyAsync") == ("op" not in time["args"]) for time in times)
    arrows = trace.arrows("to the device")
    assert len(arrows) == drawn
    assert_within_slices(trace, list(itertools.chain(*arrows.values())))
    # Again, from the merged trace.
    assert [t["name"] for t in merge(tmp_path / "m.json", tmp_path / "n.json").of("DEVICE")] == [
        t["name"] for t in trace.of("DEVICE")
    ]
