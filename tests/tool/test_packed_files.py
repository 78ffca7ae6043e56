"""Rank files that were compressed, or printed anew by another program, say what they said; or a line says why not."""

import bz2
import functools
import gzip
import json
import lzma
import resource
import shutil
import subprocess

import pytest
from lib.clocks import clock_job
from lib.tool import tprof

FIGURES = {"check": [], "summary": ["--by", "step"], "report": []}
UNPACKERS = {".zst": "zstd", ".xz": "xz", ".bz2": "bzip2", ".lz4": "lz4"}


def pack(ending, data):
    if ending in (".zst", ".lz4"):
        return subprocess.run([UNPACKERS[ending], "-c"], input=data, capture_output=True, check=True).stdout
    return {".gz": gzip, ".bz2": bz2, ".xz": lzma}[ending].compress(data)


def needs(ending):
    if ending in UNPACKERS and shutil.which(UNPACKERS[ending]) is None:
        pytest.skip(f"no {UNPACKERS[ending]} in PATH")


def anew(text, how):
    """Returns a trace as other programs print it. Numbers keep their digits."""
    values = json.loads(text, parse_float=lambda digits: f"@{digits}@")
    if how == "mark":
        return "\ufeff" + (text if isinstance(text, str) else text.decode())
    if how == "a value a line":  # jq .
        made = json.dumps(values, indent=2)
    elif how == "one line":  # jq -c .
        made = json.dumps(values, separators=(",", ":"))
    elif how == "sorted keys":  # jq -S .
        made = json.dumps(values, indent=2, sort_keys=True)
    elif how == "an event a line":  # jq -c .[]
        made = "\n".join(json.dumps(value, separators=(",", ":")) for value in values) + "\n"
    elif how == "events":  # jq .[]
        made = "\n".join(json.dumps(value, indent=2) for value in values) + "\n"
    elif how == "mark and a value a line":
        made = "\ufeff" + json.dumps(values, indent="\t")
    return made.replace('"@', "").replace('@"', "")


@pytest.fixture
def job(tmp_path):
    clock_job(tmp_path / "plain", 1, 3, 60)
    shutil.copytree(tmp_path / "plain", tmp_path / "job")
    return tmp_path


def change(job, change_one):
    """Makes another file of that of rank 1: (its name, its bytes) -> the same of the new one."""
    file = job / "job" / "rank-00001.json"
    name, data = change_one(file.name, file.read_bytes())
    file.unlink()
    (job / "job" / name).write_bytes(data)
    return job / "job" / name


def told(folder):
    found = []
    for command, more in FIGURES.items():
        text = tprof(command, folder, *more, "--json").stdout
        found.append({k: v for k, v in json.loads(text).items() if k not in ("files", "path", "paths")})
    return found


def assert_reads_the_same(job):
    assert told(job / "job") == told(job / "plain")
    slices = []
    for folder in ("job", "plain"):
        done = tprof("merge", job / folder, "-o", job / f"{folder}.json")
        assert done.returncode == 0, done.stderr
        slices.append([line for line in json.loads((job / f"{folder}.json").read_text()) if line["ph"] == "X"])
    assert slices[0] == slices[1] and len({line["pid"] for line in slices[0]}) == 3


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ending", [".gz", *UNPACKERS])
@pytest.mark.parametrize("named", ["as it is", "as if plain", "members"])
def test_what_was_compressed_is_read(job, ending, named):
    needs(ending)

    def packed(name, data):
        half = data.index(b"\n", len(data) // 2) + 1
        parts = [data[:half], data[half:]] if named == "members" else [data]
        return name + ("" if named == "as if plain" else ending), b"".join(pack(ending, part) for part in parts)

    change(job, packed)
    assert_reads_the_same(job)


HOW = ["a value a line", "one line", "sorted keys", "an event a line", "events", "mark", "mark and a value a line"]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_what_was_printed_anew_is_read(job, how, ending):
    change(job, lambda name, data: (name + ending, (pack(ending, anew(data, how).encode()) if ending else anew(data, how).encode())))
    assert_reads_the_same(job)


@pytest.mark.parametrize("options", [["."], ["-c", "."], [".[]"], ["-c", ".[]"]])
def test_what_jq_itself_printed_is_read(job, options):
    if shutil.which("jq") is None:
        pytest.skip("no jq in PATH")
    jq = functools.partial(subprocess.run, ["jq", *options], capture_output=True, check=True)
    change(job, lambda name, data: (name, jq(input=data).stdout))
    found = told(job / "job")[1]
    assert [row["calls"] for row in found["ops"]] == [row["calls"] for row in told(job / "plain")[1]["ops"]]


@pytest.mark.parametrize("ending", ["", ".gz", *UNPACKERS])
def test_a_file_that_is_cut_is_read_as_far_as_it_goes_or_named(job, ending):
    needs(ending)
    whole = (job / "job" / "rank-00001.json").read_bytes()
    for how in HOW[:2] if not ending else [None]:
        data = anew(whole, how).encode() if how else pack(ending, whole)
        for share in (0.02, 0.5, 0.95):
            file = job / "job" / ("rank-00001.json" + ending)
            (job / "job" / "rank-00001.json").unlink(missing_ok=True)
            file.write_bytes(data[: int(len(data) * share)])
            done = tprof("check", job / "job")
            assert done.returncode in (0, 1) and "rank 1" in done.stdout + done.stderr or file.name in done.stdout + done.stderr


@pytest.mark.parametrize("ending", [".gz", *UNPACKERS])
def test_an_empty_file_is_told_to_be_empty(job, ending):
    needs(ending)
    file = change(job, lambda name, data: (name + ending, pack(ending, b"")))
    done = tprof("summary", job / "job")
    assert f"{file}: empty file" in done.stdout + done.stderr


@pytest.mark.parametrize("ending", UNPACKERS)
def test_without_the_program_a_line_says_what_to_do(job, ending):
    needs(ending)
    file = change(job, lambda name, data: (name + ending, pack(ending, data)))
    done = tprof("summary", job / "job", env={"PATH": "/nowhere"})
    said = f"{file}: compressed by {UNPACKERS[ending]}, which is not installed here"
    assert said in done.stdout + done.stderr and f"{UNPACKERS[ending]} -d" in done.stdout + done.stderr


@pytest.mark.parametrize("begin, what", [(b"PK\x03\x04", "zip"), (b"7z\xbc\xaf\x27\x1c", "7-Zip")])
def test_an_archive_is_told_to_be_one(job, begin, what):
    file = change(job, lambda name, data: (name, begin + data))
    done = tprof("summary", job / "job")
    assert f"{file}: a {what}" in done.stdout + done.stderr


@pytest.mark.one_of(3)
@pytest.mark.parametrize("ending", [".gz", ".zst", ".xz"])
@pytest.mark.parametrize("begin, more", [(b"[\n", b"\0"), (b'[ {"name":"tprof_header","args":', b"["), (b'[ "tprof_', b"x")])
def test_a_file_that_becomes_large_takes_bounded_memory(job, ending, begin, more):
    needs(ending)
    text = pack(ending, begin) + pack(ending, more * (32 << 20)) * 20  # 640 MiB
    file = change(job, lambda name, data: (name + ending, text))
    bounded = functools.partial(resource.setrlimit, resource.RLIMIT_DATA, (400 << 20, 400 << 20))
    done = tprof("summary", job / "job", preexec_fn=bounded)
    assert done.returncode in (0, 1) and str(file) in done.stdout + done.stderr
