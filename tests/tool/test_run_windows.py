"""tprof run --on-window and --keep-windows: what happens to the files of windows (TPROF_WINDOW_FILES)."""

import json
import os

from lib import launch, rankfile
from lib.build import BUILD, TPROF
from lib.runs import until
from lib.tally import by_pid, returned
from lib.tool import told, tprof, worse_than_notes

RANKS, STEPS, BLOCKS = 2, 9, 2
FIRST_STEPS = (2, 5, 8)  # the first step of each window
# A step ends with the copy of the loss.
WINDOWS = {
    "TPROF_WINDOW_FILES": "1", "TPROF_SCHEDULE": "warmup=1,active=2", "TPROF_STEP": "call:cudaMemcpyAsync@4",
}  # fmt: skip


def trainer(steps):
    return [BUILD / "native_trainer", "--ranks", RANKS, "--steps", steps, "--blocks", BLOCKS]


def run(folder, *options, name="traces", **settings):
    (folder / "tally").mkdir()
    env = launch.environment(folder, preload=False, **WINDOWS | settings)
    return tprof("run", "--out", folder / name, *options, "--", *trainer(STEPS), env=env)


def window(rank, step):
    return f"rank-{rank:05}.step-{step}.json"


def windows(folder):
    return {path.name for path in folder.glob("*.step-*.json")}


def every(steps):
    return {window(rank, step) for rank in range(RANKS) for step in steps}


def test_the_command_runs_once_for_each_window_in_their_order(tmp_path):
    """Where it fails, this is said and the file stays; of the other files the last one stays."""
    log = tmp_path / "log"
    traces = tmp_path / "it's a folder"
    command = f"echo {{}} >> {log}; case {{}} in *step-5.json) exit 4;; esac"
    done = run(tmp_path, "--on-window", command, "--keep-windows", "1", name=traces.name)
    assert done.returncode == 0
    ran = log.read_text().splitlines()
    assert len(ran) == RANKS * len(FIRST_STEPS)
    for rank in range(RANKS):
        mine = [path for path in ran if f"rank-{rank:05}" in path]
        assert mine == [str(traces / window(rank, step)) for step in FIRST_STEPS]
    failed = [line for line in done.stderr.splitlines() if line.startswith("tprof: --on-window")]
    assert len(failed) == RANKS and all(line.endswith(": exited with 4") for line in failed)
    assert windows(traces) == every((5, 8))


def test_windows_that_were_deleted_are_no_loss(tmp_path):
    got, traces = tmp_path / "got", tmp_path / "traces"
    done = run(tmp_path, "--keep-windows", "1", "--handler", f"cat > {got}")
    assert done.returncode == 0
    assert "tprof: --keep-windows: 4 older files of windows were deleted\n" in done.stderr
    assert windows(traces) == every(FIRST_STEPS[-1:])
    # Handlers were told of each file after the line that names it, also of those that were gone by then, and
    # at the end of the files that are left.
    lines = [json.loads(line) for line in got.read_text().splitlines()]
    named, heard = None, set()
    for line in lines:
        named = line if line.get("name") == "tprof_window" else named
        if line.get("handler") == "window":
            assert line["files"] == [str(traces / named["args"]["file"])]
            heard |= set(line["files"])
    assert heard == {str(traces / name) for name in every(FIRST_STEPS)}
    assert lines[-1]["files"] == sorted(map(str, traces.glob("*.json")))
    # A reader says that they are not here, and no more: the counts are the stand-in's.
    assert worse_than_notes(traces) == []
    code, report = told("summary", traces)
    (missing,) = [problem for problem in report["findings"] if problem["kind"] == "missing_windows"]
    assert code == 0 and (missing["severity"], missing["ranks"]) == ("note", [0, 1])
    assert "4 of 6 window files are missing" in missing["text"]
    calls = sum(returned(tally)["ncclAllGather"] for tally in by_pid(tmp_path / "tally").values())
    assert report["buckets"]["ALLGATHER"]["calls"] == calls == RANKS * STEPS * (1 + 2 * BLOCKS)


def test_files_are_told_and_deleted_while_the_job_runs(tmp_path):
    traces, log, got = tmp_path / "traces", tmp_path / "log", tmp_path / "got"
    traces.mkdir()
    options = ["--on-window", f"echo {{}} >> {log}", "--keep-windows", "1", "--handler", f"cat > {got}"]
    settings = WINDOWS | {"TPROF_SCHEDULE": "wait=40,active=2", "TPROF_RING_DIR": str(traces)}
    command = [TPROF, "run", "--out", traces, *options, "--", *trainer(10**7)]
    with launch.running(command, tmp_path, preload=False, **settings) as process:
        until(lambda: log.exists() and len(log.read_text().splitlines()) > 2 * RANKS)
        first = log.read_text().splitlines()[0]
        until(lambda: not os.path.exists(first))
        until(lambda: f'{{"handler":"window","files":["{first}"]}}\n' in got.read_text())
        assert process.poll() is None
        assert all((traces / f"rank-{rank:05}.json").exists() for rank in range(RANKS))


def test_a_run_whose_windows_have_no_files_is_told_so(tmp_path):
    done = run(tmp_path, "--on-window", "echo {} >&2", TPROF_WINDOW_FILES="0")
    assert done.returncode == 0
    assert "no window had a file: TPROF_WINDOW_FILES=1 and TPROF_SCHEDULE ask for them" in done.stderr
    assert windows(tmp_path / "traces") == set() and len(rankfile.read_folder(tmp_path / "traces")) == RANKS
