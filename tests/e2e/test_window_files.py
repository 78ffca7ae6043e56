"""Windows have files of their own (TPROF_WINDOW_FILES). The steps of the program here are known:
with B blocks a step gathers 1 + 2 B times and scatters 1 + B times, and copies once each way."""

import collections
import json
import os
import shutil
import signal

from lib import launch, rankfile
from lib.build import BUILD
from lib.contract import not_as_the_contract_says
from lib.rankfile import accepted, calls_of, lines_of, named
from lib.runs import until
from lib.tally import returned
from lib.tool import merged, told, tprof, worse_than_notes

RANKS, STEPS, BLOCKS = 2, 9, 2
STEP = collections.Counter(ncclAllGather=1 + 2 * BLOCKS, ncclReduceScatter=1 + BLOCKS, cudaMemcpyAsync=2)
# A step ends with the copy of the loss.
WINDOWS = {
    "TPROF_WINDOW_FILES": "1", "TPROF_SCHEDULE": "warmup=1,active=2", "TPROF_STEP": "call:cudaMemcpyAsync@4",
    "TPROF_TIMING": "events",
}  # fmt: skip


def trainer(steps):
    return [BUILD / "native_trainer", "--ranks", RANKS, "--steps", steps, "--blocks", BLOCKS]


def is_event(line):
    return line["ph"] != "M"


def calls(lines):
    return [line for line in lines if line["ph"] == "X" and line["cat"] not in ("NVTX", "DEVICE", "BUSY", "GRAPH", "COMM")]


def trained(folder, **settings):
    done = launch.start(trainer(STEPS), folder, **WINDOWS | settings)
    assert done.code == 0 and done.words_of_ours() == []
    return done


def read_whole(path):
    """Returns the lines of a window's file, as any reader of JSON has them."""
    lines = json.loads(path.read_text())
    assert not_as_the_contract_says(lines_of(path)) == []
    return lines


def put_together(traces, to):
    """Writes what the library would have written without windows' files, by the contract's page."""
    to.mkdir()
    for file in rankfile.read_folder(traces):
        lines = file.path.read_text().splitlines(keepends=True)
        whole = []
        for line in lines:
            if '"tprof_window"' in line:
                window = json.loads(line.rstrip().removesuffix(","))
                of_file = (traces / window["args"].pop("file")).read_text().splitlines(keepends=True)
                del window["args"]["lines"]
                whole += [*of_file, json.dumps(window, separators=(",", ":")) + ",\n"]
                whole = [x for x in whole if x not in ("[\n", "]\n")]
            elif '"tprof_footer"' in line:
                footer = json.loads(line)
                assert footer["args"].pop("windows")["files"] == len(rankfile.windows_of(file.path))
                whole.append(json.dumps(footer, separators=(",", ":")) + "\n")
            elif line not in ("[\n", "]\n"):
                whole.append(line)
        headers = [i for i, line in enumerate(whole) if '"tprof_header"' in line]
        of_windows = {i for first in headers[1:] for i in range(first - 2, first + 1)}
        again = [i for i, line in enumerate(whole) if '"tprof_window"' in line]
        twice = set(again[0::2])  # a file's last line
        kept = [line for i, line in enumerate(whole) if i not in of_windows | twice]
        kept = [line.rstrip().removesuffix(",") for line in kept]
        (to / file.path.name).write_text("[\n" + ",\n".join(kept) + "\n]\n")


def test_lines_of_each_window_are_in_a_file_of_its_own(tmp_path):
    done = trained(tmp_path)
    for file in done.ranks():
        assert not_as_the_contract_says(lines_of(file.path)) == []
        tally = returned(done.tallies()[file.header["pid"]])
        rows = file.ledger_rows()
        assert {name: calls_of(rows)[name] for name in STEP} == {name: STEPS * n for name, n in STEP.items()}
        assert calls_of(rows)["ncclAllGather"] == tally["ncclAllGather"]
        windows = rankfile.windows_of(file.path)
        assert list(windows) == [f"{file.path.stem}.step-{n}.json" for n in (2, 5, 8)]
        said = {window["file"]: window for window in named(file.lines, "tprof_window")}
        assert list(said) == list(windows) and not calls(file.lines)
        for name, window in windows.items():
            lines = read_whole(window.path)
            of_calls = calls(lines)
            assert collections.Counter(call["name"] for call in of_calls) == STEP + STEP
            assert lines[-1]["args"] | {"file": name} == said[name] and said[name]["lines"] == len(of_calls)
            # The file has the communicators, streams and threads that its lines name.
            assert {call["args"]["comm"] for call in of_calls if "comm" in call["args"]} <= {
                comm["comm"] for comm in named(lines, "tprof_comm")
            }
            assert {call["args"].get("stream", 0) for call in of_calls} <= {0} | {
                stream["stream"] for stream in named(lines, "tprof_stream")
            }
            assert {event["tid"] for event in lines if is_event(event)} <= {
                line["tid"] for line in lines if line["name"] == "thread_name"
            }
        in_files = sum(window["lines"] for window in said.values())
        assert file.footer["windows"] == {"files": 3, "lines": in_files}
        with_lines = sum(row["calls"] + row["failed"] for row in rows if row["bucket"] not in ("D2D", "H2H", "MANAGED"))
        assert in_files + file.footer["dropped"]["window"] == with_lines
    assert worse_than_notes(done.traces) == []


def test_a_window_whose_calls_have_no_lines_is_completed_all_the_same(tmp_path):
    done = trained(tmp_path, TPROF_OPS="ncclBroadcast", TPROF_TIMING="host")
    for file in done.ranks():
        windows = rankfile.windows_of(file.path)
        assert len(windows) == 3 and not any(calls(read_whole(window.path)) for window in windows.values())


def test_they_are_read_as_if_their_lines_were_the_rank_files(tmp_path):
    traces, plain = trained(tmp_path).traces, tmp_path / "plain"
    put_together(traces, plain)
    reports = [("check",), *(("summary", *how) for how in ((), ("--by", "step"), ("--by", "phase"), ("--by", "rank"),
                                                            ("--top", "9"), ("--steps", "2-3")))]  # fmt: skip
    for command, *how in reports:
        assert told(command, traces, *how) == told(command, plain, *how), how

    def sorted_events(folder, to):
        return sorted(map(json.dumps, filter(is_event, merged(folder, tmp_path / to))))

    events = sorted_events(traces, "with.json")
    assert events == sorted_events(plain, "without.json")
    assert len(events) > RANKS * 6 * STEP.total()  # device times and arrows are among them
    copies = tmp_path / "anonymous"
    assert tprof("anonymize", traces, "-o", copies).returncode == 0
    assert sorted(path.name for path in copies.iterdir()) == [f"rank-0000{rank}.json" for rank in range(RANKS)]
    assert len(sorted_events(copies, "anonymous.json")) == len(events)
    assert worse_than_notes(copies) == []


def test_the_user_deletes_some_and_keeps_others_without_their_rank_file(tmp_path):
    traces = trained(tmp_path).traces
    whole = told("summary", traces)[1]
    step_5 = told("summary", traces, "--by", "step")[1]["steps"][4]["buckets"]
    alone = tmp_path / "alone"
    alone.mkdir()
    for path in traces.glob("*.step-5.json"):
        shutil.move(path, alone)
    code, report = told("summary", traces)
    assert code == 0 and report["buckets"] == whole["buckets"]
    assert report["dropped"] == whole["dropped"] + RANKS * 2 * STEP.total()
    report_of_rest = report
    (missing,) = [p for p in report["findings"] if p["kind"] == "missing_windows"]
    assert f"{RANKS} of {RANKS * 3} window files are missing" in missing["text"]
    assert worse_than_notes(traces) == []
    # The files that were kept are a trace of their own lines.
    code, report = told("summary", alone)
    assert code == 0 and [p["kind"] for p in report["findings"] if p["severity"] != "note"] == []
    for bucket in ("ALLGATHER", "RESHARDING", "H2D", "D2H"):
        for amount in ("calls", "count", "elements", "bytes"):
            share = whole["buckets"][bucket][amount] * 2
            assert report["buckets"][bucket][amount] * STEPS == share, (bucket, amount)
    assert step_5["ALLGATHER"]["calls"] == RANKS * STEP["ncclAllGather"]
    assert tprof("check", alone).returncode == 2
    assert calls(merged(alone, tmp_path / "alone.json"))
    # Traces that are made of the other files say what these lacked.
    copies = tmp_path / "anonymous"
    assert tprof("anonymize", traces, "-o", copies).returncode == 0
    merged(traces, tmp_path / "merged.json")
    for made in (copies, tmp_path / "merged.json"):
        again = told("summary", made)[1]
        assert made != copies or again["dropped"] == report_of_rest["dropped"]
        assert [p["text"] for p in again["findings"] if p["kind"] == "missing_windows"] == [missing["text"]]


def test_a_file_is_whole_while_the_job_runs_and_nothing_is_lost_when_it_is_killed(tmp_path):
    traces = tmp_path / "traces"
    settings = WINDOWS | {"TPROF_SCHEDULE": "skip_first=1,wait=97,active=2,skip_first_wait=1"}
    with launch.running(trainer(10**7), tmp_path, **settings) as process:
        first = [traces / f"rank-{rank:05}.step-2.json" for rank in range(RANKS)]
        until(lambda: all(path.exists() for path in first))
        for path in first:
            assert collections.Counter(call["name"] for call in calls(read_whole(path))) == STEP + STEP
        running = told("summary", traces)[1]
        assert running["buckets"]["ALLGATHER"]["calls"] > RANKS * STEP["ncclAllGather"]
        assert calls(merged(traces, tmp_path / "running.json"))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: "running" not in {p["kind"] for p in told("summary", traces)[1]["findings"]})
    before = told("summary", traces)[1]["buckets"]
    lines_before = len(calls(merged(traces, tmp_path / "before.json")))
    until(lambda: tprof("recover", traces).returncode == 0)  # the last of them may linger
    assert told("summary", traces)[1]["buckets"] == before
    assert len(calls(merged(traces, tmp_path / "after.json"))) == lines_before
    for file in rankfile.read_folder(traces):
        windows = rankfile.windows_of(file.path)
        said = [window["file"] for window in named(file.lines, "tprof_window") if "file" in window]
        assert said == list(windows)
        every = calls(file.lines)
        for window in windows.values():
            every += calls(window.lines)
        seqs = [(call["args"]["comm"], call["args"]["seq"]) for call in every if "comm" in call["args"]]
        assert len(set(seqs)) == len(seqs)
        with_lines = sum(row["calls"] for row in file.ledger_rows() if row["bucket"] not in ("D2D", "H2H", "MANAGED"))
        assert sum(accepted(call["args"]) for call in every) + file.footer["dropped"]["window"] == with_lines


def test_the_quota_is_each_files(tmp_path):
    quota = 1500
    for file in trained(tmp_path, TPROF_QUOTA=str(quota), TPROF_TIMING="host").ranks():
        windows = rankfile.windows_of(file.path)
        assert len(windows) == 3
        for window in windows.values():
            written = [line for line in lines_of(window.path) if '"ph":"X"' in line]
            size = sum(len(line) + len(",\n") for line in written)
            assert quota - max(map(len, written)) - 2 < size <= quota
        in_files = file.footer["windows"]["lines"]
        assert in_files + file.footer["dropped"]["quota"] == 3 * 2 * STEP.total()


def test_recover_leaves_a_windows_file_and_what_its_process_needs(tmp_path):
    """Given that file alone, the command has nothing to recover, and must leave the ring file alone."""
    traces = tmp_path / "traces"
    settings = WINDOWS | {"TPROF_RING_DIR": str(traces), "TPROF_SCHEDULE": "skip_first=1,wait=97,active=2"}
    with launch.running(trainer(10**7), tmp_path, **settings) as process:
        until(lambda: len(list(traces.glob("*.step-*.json"))) >= RANKS)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    rings = sorted(traces.glob(".*.ring"))
    assert len(rings) == RANKS
    for path in traces.glob("*.step-*.json"):
        before = path.read_bytes()
        done = tprof("recover", path)
        assert done.returncode == 0 and "its rank file is rank-0000" in done.stdout
        assert path.read_bytes() == before
    assert sorted(traces.glob(".*.ring")) == rings
