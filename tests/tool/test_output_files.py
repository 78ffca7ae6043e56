"""Output that can't be written, or is stopped on its way: the tool says so, and leaves nothing half done."""

import gzip
import os
import resource
import shutil
import signal
import subprocess
import time

import pytest
from generator import scale
from lib.build import BUILD
from lib.clocks import clock_job
from lib.tool import told, tprof


OUTPUTS = [["merge", "-o"], ["anonymize", "-o"], *(["export", to] for to in ("--sqlite", "--csv")),
           *(["export", to, "-o"] for to in ("--kineto", "--inspector"))]  # fmt: skip


@pytest.fixture
def traces(tmp_path):
    clock_job(tmp_path / "run", 1, 2, 500)
    return tmp_path / "run"


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_merge_replaces_no_rank_file(traces):
    before = content(traces)
    result = tprof("merge", traces, "-o", traces / "rank-00001.json")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1 and "is no merged trace" in result.stderr
    assert content(traces) == before


@pytest.mark.parametrize(
    "words",
    [
        ["merge", "-o", "x.json.gz"],
        ["report", "-o", "x.html"],
        ["export", "--sqlite", "x.db"],
        ["export", "--csv", "x"],
        ["budget", "--steps", "1", "--write", "x.json"],
        ["metrics", "--textfile", "x.prom"],
    ],
)
def test_what_was_given_is_named_and_not_where_it_is_written_first(words, traces, tmp_path):
    """Nobody can make files in /proc, root neither."""
    missing = tmp_path / "no/such"
    why = {
        missing: f"there is no folder {missing}: make it, or give another name",
        "/proc": "No such file or directory: give a name in a writable folder",
    }
    for folder, reason in why.items():
        command, *options, name = words
        done = tprof(command, traces, *options, f"{folder}/{name}")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"tprof: {folder}/{name}: can't be written: {reason}\n"
    assert not missing.parent.exists()


@pytest.mark.parametrize("there", ["notes of mine\n", "{}", "[\n]\n", "folder"])
@pytest.mark.parametrize("words", [*OUTPUTS, ["export", "--parquet"]])
def test_nothing_of_the_users_is_replaced(words, there, traces, tmp_path):
    output = tmp_path / "mine"
    if there == "folder":
        output.mkdir()
    (output / "notes" if there == "folder" else output).write_text(there)
    done = tprof(words[0], traces, *words[1:], output)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    left = [output / "notes"] if there == "folder" else []
    assert sorted(tmp_path.rglob("*")) == sorted([output, traces, *traces.iterdir(), *left])
    assert (left or [output])[0].read_text() == there


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_merge_replaces_a_merged_trace_and_an_empty_file(traces, tmp_path, name):
    file = tmp_path / name
    file.write_bytes(b"")
    for _ in range(2):
        assert tprof("merge", traces, "-o", file).returncode == 0
    text = gzip.open(file).read() if name.endswith(".gz") else file.read_bytes()
    assert text.endswith(b"\n]\n")


def test_a_merged_trace_in_the_folder_is_known_by_its_first_lines(traces):
    """The rest is not read, so what is wrong in it does not matter."""
    merged = traces / "trace.json"
    assert tprof("merge", traces, "-o", merged).returncode == 0
    merged.write_text(merged.read_text()[:-2] + "no line of a trace\n" * 100_000)
    result = tprof("summary", traces)
    assert result.returncode == 0 and "trace.json: a merged trace, left out" in result.stdout


def to(stdout, traces, *arguments, **options):
    command = [BUILD / "tprof", *arguments]
    return subprocess.run(
        list(map(str, command)), stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, **options
    )


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.mark.parametrize("words", OUTPUTS)
def test_a_file_size_limit_leaves_nothing_half(words, traces, tmp_path):
    result = to(None, traces, words[0], traces, *words[1:], tmp_path / "out", preexec_fn=small_files)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_standard_output_beyond_a_limit_is_an_error(traces, tmp_path):
    with open(tmp_path / "report.json", "w") as report:
        result = to(report, traces, "summary", traces, "--json", preexec_fn=small_files)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", OUTPUTS[:4])
def test_a_signal_leaves_nothing_half(tmp_path, words, number):
    """The signal comes when part of the output is there, unless all of it is by then."""
    scale.write(tmp_path / "run", 16, 10_000, slow=False)
    calls = calls_in(tmp_path / "run")
    output = tmp_path / "out.json.gz"
    command = [BUILD / "tprof", words[0], tmp_path / "run", *words[1:], output]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and len(list(tmp_path.iterdir())) == 1:
            time.sleep(0.001)
        process.send_signal(number)
    assert process.returncode in (0, -number)
    whole = process.returncode == 0 or output.exists()  # all of it was there before the signal came
    assert {path.name for path in tmp_path.iterdir()} == {"run", *([output.name] if whole else [])}
    if whole and words[0] != "export":
        assert calls_in(output) == calls


@pytest.mark.parametrize("words", OUTPUTS[:4])
def test_a_signal_at_the_first_moment_leaves_nothing(tmp_path, words, traces):
    """The output was made a moment ago, and nothing that opens it next makes it again. A database did so in one of
    25 runs."""
    command = [BUILD / "tprof", words[0], traces, *words[1:], tmp_path / "out"]
    part = f"{tmp_path}/out.part"
    for _ in range(50):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            while not os.path.exists(part) and process.poll() is None:
                pass
            process.send_signal(signal.SIGTERM)
        left = {path.name for path in tmp_path.iterdir()} - {"run"}
        assert not left or left == {"out"}, left  # all of it was there before the signal came
        for name in left:
            shutil.rmtree(tmp_path / name) if (tmp_path / name).is_dir() else (tmp_path / name).unlink()


def calls_in(traces):
    return told("summary", traces)[1]["buckets"]["ALL"]["calls"]
