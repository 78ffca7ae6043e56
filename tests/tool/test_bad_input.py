"""Each kind of bad input has its own clear line; nothing is guessed, nothing crashes."""

import json
import random

import pytest
from lib.tool import generate, tprof


@pytest.fixture
def complaint():
    """Returns complaint(command...), which gives the one line on standard error of a command that exits with 2."""

    def call(*arguments):
        result = tprof(*arguments)
        assert result.returncode == 2, (result.stdout, result.stderr)
        assert result.stdout == ""
        assert result.stderr.startswith("tprof: ") and result.stderr.count("\n") == 1
        return result.stderr

    return call


@pytest.fixture(params=["summary", "merge"])
def command(request, tmp_path_factory):
    """Yields both commands that read; a merge must not leave a file behind."""
    if request.param == "summary":
        yield lambda *paths: ("summary", *paths)
        return
    out = tmp_path_factory.mktemp("out")
    yield lambda *paths: ("merge", *paths, "-o", out / "m.json")
    assert list(out.iterdir()) == []


def test_folder_of_runs_names_the_runs(complaint, command, tmp_path):
    generate(tmp_path / "run-a", 1, 5)
    generate(tmp_path / "run-b", 1, 5)
    text = complaint(*command(tmp_path))
    assert "run-a" in text and "run-b" in text


def test_what_is_not_there(complaint, command, tmp_path):
    assert "no such file or folder" in complaint(*command(tmp_path / "nothing"))
    assert "expected rank files (*.json) in this folder, found none" in complaint(*command(tmp_path))


FOREIGN = [b'{"traceEvents":[]}\n', b"[1,2,3]", b"not json\n", b'[\n{"a":1}\n]\n', random.Random(1).randbytes(100_000)]


@pytest.mark.parametrize(
    "name, made, said",
    [
        ("rank.json", b"", "rank.json: empty file"),
        *(("rank.json", made, "not a tprof trace") for made in FOREIGN),
        ("rank.json.gz", b"\x1f\x8b\x08\x00" + bytes(100), "gzip"),
    ],
    ids=["empty", "events", "numbers", "text", "objects", "bytes", "gzip"],
)
def test_what_is_no_trace(complaint, command, tmp_path, name, made, said):
    (tmp_path / name).write_bytes(made)
    assert said in complaint(*command(tmp_path / name))


def test_duplicated_file(complaint, command, tmp_path):
    generate(tmp_path, 2, 5)
    (tmp_path / "copy.json").write_bytes((tmp_path / "rank-00001.json").read_bytes())
    text = complaint(*command(tmp_path))
    assert "copy.json" in text and "rank-00001.json" in text and "is a copy" in text


def test_the_same_path_twice(complaint, command, tmp_path):
    generate(tmp_path, 1, 5)
    for again in (tmp_path, tmp_path / "rank-00000.json", tmp_path / "../" / tmp_path.name):
        assert "rank-00000.json: is given twice" in complaint(*command(tmp_path, again))


def test_the_ends_of_two_processes_of_one_rank_in_one_file(
    complaint, command, tmp_path
):
    """The files are so large that `summary` reads only the two ends of a closed one."""
    generate(tmp_path / "one", 1, 2000)
    whole = (tmp_path / "one/rank-00000.json").read_text()
    base = json.loads(whole.splitlines()[1].rstrip(","))["args"]["base_time_ns"]
    other = whole.replace(f'"base_time_ns":{base}', f'"base_time_ns":{base + 1}')
    half = whole.index("\n", len(whole) // 2) + 1
    assert half > 1 << 17 and other[half:] != whole[half:]
    for name, file in (("well", other), ("mixed", whole[:half] + other[half:])):
        (tmp_path / f"{name}.json").write_text(file)
    assert tprof("summary", tmp_path / "well.json").returncode == 0
    assert "found another process's" in complaint(*command(tmp_path / "mixed.json"))


def test_of_two_runs_in_one_folder_the_last_is_taken_and_said(complaint, tmp_path):
    generate(tmp_path, 1, 5)
    text = (tmp_path / "rank-00000.json").read_text()
    other = text.replace('"run_id":"job-0"', '"run_id":"other"')
    other = other.replace('"pid":4000,"start_ns"', '"pid":9,"start_ns"')
    other = other.replace('"start_ns":1', '"start_ns":2')
    (tmp_path / "other.json").write_text(other.replace("e220a8397b1dcdaf", "ffff000000000000"))
    said = "there are 2 jobs of the same time; this is the last to start, other; not shown: job-0 (ranks 0 on "
    for command in (["summary"], ["check"], ["doctor"], ["merge", "-o", tmp_path / "m.json"]):
        result = tprof(*command, tmp_path)
        assert result.returncode == 0
        assert said in result.stdout + result.stderr, command
    for run in ("job-0", "other"):
        result = tprof("summary", tmp_path, "--run", run)
        assert result.returncode == 0 and f"run {run}: " in result.stdout
        assert "not shown" not in result.stdout and f"--run {run} -o" in result.stdout
    assert "run other: " in tprof("summary", tmp_path, "--run", "ot").stdout
    third = other.replace('"run_id":"other"', '"run_id":"otter"').replace('"pid":9,', '"pid":8,')
    (tmp_path / "third.json").write_text(third.replace("e220a8397b1dcdaf", "eeee000000000000"))
    assert "several runs begin with 'ot': " in complaint("summary", tmp_path, "--run", "ot")
    assert "run otter: " in tprof("summary", tmp_path, "--run", "ott").stdout
    (tmp_path / "third.json").unlink()
    assert "no attempt 2 of run 'other' here" in complaint(
        "summary", tmp_path, "--run", "other", "--attempt", "2"
    )
    assert "no run 'x' here" in complaint("summary", tmp_path, "--run", "x")


def test_two_ranks_of_a_communicator_with_one_number_are_not_said_to_claim_it(tmp_path):
    generate(tmp_path, 2, 5)
    file = tmp_path / "rank-00001.json"
    file.write_text(file.read_text().replace('"rank":1,"world_size"', '"rank":0,"world_size"'))
    result = tprof("summary", tmp_path)
    assert result.returncode == 1
    assert "claimed" not in result.stdout and "1 of 2 ranks has no trace: 1" in result.stdout
    assert "2 groups of processes, each with its own ranks" in " ".join(result.stdout.split())


def test_a_merge_of_cut_files_is_a_whole_array(tmp_path):
    generate(tmp_path / "run", 2, 6)
    file = tmp_path / "run/rank-00001.json"
    whole = file.read_bytes()
    first = whole.index(b"\n", whole.index(b"tprof_header")) + 1
    for size in range(first, len(whole), 37):
        file.write_bytes(whole[:size])
        result = tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json")
        assert result.returncode == 0, result.stderr
        merged = json.loads((tmp_path / "m.json").read_text())
        events = sum(1 for line in merged if line["ph"] == "X")
        assert events == 6 + whole[:size].count(b'"ph":"X"', 0, whole.rfind(b"\n", 0, size))
