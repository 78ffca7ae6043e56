"""tprof merge: one trace that holds what the rank files held."""

import gzip
import json
import resource

import pytest
from generator import scale
from lib.rankfile import lines_of
from lib.tool import generate, tprof


def events_of(file):
    return [json.loads(line) for line in lines_of(file) if '"ph":"X"' in line]


def test_every_event_keeps_its_arguments_and_gets_one_axis(tmp_path):
    """Times are compared as integer nanoseconds since 1970, computed here from the rank files."""
    generate(tmp_path / "run", 3, 200)
    tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json")
    base = 1763683200000000000

    def instants(file, base_of_pid):
        found = []
        for line in lines_of(file):
            if '"ph":"X"' not in line or '"cat":"LANE"' in line:
                continue
            event = json.loads(line, parse_float=str)
            micros, nanos = event["ts"].split(".")
            at = base_of_pid(event["pid"]) + int(micros) * 1000 + int(nanos)
            function = event["args"].pop("op", event["name"])  # in the merged trace the name is for people
            found.append((event["pid"], at, event["dur"], function, str(event["args"])))
        return found

    expected = []
    for file in sorted((tmp_path / "run").iterdir()):
        expected += instants(file, lambda pid: base + pid)
    assert instants(tmp_path / "m.json", lambda pid: base) == expected


def test_ranks_are_processes_in_order(tmp_path):
    generate(tmp_path / "run", 12, 10)
    (tmp_path / "run/rank-00000.json").rename(tmp_path / "run/zz.json")
    tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json")
    lines = json.loads((tmp_path / "m.json").read_text())
    names = {line["pid"]: line["args"]["name"] for line in lines if line["name"] == "process_name"}
    order = {
        line["pid"]: line["args"]["sort_index"]
        for line in lines
        if line["name"] == "process_sort_index"
    }
    assert names == {rank: f"rank {rank} on node{rank // 8}" for rank in range(12)}
    assert order == {rank: rank for rank in range(12)}
    headers = [line["pid"] for line in lines if line["name"] == "tprof_header"]
    assert headers == list(range(12))


def test_output_within_the_folder_is_not_read_again(tmp_path):
    generate(tmp_path, 2, 20)
    for _ in range(2):
        assert tprof("merge", tmp_path, "-o", tmp_path / "merged.json").returncode == 0
        assert len(events_of(tmp_path / "merged.json")) == 40
    result = tprof("summary", tmp_path)
    assert result.returncode == 0
    assert "merged.json: a merged trace, left out" in result.stdout


def test_processes_without_a_rank_get_pids_of_their_own(tmp_path):
    generate(tmp_path / "run", 2, 10)
    text = (tmp_path / "run/rank-00000.json").read_text()
    for pid in (0, 1):  # OS pids that look like ranks
        other = text.replace('"rank":0,"world_size"', '"rank":null,"world_size"')
        other = other.replace('"pid":4000,"start_ns"', f'"pid":{pid},"start_ns"')
        (tmp_path / f"run/other-{pid}.json").write_text(other)
    assert tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json").returncode == 0
    pids = [event["pid"] for event in events_of(tmp_path / "m.json")]
    assert {pid: pids.count(pid) for pid in pids} == {0: 10, 1: 10, 2: 10, 3: 10}


def damage(file):
    """Makes one of a file's calls invalid JSON, and returns what is said of it."""
    text = file.read_text()
    at = text.index('{"name":"ncclAllReduce"')
    file.write_text(text[:at] + text[at:].replace('"ts":', '"ts"', 1))
    return f"{file}: byte {at}: expected one JSON object on this line"


@pytest.mark.parametrize("name", ["m.json", "m.json.gz"])
def test_ranks_with_a_corrupt_line_are_left_out_and_the_others_merged(
    tmp_path, name
):
    """The output is as if their files were not there; messages and the exit code tell."""
    run = tmp_path / "run"
    generate(run, 5, 2000)
    said = [damage(run / f"rank-0000{rank}.json") for rank in (1, 3)]
    result = tprof("merge", run, "-o", tmp_path / name)
    assert result.returncode == 1
    assert [line for line in result.stderr.splitlines() if "byte" in line] == [
        f"error: {what}; left out" for what in said
    ]
    assert "3 processes" in result.stderr
    for rank in (1, 3):
        (run / f"rank-0000{rank}.json").unlink()
    assert tprof("merge", run, "-o", tmp_path / f"expected-{name}").returncode == 0
    assert (tmp_path / name).read_bytes() == (tmp_path / f"expected-{name}").read_bytes()


def test_a_pipe_gets_the_others_too(tmp_path):
    generate(tmp_path / "run", 2, 100)
    what = damage(tmp_path / "run/rank-00001.json")
    result = tprof("merge", tmp_path / "run", "-o", "-")
    assert result.returncode == 1 and f"error: {what}; left out" in result.stderr
    assert {line["pid"] for line in json.loads(result.stdout)} == {0}


def test_gzip_output_is_one_member(tmp_path):
    """Older viewers read the first member only."""
    generate(tmp_path / "run", 2, 5000)
    tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json.gz")
    import zlib

    data = (tmp_path / "m.json.gz").read_bytes()
    member = zlib.decompressobj(wbits=31)
    text = member.decompress(data)
    assert member.eof and member.unused_data == b""
    tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json")
    assert text == (tmp_path / "m.json").read_bytes()
    assert gzip.decompress(data) == text


@pytest.mark.parametrize("lines", [1000, 100_000])
def test_memory_does_not_grow_with_the_input(tmp_path, lines):
    """8 ranks of up to 22 MB each are merged within a heap of 150 MiB."""
    scale.write(tmp_path / "run", 8 if lines > 1000 else 2, lines, slow=False)

    def bounded():
        resource.setrlimit(resource.RLIMIT_DATA, (150 << 20, 150 << 20))

    result = tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json", preexec_fn=bounded, timeout=120)
    assert result.returncode == 0, result.stderr
