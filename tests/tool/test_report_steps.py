"""A step is one thing on the whole page: the headline, the bars, the heat map and what is drawn agree on it."""

import re
import statistics

import pytest
from generator import causes, habits, rank_files
from generator.loop import MS, Loop
from lib.rankfile import parsed
from lib.tool import told

# Compared with what is computed, nothing is communicated: then a device's step is as long as its kernels take.
COMPUTING = Loop(
    ranks=4, steps=24, layers=4, params=1000, batch_bytes=1000, dtype="bfloat16", jitter=0.0, load_ns=0
)
USUAL = COMPUTING.layer_ns * (3 * COMPUTING.layers + 0.25)
LONG = 13
SLOW = dict.fromkeys(range(4), 3.0)


def report_of(loop, folder, settings=rank_files.Settings()):
    case = habits.run(loop)
    rank_files.write(case, folder, loop.seed, settings)
    return case, told("report", folder)[1]


@pytest.fixture(scope="module")
def ahead(tmp_path_factory):
    """Hosts that run ahead of their devices and wait for them in steps 9 and 19; step 13 is the long one."""
    loop = COMPUTING.but(item_every=10, gpu=SLOW, gpu_steps=(LONG,))
    return report_of(loop, tmp_path_factory.mktemp("ahead") / "job")[1]


def test_bars_and_heat_map_have_the_lengths_on_the_devices(ahead):
    expected = [3 * USUAL if step == LONG else USUAL for step in range(24)]
    # Behind the last step, and beside its kernels, there is no more than a little.
    assert ahead["step"]["longest_ns"] == pytest.approx(expected, rel=0.05)
    (lengths,) = [m["most"] for m in ahead["heat"]["metrics"] if m["key"] == "length_ns"]
    assert lengths == pytest.approx(expected * 4, rel=0.05)


def test_a_rank_is_late_in_the_step_in_which_its_device_is(tmp_path):
    loop = COMPUTING.but(item_every=10, gpu={2: 3.0}, gpu_steps=(LONG,))
    late = report_of(loop, tmp_path / "job")[1]
    (row, *others) = late["late"]["where"]
    assert (row["rank"], row["step"]) == ("rank 2", LONG) and not [o for o in others if o["ns"] * 10 > row["ns"]]
    cells = next(m["most"] for m in late["heat"]["metrics"] if m["key"] == "late_ns")
    assert max(range(len(cells)), key=lambda at: cells[at]) == 2 * 24 + LONG


def test_what_is_drawn_begins_and_ends_with_the_step(ahead):
    for shown in ahead["timelines"]:
        assert shown["on"] == "device" and len(shown["ranks"]) == 4
        assert shown["span_ns"] == pytest.approx(shown["length_ns"], rel=0.05)
        assert min(rank["from"] for rank in shown["ranks"]) == 0
        assert max(rank["to"] for rank in shown["ranks"]) == shown["span_ns"]
        for rank in shown["ranks"]:
            names = [shown["names"][bar[0]]["name"] for bar in rank["bars"]]
            assert names.count("ncclAllReduce") == 1, names
            for _, at, dur, *_ in rank["bars"]:
                assert rank["from"] <= at <= at + dur <= rank["to"]


def test_a_call_that_runs_on_from_another_step_is_cut_there_and_has_its_whole_length(tmp_path):
    """Steps are those of the hosts if computation is not followed: these enqueue them far ahead of the devices."""
    loop = Loop(ranks=2, steps=24, item_every=0, params=100_000_000, layer_ns=MS)
    case = habits.run(loop)
    rank_files.write(case, tmp_path / "job")
    lengths_of = {}
    for rank in case.traces:
        file = tmp_path / "job" / f"rank-{rank:05}.json"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if '"cat":"BUSY"' not in line))
        lengths_of[rank] = [round(1000 * line["dur"]) for line in parsed(file) if line.get("cat") == "DEVICE"]
    for shown in told("report", tmp_path / "job")[1]["timelines"]:
        for rank, lengths in zip(shown["ranks"], lengths_of.values(), strict=True):
            for _, at, dur, _, *whole in rank["bars"]:
                assert rank["from"] <= at <= at + dur <= rank["to"]
                assert (whole or [dur])[0] in lengths
    cut = [bar for rank in shown["ranks"] for bar in rank["bars"] if len(bar) == 5]  # of the last that is shown
    assert cut and all(whole > dur for _, _, dur, _, whole in cut)


def tells(finding):
    """Returns the numbers of a finding of long steps: the longest, and the usual step."""
    found = re.search(r"([\d.]+) ms(?: in step \d+)?(?:, held up by rank \d+,)? where the usual step takes ([\d.]+) ms", finding["text"])
    return [float(ms) * MS for ms in found.groups()]


@pytest.mark.parametrize("timing", [True, False])
def test_one_step_is_equally_long_everywhere(tmp_path, timing):
    """Rank 0 alone writes checkpoints; the others go on, and wait for it in the step after. On the devices a step takes
    as long as for the rank that waits least; where hosts alone tell, they say how long it is on average."""
    loop = COMPUTING.but(checkpoint_every=16, checkpoint="first", checkpoint_ns=90 * MS)
    case, report = report_of(loop, tmp_path / "job", rank_files.Settings(timing=timing))
    marks = [[step.begin for step in case.traces[rank].steps] for rank in range(4)]
    of_ranks = [[of[s + 1] - of[s] for of in marks] for s in range(23)]
    # The rank that writes waits least in that step, and most in none: the others do so in the step behind it.
    writes, behind = 15, 16
    lengths = [statistics.mean(of) for of in of_ranks]
    assert max(of_ranks[writes]) > 1.1 * lengths[writes]  # or the test would not tell them apart
    if timing:
        lengths[writes], lengths[behind] = of_ranks[writes][0], of_ranks[behind][0]
    longest = max(range(1, 23), key=lambda s: lengths[s])
    bars, slowest = report["step"]["longest_ns"], report["timelines"][0]
    assert bars[:23] == pytest.approx(lengths, rel=0.01)
    assert slowest["step"] == longest and slowest["length_ns"] == bars[longest] == report["step"]["most_ns"]
    (finding,) = [f for f in report["findings"] if f["kind"] in ("long_steps", "periodic_steps")]
    assert tells(finding) == pytest.approx([report["step"]["most_ns"], report["step"]["median_ns"]], rel=0.001)


def test_all_steps_in_which_a_rank_is_slow_are_listed_for_programs(tmp_path):
    steps = (2, 4, 7, 8, 9, 12, 15, 20)
    report = report_of(COMPUTING.but(gpu={2: 3.0}, gpu_steps=steps), tmp_path / "job")[1]
    (slow,) = (f for f in report["findings"] if f["kind"] == "slow_gpu")
    assert (slow["steps"], slow["in_steps"]) == ([2, 20], "2,4,7-9,12,15,20")
    assert ", 2,4,7-9,12,15,20: " in slow["text"]
    always = report_of(COMPUTING.but(gpu={2: 3.0}), tmp_path / "always")[1]
    assert [f["in_steps"] for f in always["findings"] if f["kind"] == "slow_gpu"] == [None]


@pytest.mark.parametrize("steps", [2, 4, 12])
@pytest.mark.parametrize("cause", ["slow_sometimes", "slow_gpu", None])
def test_the_mean_is_between_the_shortest_and_the_longest_step_and_the_parts_add_up_to_it(tmp_path, cause, steps):
    rank_files.write(causes.case("fsdp", 4, cause, 5, steps), tmp_path / "job", 5)
    step = told("report", tmp_path / "job")[1]["step"]
    assert step["least_ns"] <= step["mean_ns"] <= step["most_ns"]
    assert sum(ns for _, _, ns in step["shares"]) == pytest.approx(step["mean_ns"], rel=1e-3)
