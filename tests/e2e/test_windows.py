"""Windows (TPROF_SCHEDULE) give lines and device times of chosen steps, and the counts of all."""

import collections
import os
import signal
import subprocess
import sys

import pytest
from lib import launch, rankfile
from lib.build import BUILD, CLIENTS, LIBTPROF
from lib.contract import not_as_the_contract_says
from lib.rankfile import accepted, calls_of, lines_of, named
from lib.runs import until
from lib.tally import returned
from lib.tool import tprof, worse_than_notes

STEPS = 8
RANKS = 2
RANGES = ("--ranges", "step ")
BY_RANGE = {"NVTX_INJECTION64_PATH": str(LIBTPROF)}
# Steps 2, 3, 6 and 7 of 8.
TWO_OF_FOUR = "wait=1,warmup=1,active=2"
ACTIVE = [(2, 3), (6, 7)]


def run(folder, *arguments, **env):
    command = launch.without_agent("loops.py", RANKS, ("fsdp2", "--steps", str(STEPS), *arguments))
    done = launch.start(command, folder, **env)
    assert done.code == 0, done.stderr
    return done


def spans(file, name):
    return [(w["ts"], w["ts"] + w["dur"], w) for w in named(file.lines, name)]


def within(ts, intervals):
    return [w for start, end, w in intervals if start <= ts < end]


def names(events):
    return collections.Counter(event["name"] for event in events)


def test_a_schedule_does_in_each_step_what_torchs_does(torch, tmp_path):
    steps, how_many = 60, 400
    client = [sys.executable, CLIENTS / "torch_schedules.py", steps, how_many]
    torchs = launch.start(client, tmp_path, preload=False)
    assert torchs.code == 0, torchs.stderr
    schedules, actions = zip(*(line.split() for line in torchs.stdout.splitlines()))
    assert len(schedules) == how_many and len(set("".join(actions))) == 4
    ours = subprocess.run(
        [BUILD / "schedule_actions", str(steps)], input="\n".join(schedules), text=True, capture_output=True, check=True
    )
    assert ours.stdout.splitlines() == list(actions)


def test_lines_are_those_of_active_steps_and_the_counts_those_of_all(torch, tmp_path):
    (tmp_path / "schedule").mkdir()
    done = run(
        tmp_path, *RANGES, TPROF_SCHEDULE=TWO_OF_FOUR, TPROF_TIMING="events", TPROF_CUDA_PROFILER="1",
        STANDIN_SCHEDULE=str(tmp_path / "schedule"), STANDIN_LATENCY_US="3000", **BY_RANGE,
    )  # fmt: skip
    assert done.words_of_ours() == []
    for file in done.ranks():
        assert not_as_the_contract_says(lines_of(file.path)) == []
        windows = spans(file, "tprof_window")
        assert [(w["first_step"], w["last_step"]) for *_, w in windows] == ACTIVE
        # Other profilers are switched on after a window's beginning and off after its end. A window that
        # ends before they are switched on has none.
        log = (tmp_path / "schedule" / f"schedule-{file.header['pid']}").read_text().splitlines()
        switched = [(line.split()[1], int(line.split()[2])) for line in log if "Profiler" in line]
        pairs = [(on, off) for (_, on), (_, off) in zip(switched[::2], switched[1::2])]
        assert [what for what, _ in switched] == ["cuProfilerStart", "cuProfilerStop"] * len(pairs)
        assert 1 <= len(pairs) <= len(windows)
        for pair in pairs:
            on, off = ((ns - file.header["monotonic_ns"]) / 1000 for ns in pair)
            start, end, _ = max(window for window in windows if window[0] <= on)
            assert start <= on < off and end <= off
        steps = spans(file, "tprof_step")
        assert [step["step"] for *_, step in steps] == list(range(STEPS))
        in_step = {step["step"]: [] for *_, step in steps}
        for event in file.events:
            if event["cat"] in ("NVTX", "DEVICE"):
                continue
            (window,) = within(event["ts"], windows)
            for step in within(event["ts"], steps):
                in_step[step["step"]].append(event)
        for *_, step in steps:
            expected = calls_of(step["rows"]) if any(a <= step["step"] <= b for a, b in ACTIVE) else {}
            found = names(event for event in in_step[step["step"]] if accepted(event["args"]))
            assert found == expected
        ranges = [event for event in file.events if event["cat"] == "NVTX"]
        assert {event["name"] for event in ranges} >= {"step 2", "step 3", "step 6", "step 7"}
        assert all(within(event["ts"], windows) for event in ranges)
        # Counts are those of the libraries; each call has a line or is among those without.
        rows, tally = file.ledger_rows(), returned(done.tallies()[file.header["pid"]])
        per_step = tally["ncclReduceScatter"] // STEPS
        for function in ("ncclAllGather", "ncclReduceScatter", "ncclAllReduce"):
            assert calls_of(rows)[function] == tally[function]
        with_lines = [row for row in rows if row["bucket"] not in ("D2D", "H2H", "MANAGED")]
        counted = sum(row["calls"] + row["failed"] for row in with_lines)
        lines = [event for event in file.events if event["cat"] not in ("NVTX", "DEVICE")]
        assert set(file.footer["dropped"]) == {"window"}
        assert len(lines) + file.footer["dropped"]["window"] == counted
        # A warm-up is timed too, but its times have no line. Timing follows the steps within 20 ms where
        # there is a core for it: once a call in a window has a time, all later ones have one, too.
        def of_scatter(event):
            return (event["args"]["comm"], event["args"]["seq"]) if event["name"] == "ncclReduceScatter" else None

        times = {of_scatter(event) for event in file.events if event["cat"] == "DEVICE"} - {None}
        for window in windows:
            called = sorted((line for line in lines if of_scatter(line) and within(line["ts"], [window])),
                            key=lambda line: line["ts"])  # fmt: skip
            has_time = [of_scatter(line) in times for line in called]
            assert len(called) == 2 * per_step and has_time == sorted(has_time)
        timed = sum(row["device_timed"] for row in rows if row["name"] == "ncclReduceScatter")
        assert 0 < len(times) <= timed <= 7 * per_step
    assert worse_than_notes(done.traces) == []


def test_without_marks_windows_go_by_what_repeats_each_in_a_file_of_its_own(torch, tmp_path):
    done = run(tmp_path, "--steps", "24", TPROF_SCHEDULE="wait=1,active=2,repeat=2", TPROF_WINDOW_FILES="1")
    windows = []
    for file in done.ranks():
        assert not_as_the_contract_says(lines_of(file.path)) == []
        found = spans(file, "tprof_window")
        windows.append([(w["first_step"], w["last_step"]) for *_, w in found])
        of_windows = rankfile.windows_of(file.path)
        assert [w["file"] for *_, w in found] == list(of_windows) and file.events == []
        per_window = collections.Counter()
        for name, of_window in of_windows.items():
            assert not_as_the_contract_says(lines_of(of_window.path)) == []
            for event in of_window.events:
                (window,) = within(event["ts"], found)
                assert name == f"{file.path.stem}.step-{window['first_step']}.json" == window["file"]
                per_window[window["first_step"], event["name"]] += 1
        # By FSDP2's formulas a step has five reductions and nine gathers.
        scatters, gathers = ([per_window[w["first_step"], name] for *_, w in found]
                             for name in ("ncclReduceScatter", "ncclAllGather"))  # fmt: skip
        assert (scatters, gathers) == ([10, 10], [18, 18])
    # Steps go by until it is clear what repeats.
    first = windows[0][0][0]
    assert first > 6
    assert windows == [[(first, first + 1), (first + 3, first + 4)]] * RANKS


def test_the_programs_own_switch_opens_and_closes_the_window(torch, tmp_path):
    done = run(
        tmp_path, *RANGES, "--profile", "3", "5", TPROF_SCHEDULE="profiler", TPROF_WINDOW_FILES="1",
        TPROF_TIMING="events", **BY_RANGE,
    )  # fmt: skip
    assert done.words_of_ours() == []
    for file in done.ranks():
        ((name, of_window),) = rankfile.windows_of(file.path).items()
        assert name == f"{file.path.stem}.window-1.json" and {"DEVICE", "NVTX"} <= {e["cat"] for e in of_window.events}
        assert not_as_the_contract_says(lines_of(file.path)) == []
        ((start, end, window),) = spans(file, "tprof_window")
        assert "first_step" not in window
        steps = {step["step"]: (ts, step) for ts, _, step in spans(file, "tprof_step")}
        assert steps[2][0] < start < steps[3][0] and steps[5][0] < end < steps[6][0]
        lines = [event for event in of_window.events if event["cat"] not in ("NVTX", "DEVICE")]
        assert all(start <= event["ts"] < end for event in lines)
        in_window = collections.Counter()
        for n in range(3, 6):
            in_window += calls_of(steps[n][1]["rows"])
        found = names(event for event in lines if accepted(event["args"]))
        assert found == in_window
        rows = file.ledger_rows()
        timed = sum(row["device_timed"] for row in rows if row["name"] == "ncclReduceScatter")
        # Without a warm-up the first calls of a window may have none.
        assert 0 < timed <= in_window["ncclReduceScatter"] < calls_of(rows)["ncclReduceScatter"]
    assert worse_than_notes(done.traces) == []


@pytest.mark.parametrize(
    "schedule, said",
    [
        ("active=1", "TPROF_SCHEDULE: no step was seen, so no event has a line"),
        ("profiler", "TPROF_SCHEDULE=profiler: cudaProfilerStart was not called, so no event has a line"),
        ("active=0", "TPROF_SCHEDULE=active=0: expected off, profiler, ctl, or wait=5"),
    ],
)
def test_what_can_open_no_window_is_said_once(tmp_path, schedule, said):
    settings = {"TPROF_SCHEDULE": schedule, "TPROF_STEP": "nvtx:a name that nobody gives"}
    done = launch.start([BUILD / "native_trainer", "--ranks", "1"], tmp_path, **settings)
    assert done.code == 0, done.stderr
    (line,) = done.words_of_ours()
    assert said in line
    (file,) = done.ranks()
    assert bool(file.events) == (schedule == "active=0")
    assert calls_of(file.ledger_rows())["ncclAllGather"] > 0


def test_a_killed_process_has_the_lines_of_its_windows_only(torch, tmp_path):
    command = launch.without_agent("loops.py", RANKS, ("fsdp2", "--steps", "100000", *RANGES))

    def written():
        files = list((tmp_path / "traces").glob("rank-*.json"))
        return files and all(path.read_text().count('"tprof_window"') > 3 for path in files)

    with launch.running(command, tmp_path, TPROF_SCHEDULE="wait=3,active=2", **BY_RANGE) as process:
        until(written)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: tprof("recover", tmp_path / "traces").returncode == 0)  # the last of them may linger
    for file in rankfile.read_folder(tmp_path / "traces"):
        assert not_as_the_contract_says(lines_of(file.path)) == []
        windows = [
            (w["ts"], w["ts"] + w.get("dur", 1e12), w) for w in named(file.lines, "tprof_window")
        ]
        assert all(w["first_step"] % 5 == 3 and w["last_step"] - w["first_step"] < 2 for *_, w in windows)
        lines = [event for event in file.events if event["cat"] != "NVTX"]
        assert lines and all(within(event["ts"], windows) for event in lines)
        counted = sum(row["calls"] for row in file.ledger_rows() if row["bucket"] not in ("D2D", "H2H", "MANAGED"))
        assert len(lines) + file.footer["dropped"]["window"] == counted
