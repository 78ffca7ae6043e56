"""The windows' own files (TPROF_WINDOW_FILES) of processes that are killed and starved.

A step ends with each reduce-scatter, which is one in nine of the program's calls.
"""

import itertools
import pathlib
import signal

import pytest
from lib import rankfile, runs
from lib.contract import not_as_the_contract_says
from lib.rankfile import lines_of, named
from lib.tool import merged, told, tprof

STEPS = {"TPROF_WINDOW_FILES": "1", "TPROF_STEP": "call:ncclReduceScatter", "TPROF_SCHEDULE": "wait=1,active=2"}
CALLS = runs.client("calls", 30, 1)


def calls_in(lines):
    return [line for line in lines if line["ph"] in "XB"]


def check_whole(traced: runs.Run) -> None:
    """Each call that the ledger holds has a line in one file, or is counted as having none."""
    (rank_file,) = (path for path in traced.traces.iterdir() if not rankfile.is_window(path))
    lines = runs.closed(rank_file)
    files = rankfile.windows_of(rank_file)
    assert set(traced.traces.iterdir()) == {rank_file, *(file.path for file in files.values())}
    windows = {w["file"]: w for w in named(lines, "tprof_window") if "file" in w}
    assert list(files) == list(windows)
    for name, file in files.items():
        assert not_as_the_contract_says(lines_of(file.path)) == []
        ((window,), said) = named(file.lines, "tprof_window"), windows[name]
        assert said == window | {"file": name} and len(calls_in(file.lines)) == window["lines"]
        assert name == f"{rank_file.stem}.step-{window['first_step']}.json"
        assert all(window["ts"] <= call["ts"] for call in calls_in(file.lines))
    calls = [call for file in (lines, *(file.lines for file in files.values())) for call in calls_in(file)]
    runs.assert_no_line_twice(calls)
    calls = [call for call in calls if call["cat"] != "COMM"]  # is in no bucket
    counted = sum(calls + failed + unfinished for (bucket, *_), (calls, _, failed, unfinished)
                  in runs.ledger(lines).items() if bucket != "D2D")  # fmt: skip
    footer = runs.footer(lines)
    assert set(footer["dropped"]) <= {"window"}
    assert len(calls) + footer["dropped"].get("window", 0) == counted
    written = {"files": len(files), "lines": sum(len(calls_in(file.lines)) for file in files.values())}
    assert footer.get("windows", {"files": 0, "lines": 0}) == written


# Kills at every seventh moment.
def test_killed_while_windows_files_are_written(tmp_path):
    """Recovery loses no line and writes none twice, also where a file already has its name."""
    with_files = 0
    for moment in itertools.count(1, 7):
        folder = tmp_path / str(moment)
        traced = runs.run(folder, CALLS, TROUBLE=f"kill:{moment}", **STEPS)
        if traced.code == 7:
            break
        assert (traced.code, traced.stderr) == (-signal.SIGKILL, "")
        if not any(path.read_text().count("\n") > 3 for path in traced.traces.glob("*.json")):
            continue  # before its first call was made
        before = told("summary", traced.traces)[1]
        runs.recover(traced.traces)
        after = told("summary", traced.traces)[1]
        assert before["buckets"] == after["buckets"]
        with_files += any(traced.traces.glob("*.step-*.json"))
        check_whole(traced)
    assert with_files > 5
    check_whole(traced)


def test_a_disk_without_room_for_windows_files(tmp_path):
    traced = runs.run(tmp_path, CALLS, TROUBLE="windows", **STEPS)
    assert traced.code == 7
    (said,) = traced.complaints()
    assert "cannot write the trace, counting goes on" in said and "No space left" in said
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    assert runs.footer(lines)["dropped"]["write_error"] > 0
    assert "windows" not in runs.footer(lines)


@pytest.mark.parametrize("on", [True, False])
def test_without_a_schedule_there_is_nothing_to_do(on, tmp_path):
    settings = STEPS | ({} if on else {"TPROF_WINDOW_FILES": "0"}) | {"TPROF_SCHEDULE": "off"}
    traced = runs.run(tmp_path, CALLS, **settings)
    assert [line for line in traced.complaints()] == (
        ["tprof: TPROF_WINDOW_FILES: without TPROF_SCHEDULE there are no windows"] if on else []
    )
    assert len(traced.only_rank_file()) > 9


def test_without_its_ring_file_what_windows_files_have_is_known_all_the_same(tmp_path):
    """The snapshot beside the rank file has it: recovery from that ends the file and gives it its name."""
    places = {"TROUBLE": "places", "PLACES": "output=nfs shm=tmpfs", "TPROF_RING_DIR": "", "INSTANT_GATE": "300"}
    settings = STEPS | {"TPROF_STEP": "call:ncclReduceScatter@512", "TPROF_SCHEDULE": "wait=20,active=200"}
    traces = tmp_path / "traces"
    with runs.standing(tmp_path, runs.client("calls", 9000, 1), "inside", **places, **settings) as process:
        snapshot = runs.until(lambda: next(traces.glob(".*.snapshot"), None))
        runs.until(lambda: snapshot.stat().st_size > 1024)  # it has its first text
        process.kill()
    pathlib.Path(runs.header_of(traces)["ring"]).unlink()
    before, lines = told("summary", traces)[1], merged(traces, tmp_path / "before.json")
    assert len(calls_in(lines)) > 1000
    assert tprof("recover", "--force", traces).returncode == 1  # what came later is lost
    (part,) = traces.glob("*.step-21.json")
    assert len(calls_in(rankfile.closed(part))) > 1000 and not list(traces.glob("*.part"))
    assert told("summary", traces)[1]["buckets"] == before["buckets"]
    assert len(calls_in(merged(traces, tmp_path / "after.json"))) == len(calls_in(lines))
