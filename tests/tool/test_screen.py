"""The first screen of `tprof summary`: what it says first, and how it looks on a terminal and in a pipe."""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios

import pytest
from generator import causes, rank_files
from lib import handmade
from lib.build import GOLDEN, TPROF
from lib.loops import Loop
from lib.rankfile import named, parsed
from lib.tool import generate, told, tprof

COLOURS = re.compile(r"\x1b\[[\d;]*m")


def on_terminal(*arguments: object, columns: int = 80, **env: str) -> str:
    """Returns what a command shows on a terminal of so many columns."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    plain = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen([TPROF, *map(str, arguments)], stdout=side, stderr=side, env=plain | env) as process:
        os.close(side)
        shown = b""
        while True:
            try:
                shown += os.read(main, 1 << 16)
            except OSError:  # the other side is closed
                break
        process.wait()
    os.close(main)
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screen") / "job"
    rank_files.write(causes.case("fsdp", 4, None, 1, 6), folder, 1)
    return folder


def communicated(lines) -> float:
    return sum(line["dur"] for line in lines if line.get("cat") == "DEVICE" and "comm" in line["args"])


def test_it_says_first_what_moved_and_which_part_of_the_run_that_took(job):
    """By the definition, from the lines: time on the device per rank, of how long the run was."""
    calls = moved = device = end = 0
    begin = min(named(parsed(file), "tprof_header")[0]["base_time_ns"] for file in job.glob("rank-*.json"))
    for file in sorted(job.glob("rank-*.json")):
        lines = parsed(file)
        events = [line for line in lines if line["ph"] == "X"]
        made = [line for line in events if line["cat"] in ("ALLGATHER", "RESHARDING", "H2D", "D2H")]
        calls += len(made)
        moved += sum(line["args"]["bytes"] for line in made)
        device += communicated(lines)
        ran = named(lines, "tprof_ledger")[-1]["ts"]
        end = max(end, ran + (named(lines, "tprof_header")[0]["base_time_ns"] - begin) / 1000)
    first = tprof("summary", job).stdout.split("\n\n")[0].splitlines()
    assert re.search(r"run .*: 4 ranks on node000, ", first[0])
    found = re.fullmatch(r"([\d,]+) calls moved ([\d.]+) GiB", first[1])
    assert int(found[1].replace(",", "")) == calls
    assert float(found[2]) == pytest.approx(moved / 2**30, abs=0.006)
    found = re.fullmatch(
        r"Communication: ([\d.]+) ms per rank on the device \([\d.]+% exposed\), ([\d.]+)% of the run", first[2]
    )
    assert float(found[1]) == pytest.approx(device / 4 / 1000, abs=0.006)
    assert float(found[2]) == pytest.approx(100 * device / 4 / end, abs=0.06)


def communication(path) -> str:
    return next(line for line in tprof("summary", path).stdout.splitlines() if line.startswith("Communication"))


def test_its_share_is_that_of_the_time_which_the_first_line_tells_in_rank_files_and_merged(job, tmp_path):
    """One rank begins a fifth of the run after the others."""
    late = tmp_path / "late"
    shutil.copytree(job, late)
    files = sorted(late.glob("rank-*.json"))
    lines = parsed(files[0])
    end = named(lines, "tprof_ledger")[-1]["ts"]
    base = named(lines, "tprof_header")[0]["base_time_ns"]
    text = files[3].read_text()
    header = named(parsed(files[3]), "tprof_header")[0]
    more = base + round(end * 1000 / 5) - header["base_time_ns"]
    for clock in (header["base_time_ns"], header["monotonic_ns"]):
        text = text.replace(str(clock), str(clock + more))
    files[3].write_text(text)
    assert tprof("merge", late, "-o", tmp_path / "m.json").returncode == 0
    assert communication(late) == communication(tmp_path / "m.json")
    until = [named(parsed(f), "tprof_header")[0]["base_time_ns"] - base
             + named(parsed(f), "tprof_ledger")[-1]["ts"] * 1000 for f in files]  # fmt: skip
    device = sum(communicated(parsed(f)) for f in files)
    assert max(until) > 1.1 * min(until)  # it ends later, too
    share = float(re.search(r"([\d.]+)% of the run", communication(late))[1])
    assert share == pytest.approx(100 * device / 4 * 1000 / max(until), abs=0.06)


def test_ranks_of_which_no_count_is_known_are_not_divided_by(job, tmp_path):
    cut = tmp_path / "cut"
    shutil.copytree(job, cut)
    file = cut / "rank-00001.json"
    file.write_text(file.read_text()[: file.stat().st_size // 2])
    device = 0
    for rank in (0, 2, 3):
        device += communicated(parsed(cut / f"rank-{rank:05}.json"))
    said = tprof("summary", cut).stdout
    assert float(re.search(r"([\d.]+) ms per rank", said)[1]) == pytest.approx(device / 3 / 1000, abs=0.006)
    assert "of 3 of 4 ranks" in communication(cut)
    assert "1 process has no known counts: merge a" in said
    assert "of 4 ranks" not in communication(job)


def test_processes_that_a_rank_started_are_no_ranks(job, tmp_path):
    """They have its number, and no communicator."""
    more = tmp_path / "more"
    shutil.copytree(job, more)
    for rank in range(4):
        lines = parsed(more / f"rank-{rank:05}.json")
        parent = named(lines, "tprof_header")[0]
        child = parent | {"pid": 9000 + rank, "start_ns": parent["start_ns"] + 1,
                          "launcher": {"pid": parent["pid"], "start_ticks": 1}}  # fmt: skip
        copies = [handmade.row(bucket="H2D", name="cudaMemcpyAsync", dtype="bytes", comm=None, device=0)]
        kept = [handmade.metadata("tprof_header", **child),
                handmade.ledger(*copies, ts=named(lines, "tprof_ledger")[-1]["ts"])]  # fmt: skip
        (more / f"rank-{rank:05}.r1.json").write_text(handmade.array(*kept, handmade.footer()))
    first = tprof("summary", more).stdout.splitlines()
    assert re.search(r"run .*: 4 ranks, 8 processes on node000, ", first[0])
    assert communication(more) == communication(job)


def replayed(folder, *rows) -> None:
    folder.mkdir()
    lines = [handmade.header(world_size=1), handmade.comm(nranks=1), handmade.ledger(*rows), handmade.footer()]
    (folder / "rank-00000.json").write_text(handmade.array(*lines))


def test_calls_of_graphs_have_no_time_of_their_own_and_none_is_told(tmp_path):
    none = {"mode": "replayed", "calls": 5, "host_ns": 0, "host_ns_max": 0}
    replayed(tmp_path / "all", handmade.row(**none))
    assert communication(tmp_path / "all") == "Communication: 5 calls of CUDA graphs, which have no time of their own"
    replayed(tmp_path / "some", handmade.row(**none), handmade.row(host_ns=7000, host_ns_max=7000))
    said = tprof("summary", tmp_path / "some").stdout
    assert "Communication: 7.00 us per rank on the host" in said
    assert "(not in it: 5 calls of CUDA graphs, which have no time of their own)" in said


def test_the_figures_of_a_part_are_no_share_of_the_run(job):
    assert "of the run" not in tprof("summary", job, "--ops", "ALLGATHER").stdout
    assert "of the run" in tprof("summary", job, "--ranks", "0-1").stdout


def test_it_fits_a_screen_of_80_columns(job):
    text = tprof("summary", job).stdout
    assert max(len(line) for line in text.splitlines()) <= 80 + len(str(job))
    assert max(len(line) for line in text.split("Next:")[0].splitlines()) <= 80
    assert len(text.splitlines()) <= 25


def test_what_has_no_room_is_there_with_verbose(job):
    brief, whole = tprof("summary", job).stdout, tprof("summary", job, "--verbose").stdout
    for title in ("host time", "mean host", "algbw GB/s", "settings", "command"):
        assert title in whole and title not in brief
    assert "elements" in brief


@pytest.mark.parametrize(
    "options",
    [["summary", "--verbose"], ["summary", "--verbose", "--per-rank"], ["summary", "--by", "wait"],
     ["summary", "--by", "rank"], ["summary", "--by", "op"], ["summary", "--by", "range"], ["replay"], ["replay", "--mpi"], ["diff", "JOB"]],
    ids=" ".join,
)  # fmt: skip
def test_nothing_is_wider_than_the_terminal(job, options):
    command, *rest = [str(job) if word == "JOB" else word for word in options]
    shown = COLOURS.sub("", on_terminal(command, job, *rest, columns=80))
    over = [line for line in shown.split("Next:")[0].splitlines() if len(line) > 80 and str(job) not in line]
    assert over == [] and len(shown.splitlines()) > 3


@pytest.mark.parametrize(("known", "share"), [(4, False), (5, True)])
def test_a_share_of_exposed_time_that_says_nothing_of_most_calls_is_not_shown(known, share, tmp_path):
    """Reductions that took 10 us where it is known, half of them exposed, and copies of which it is not."""
    loop = Loop([[0]])
    loop.micro_batch(copies=10)
    for _ in range(9):
        loop.reduce(100)
    (file,) = loop.job.write(tmp_path / "job").glob("rank-*.json")
    times = f'"device_ns":18000,"device_timed":9,"exposure_known":{known},"exposure_known_ns":10000,"exposed_ns":5000'
    row = re.compile(r'("bucket":"ALLREDUCE",[^}]*)"device_ns":0,"device_timed":0')
    file.write_text(row.sub(rf"\1{times}", file.read_text()))
    text = tprof("summary", tmp_path / "job").stdout
    ends = {line.split()[0]: line.split("  ")[-1].strip() for line in text.splitlines() if line.startswith("  ")}
    assert (ends["ALLREDUCE"], ends["ALL"]) == ("5.00 us (50.0%)" if share else "-",) * 2
    first = "(50.0% exposed)" if share else "50.0% of 4 of 9 timed calls exposed, unknown for the others"
    assert first in text.split("\n\n")[0]
    assert f"% of the time of {known} calls where known" in text
    reduced = told("summary", tmp_path / "job")[1]["buckets"]["ALLREDUCE"]
    assert (reduced["exposure_known"], reduced["exposed_ns"]) == (known, 5000)
    live = [line.split() for line in tprof("top", tmp_path / "job", "--once").stdout.splitlines()]
    assert [line[-1] for line in live if line[:1] == ["ALLREDUCE"]] == ["50.0%" if share else "-"]
    assert ["exposed:", "known", "of", str(known), "of", "9", "timed", "calls"] in live


def test_a_trace_without_calls_says_so_and_where_to_go_on(tmp_path):
    generate(tmp_path / "job", 1, 0)
    file = tmp_path / "job/rank-00000.json"
    ledgers = re.compile(r'"rows":\[.*?\]\]')
    file.write_text(ledgers.sub('"rows":[]', file.read_text()))
    text = tprof("summary", tmp_path / "job").stdout
    assert text.count("warning: no NCCL call and no CUDA copy was counted\n") == 1
    assert re.search(r"^Next: tprof doctor ", text, re.M)


def test_colours_are_for_terminals_only_and_no_color_is_obeyed():
    colourful = on_terminal("summary", GOLDEN / "two_ranks", columns=200)
    assert "\x1b[1;31merror:\x1b[0m rank 1 did not close" in colourful
    plain = tprof("summary", GOLDEN / "two_ranks").stdout
    assert "\x1b" not in plain
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal("summary", GOLDEN / "two_ranks", **env)
    assert "\x1b" not in on_terminal("summary", GOLDEN / "two_ranks", "--json")


def test_a_terminal_breaks_sentences_and_a_pipe_does_not():
    piped = tprof("check", GOLDEN / "two_ranks").stdout
    shown = COLOURS.sub("", on_terminal("check", GOLDEN / "two_ranks", columns=60))
    assert piped.split() == shown.split()
    sentences = [line for line in shown.splitlines() if "  " not in line.strip()]
    assert max(map(len, sentences)) <= 60 < max(map(len, piped.splitlines()))


@pytest.mark.parametrize("command", ["summary", "run", "merge"])
def test_help_fits_a_terminal(command):
    piped = tprof(command, "--help").stdout
    shown = COLOURS.sub("", on_terminal(command, "--help", columns=80))
    assert piped.split() == shown.split()
    options = shown[: shown.index("Examples:")].splitlines()
    assert max(map(len, options)) <= 80 < max(map(len, piped.splitlines()))
    # A column of its own says what an option does.
    begun = next(i for i, line in enumerate(options) if line.startswith("  --run"))
    assert all(line.startswith(" " * 30) for line in options[begun + 1 : begun + 2])


def test_a_terminal_without_a_size_is_a_launchers_pipe():
    """Open MPI gives its processes such a one, and its own output may be a file."""
    assert on_terminal("summary", GOLDEN / "two_ranks", columns=0) == tprof("summary", GOLDEN / "two_ranks").stdout


def test_text_as_deep_as_the_screen_is_wide_ends():
    """Where nothing of a line fits, nothing is broken."""
    for columns in (1, 2, 3, 21, 22):
        assert on_terminal("summary", GOLDEN / "two_ranks", columns=columns).split()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["summary", "--verbos"], "did you mean --verbose? (see tprof --help"),
        (["merge", "--clock", "foo", "-o", "x.json"], "expected one of collective|realtime; found foo"),
    ],
)
def test_what_is_mistyped_is_told(arguments, hint):
    done = tprof(*arguments)
    assert done.returncode == 2 and hint in done.stderr.replace("tprof summary --help", "tprof --help")


def test_metrics_replace_only_metrics(tmp_path):
    generate(tmp_path / "job", 1, 10)
    mine = tmp_path / "notes.txt"
    mine.write_text("my own\n")
    (tmp_path / "link").symlink_to(mine)
    for name in ("notes.txt", "link", "job"):
        done = tprof("metrics", tmp_path / "job", "--textfile", tmp_path / name)
        assert done.returncode == 2 and "is no file of tprof metrics" in done.stderr
    assert mine.read_text() == "my own\n"
    for _ in range(2):
        assert tprof("metrics", tmp_path / "job", "--textfile", tmp_path / "counters.prom").returncode == 0


@pytest.mark.parametrize("timed", [1, 20, 96, 100])
def test_the_time_of_a_few_calls_is_no_share_of_the_run(timed, tmp_path):
    """As with windows or TPROF_TIMING=events:16, where only some calls are timed."""
    replayed(tmp_path / "job", handmade.row(calls=100, device_timed=timed, device_ns=timed * 1000))
    said = communication(tmp_path / "job")
    assert ("% of the run" in said) == (timed >= 96), said
    assert (f"; timed: {timed} of 100 calls" in said) == (timed != 100)
