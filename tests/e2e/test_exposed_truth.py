"""Compares device and exposed time, as `summary` prints them, with what they are by definition
(lib/exposed_truth.py), from the stand-in's schedule. Covers shapes of training and ways in which a step ends for
the host."""

import statistics

import pytest
from lib import device_truth
from lib.device_work import ENDINGS
from lib.device_work import SHAPES as ALL_SHAPES
from lib.exposed_truth import TIMINGS, by_name, differences, play, printed, trained, truths
from lib.thorough import ALL
from lib.tool import tprof

pytestmark = pytest.mark.timed

# The exposed share of one function that makes a shape what its name says (None: not checked).
SHAPES = {
    "partly_hidden": ("ncclAllGather", 0.375),
    "in_time": ("ncclReduceScatter", 0),
    "many_waits": ("ncclAllGather", None),
    "under_one_kernel": ("ncclAllGather", 0.118),
    "ddp": ("ncclAllReduce", None),
    "ddp_copies": ("cudaMemcpyAsync D2D", 0),
    "d2h_awaited": ("cudaMemcpyAsync D2H", 0),
    "checkpoint_thread": ("ncclAllReduce", 0),
    "other_stream_first": ("ncclAllGather", 0.677),
    "light_second_stream": ("ncclAllGather", 0.025),
    "queued_ahead": ("ncclAllGather", 0.05),
}


def some_ends(shapes, timing, each):
    """Returns (shape, ending, timing), with `each` endings of a step per shape, each as often as any other. For
    `make test-all` it returns all of them."""
    if ALL:
        each = len(ENDINGS)
    first = TIMINGS.index(timing)
    return [
        (shape, list(ENDINGS)[(first + i + 3 * more) % len(ENDINGS)], timing)
        for i, shape in enumerate(shapes)
        for more in range(each)
    ]


# Number of steps for shapes whose steps take a tenth of a second.
LONG_STEPS = {"light_second_stream": 8, "other_stream_first": 12}


@pytest.mark.parametrize(
    "shape, ending, timing", some_ends(SHAPES, "events", 2) + some_ends(SHAPES, "events:16", 1)
)
def test_what_is_printed_is_what_ran(shape, ending, timing, tmp_path):
    run = play(tmp_path, shape, ending, timing, LONG_STEPS.get(shape, 20))
    name, expected = SHAPES[shape]
    calls = by_name(truths(tmp_path, run.ranks()))[name]
    if expected is not None:
        # Most calls have this share: a machine without a core for the host makes some worse.
        assert statistics.median(c.exposed / c.took for c in calls) == pytest.approx(expected, abs=0.05)
    # With few calls, none may be among the sampled ones, or there may be no pair of events left.
    some_only = ":" in timing or shape == "queued_ahead"
    always_known = SHAPES[shape][0] if "nccl" in SHAPES[shape][0] or ":" not in timing else None
    may_be_unknown = {name for name in printed(run.traces) if some_only and name != always_known}
    assert differences(run, tmp_path, may_be_unknown) == []


SCHEDULE = """\
1 kernel 0 0 1000 0 0 0 -
2 ncclAllGather 0 500 1500 0 1 0 -
2 ncclRecv+ncclSend 1500 1600 2600 0 2 0 -
1 marker 1000 1500 1500 0 0 0 -
1 ncclReduce 1500 1500 2000 0 1 1 -
1 graph 1500 1500 2200 0 0 0 -
1 cudaMemcpyAsync 2200 2300 2400 0 1 0 D2D
3 cudaMemcpyAsync 0 2000 2800 0 1 0 H2D
4 kernel 0 2400 2500 1 0 0 -
3 host 2800 2800 3000 0 0 0 -
2 marker 4000 4000 4000 0 0 0 -
"""


def test_the_truth_is_the_definition(tmp_path):
    """A kernel runs until 1000, a graph from 1500 to 2200, its stream's copy from 2300 to 2400. Calls that the
    graph executes are its own, and another device's kernel hides nothing."""
    path = tmp_path / "schedule-1"
    path.write_text(SCHEDULE)
    ran = device_truth.work_of(path)
    assert device_truth.computation(ran, 0) == [(0, 1000), (1500, 2200), (2300, 2400)]
    assert device_truth.computation(ran, 1) == [(2400, 2500)]
    assert [(call.work.what, call.took, call.exposed, call.host_ns) for call in device_truth.calls_of(ran)] == [
        ("ncclAllGather", 1000, 500, 0),
        ("ncclRecv+ncclSend", 1000, 300, 1400),
        ("cudaMemcpyAsync", 800, 500, 0),
        ("cudaMemcpyAsync", 100, 0, 0),
    ]


MORE = [shape for shape in ALL_SHAPES if shape not in SHAPES]
# Where the host holds up the device, the moments at which it runs dry are not known.
HOST_LATE = ("cpu_bound",)


@pytest.mark.parametrize("shape, ending, timing", some_ends(MORE, "events", 1) + some_ends(MORE if ALL else MORE[::2], "events:16", 1))
def test_of_other_shapes_too(shape, ending, timing, tmp_path):
    run = play(tmp_path, shape, ending, timing, 20)
    may_be_unknown = printed(run.traces).keys() if ":" in timing or shape in HOST_LATE else ()
    assert differences(run, tmp_path, may_be_unknown) == []


@pytest.mark.parametrize("every", [1, 3, 6, 7] if ALL else [1, 6])
@pytest.mark.parametrize("shape", ["partly_hidden", "in_time", "fsdp2", "evaluation", "many_waits"])
def test_a_host_that_is_away_between_a_mark_and_its_launch_makes_no_wrong_time(shape, every, tmp_path):
    """Times that are then unknown are not printed; those that are printed are right."""
    run = play(tmp_path, shape, "item", "events", 20, STANDIN_SLOW_LAUNCH=f"2000:{every}")
    assert differences(run, tmp_path, printed(run.traces).keys()) == []


def test_what_is_not_known_is_said_with_its_reason(tmp_path):
    run = play(tmp_path, "cpu_bound", "nothing", "events", 20)
    (file,) = run.ranks()
    told = sum(row.get("exposure_known", 0) for row in file.ledger_rows() if row["name"] == "ncclAllReduce")
    ((why, calls),) = file.footer["exposure_lost"].items()
    assert (why, calls + told) == ("host_late", 20)
    words = f"exposed time is unknown for {calls} of 20 calls, on rank 0 (host_late)"
    for command in ("summary", "check", "doctor"):
        assert words in " ".join(tprof(command, run.traces).stdout.split())


# Each kind of training with some ends of a step: (kind, end).
TRAINED = (
    ("ddp", "nothing"), ("ddp", "evaluated"), ("accumulated", "clipped"), ("fsdp2", "nothing"), ("tensor", "item"),
    ("experts", "synchronize"), ("pipeline", "nothing"),
)  # fmt: skip
if ALL:
    TRAINED += (
        ("ddp", "item"), ("accumulated", "synchronize"), ("fsdp2", "clipped"), ("tensor", "nothing"),
        ("experts", "item"), ("pipeline", "item"),
    )  # fmt: skip


@pytest.mark.parametrize("kind, end", TRAINED)
def test_unmodified_pytorch(torch, kind, end, tmp_path):
    """Kernels are so long that the device, not the host, holds up a step."""
    run = trained(
        tmp_path, "trained.py", "events", arguments=(kind, end, "--steps", "4"),
        STANDIN_LATENCY_US="3000", STANDIN_KERNEL_US="1500",
    )  # fmt: skip
    assert differences(run, tmp_path) == []


@pytest.mark.parametrize("timing", TIMINGS)
def test_fsdp2(torch, timing, tmp_path):
    """Each step ends with .item(). Reduce-scatters have a stream of their own, and share a communicator with
    the all-gathers."""
    run = trained(
        tmp_path, "fsdp2.py", timing, arguments=("--steps", "8"), STANDIN_LATENCY_US="3000", STANDIN_KERNEL_US="300"
    )
    may_be_unknown = printed(run.traces).keys() if ":" in timing else ()
    assert differences(run, tmp_path, may_be_unknown) == []


# A device that is as prompt as a GPU, with calls and kernels as short as there.
PROMPT = {"STANDIN_SPIN_US": "200", "STANDIN_LATENCY_US": "150", "STANDIN_KERNEL_US": "5"}


@pytest.mark.parametrize("kind, host_us", [("ddp", 15), ("accumulated", 40)])
def test_kernels_that_are_shorter_than_the_host_takes_to_launch_them(torch, kind, host_us, tmp_path):
    """The device is idle between any two kernels, so next to nothing hides a call. One rank, since two
    would take the cores from their devices."""
    run = trained(
        tmp_path, "trained.py", "events", ranks=1, arguments=(kind, "item", "--steps", "12", "--host-us", str(host_us)),
        **PROMPT,
    )  # fmt: skip
    calls = by_name(truths(tmp_path, run.ranks()))["ncclAllReduce"]
    truth = sum(call.exposed for call in calls) / sum(call.took for call in calls)
    figures = printed(run.traces)["ncclAllReduce"]
    assert truth > 0.9
    assert figures.known > 0.8 * figures.calls
    assert figures.exposed / figures.known_device == pytest.approx(truth, abs=0.08)


def test_a_host_that_sleeps_lets_its_device_idle(torch, tmp_path):
    """Readers take half of what is unsure for computation. Kernels of 50 us, and 30 ms of sleep in a step.
    Where a host is kept from its core in a launch, nobody knows when that kernel began."""
    run = trained(
        tmp_path, "trained.py", "events", ranks=1, arguments=("ddp", "item", "--steps", "12", "--sleep-ms", "30"),
        **PROMPT | {"STANDIN_KERNEL_US": "50"},
    )  # fmt: skip
    (file,) = run.ranks()
    work = device_truth.ran_of(tmp_path, file)
    truth = sum(to - begin for begin, to in device_truth.computation(work, 0)) / 1e6
    lines = [line for line in file.lines if line.get("cat") == "BUSY"]
    sure = sum(line["dur"] for line in lines if not line["args"].get("unsure")) / 1e3
    unsure = sum(line["dur"] for line in lines if line["args"].get("unsure")) / 1e3
    assert sure - truth / 20 <= truth <= sure + unsure + truth / 20
    took = (max(line["ts"] + line["dur"] for line in lines) - min(line["ts"] for line in lines)) / 1e3
    assert sure + unsure < took - 0.9 * 11 * 30  # between the steps it is surely idle
    assert sure + unsure / 2 == pytest.approx(truth, abs=0.1 * took)
