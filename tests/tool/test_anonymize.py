"""tprof anonymize: no name is left, and everything else is as it was."""

import getpass
import gzip
import json
import os
import pathlib
import re
import socket
import subprocess

import pytest
from generator import causes, rank_files
from lib import handmade
from lib.build import BUILD, GOLDEN, REPO
from lib.contract import CONTRACT, SCHEMA
from lib.rankfile import lines_of
from lib.tool import generate, summary_of, told, tprof

NAME = "Gromit"  # in every place where a trace can say whose it is


def anonymized(source, to):
    result = tprof("anonymize", source, "-o", to)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    return sorted(to.iterdir())


def without_names(found):
    """Returns a summary without the names that are taken out."""
    found = dict(found)
    found.pop("run_id")
    found["comms"] = [{k: v for k, v in comm.items() if k != "name"} for comm in found["comms"]]
    found["findings"] = [
        {key: problem[key] for key in ("kind", "severity", "ranks")}
        for problem in found["findings"]
    ]
    return found


def shape(value):
    """Returns keys and numbers, without strings and settings."""
    if isinstance(value, dict):
        return {
            key: sorted(inner) if key in ("config", "env") else shape(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "text" if isinstance(value, str) else value


def lines(file):
    return [json.loads(line) for line in lines_of(file) if line != "{"]


def sample(rule):
    """Returns some value that the schema's rule allows, with every property that it names."""
    while "$ref" in rule and "properties" not in rule:
        rule = CONTRACT["$defs"][rule["$ref"].rsplit("/", 1)[1]]
    if "const" in rule or "enum" in rule:
        return rule.get("const", (rule.get("enum") or [None])[0])
    if "anyOf" in rule or "oneOf" in rule and "properties" not in rule:
        return sample((rule.get("anyOf") or rule["oneOf"])[0])
    if "properties" in rule:
        base = CONTRACT["$defs"][rule["$ref"].rsplit("/", 1)[1]] if "$ref" in rule else {}
        properties = base.get("properties", {}) | rule["properties"]
        return {key: sample(inner) for key, inner in properties.items()}
    kind = rule.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array":
        return [sample(rule.get("items", {}))] * rule.get("minItems", 1)
    if kind == "string":
        pattern = rule.get("pattern", "")
        return "0x1f" if pattern.startswith("^0x") else "0123456789abcdef"
    return {"boolean": True, "integer": 1, "number": 1.5, "object": {}}[kind]


def every_line(change=lambda line: line):
    """Returns a line of each kind of the contract, with every field that it names, as a closed file has them."""
    header, rest = [], []
    for name, rule in CONTRACT["$defs"].items():
        if not name.startswith("line_") or name in ("line_merged", "line_flow", "line_lane", "line_other"):  # merge's
            continue
        line = {"name": "ncclSend", "ph": "M", "pid": 0, "tid": 0} | sample(rule)
        if "cat" in line:
            line |= {"ph": "X", "ts": 1.5, "dur": 1.5}
        if name in ("line_range", "line_device_time", "line_busy"):  # such lines begin with these keys
            line = {"cat": line["cat"], "ph": "X"} | line
        if "rank" in line["args"]:
            line["args"]["rank"] = 0  # the world has one rank
        (header if name == "line_header" else rest).append(change(line))
    rest.sort(key=lambda line: line["name"] == "tprof_footer")
    assert len(rest) >= 14
    return header + rest


def written(every, file):
    compact = [json.dumps(line, separators=(",", ":")) for line in every]
    file.write_text("[\n" + ",\n".join(compact) + "\n]\n")
    return file


def test_every_key_of_the_contract_passes(tmp_path):
    """Makes sure that a key added to the contract is not lost here."""
    every = every_line()
    (file,) = anonymized(written(every, tmp_path / "rank-00001.json"), tmp_path / "out")
    for before, after in zip(every, lines(file), strict=True):
        if before["name"] == "tprof_header":
            before["args"]["ring"] = after["args"]["ring"]  # there is none any more
        assert shape(after) == shape(before), before["name"]


# A reader needs these to be what they are, or takes the file for damaged.
READ = ("name", "cat", "ph", "schema", "bucket", "dtype", "mode", "kind", "reason", "reduce", "host_memory", "birth",
        "alias", "signature", "marks", "ctl", "obeyed", "found", "thread", "id", "file", "handle", "local")  # fmt: skip


def with_secrets(value, key=""):
    """Returns a value with NAME in every string that a reader takes as it is, and a field of that name in every
    object."""
    if isinstance(value, dict):
        return {k: with_secrets(v, k) for k, v in value.items()} | {NAME: 1}
    if isinstance(value, list):
        return [with_secrets(inner, key) for inner in value]
    return f"/{NAME}/{value}" if isinstance(value, str) and key not in READ else value


def test_no_field_of_the_contract_lets_a_name_through(tmp_path):
    """Lines of other tools and of other versions are left out."""

    def change(line):
        return line | {"args": with_secrets(line["args"]), NAME: NAME}

    every = every_line(change)
    foreign = {"name": NAME, "ph": "X", "cat": "python", "pid": 0, "tid": 1, "ts": 1, "dur": 1, "args": {}}
    unknown = {"name": f"tprof_{NAME}", "ph": "M", "pid": 0, "tid": 0, "args": {"a": NAME}}
    (tmp_path / "traces").mkdir()
    file = written([every[0], foreign, unknown, *every[1:]], tmp_path / "traces" / f"{NAME}-4711.json")
    assert file.read_text().count(NAME) > 100
    done = tprof("anonymize", tmp_path / "traces", "-o", tmp_path / "out")
    assert done.returncode == 0 and "2 lines left out" in done.stderr
    (copy,) = (tmp_path / "out").iterdir()
    assert len(lines(copy)) == len(every)
    assert NAME not in copy.name + copy.read_text()


def test_equal_names_stay_equal_in_all_files_of_one_output(tmp_path):
    (tmp_path / "job").mkdir()
    for file in (GOLDEN / "two_ranks").iterdir():
        (tmp_path / "job" / file.name).write_text(file.read_text().replace('{"name":"rank 0"}', '{"name":"rank 0 on node7"}'))
    files = anonymized(tmp_path / "job", tmp_path / "out")
    headers = [
        next(line["args"] for line in lines(file) if line["name"] == "tprof_header")
        for file in files
    ]
    assert [header["run_id"] for header in headers] == ["run-1", "run-1"]
    assert [header["host"] for header in headers] == ["host-1", "host-2"]
    assert headers[0]["nccl_path"] == headers[1]["nccl_path"] == "folder-1/libnccl.so.2"
    titles = [line["args"]["name"] for file in files for line in lines(file) if line["name"] == "process_name"]
    assert titles == ["rank 0 on host-1", "rank 1"]
    assert not [error for file in files for line in lines(file) for error in SCHEMA.iter_errors(line)]


@pytest.mark.parametrize("name", ["trace.json", "my-run.json.gz"])
def test_merged_traces_are_taken_too(name, tmp_path):
    generate(tmp_path / "traces", 2, 300)
    assert tprof("merge", tmp_path / "traces", "-o", tmp_path / name).returncode == 0
    (file,) = anonymized(tmp_path / name, tmp_path / "out")
    assert file.name == "trace" + name[name.index(".") :]
    assert without_names(summary_of(file, "--lines")) == without_names(summary_of(tmp_path / "traces", "--lines"))


def test_a_compressed_rank_file_stays_compressed(tmp_path):
    text = (GOLDEN / "two_ranks/rank-00000.json").read_bytes()
    (tmp_path / "rank-00000.json.gz").write_bytes(gzip.compress(text))
    (file,) = anonymized(tmp_path / "rank-00000.json.gz", tmp_path / "out")
    assert file.name == "rank-00000.json.gz"
    assert b"node7" not in gzip.decompress(file.read_bytes())
    assert b"host-1" in gzip.decompress(file.read_bytes())


def test_killed_job_is_recovered_on_the_way_and_names_nobody(tmp_path):
    """A real trace: one rank dies and leaves a ring file."""
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(BUILD / "standin"),
        "LD_PRELOAD": str(BUILD / "libtprof.so"),
        "TPROF_OUTPUT_DIR": str(tmp_path / "traces"),
        "TPROF_RING_DIR": str(tmp_path / "traces"),
        "TPROF_RUN_ID": f"{NAME}-run",
        "NCCL_SOCKET_IFNAME": f"{NAME}0",
        "STANDIN_DIE": "1:ncclReduceScatter:25",
    }
    subprocess.run(
        [BUILD / "native_trainer", "--ranks", "2", "--steps", "100"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert list((tmp_path / "traces").glob(".*.ring")), "no rank was killed"
    files = anonymized(tmp_path / "traces", tmp_path / "out")
    assert [file.name for file in files] == ["rank-00000.json", "rank-00001.json"]
    public, private = (without_names(summary_of(tmp_path / folder, "--lines")) for folder in ("out", "traces"))
    assert public == private
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (header,) = {
        line["args"]["devices"][0]["uuid"] if line["args"]["devices"] else ""
        for line in lines(tmp_path / "traces/rank-00000.json")
        if line["name"] == "tprof_header"
    }
    private = [NAME, socket.gethostname(), str(REPO), str(BUILD), str(tmp_path), boot_id, header]
    private += ["native_trainer", "--steps", f"/{getpass.getuser()}/"]
    text = "".join(file.read_text() for file in files)
    for name in filter(None, private):
        assert name not in text


FACTS = ("kind", "severity", "bucket", "role", "told_by", "phase")


def facts(value, key=""):
    """Returns keys, numbers and the words that are no names."""
    if isinstance(value, dict):
        return {k: facts(inner, k) for k, inner in value.items()}
    if isinstance(value, list):
        return [facts(inner, key) for inner in value]
    return value if not isinstance(value, str) or key in FACTS else "text"


@pytest.mark.parametrize("cause", ["gather_twice", "late_prefetch", "slow_gpu"])
def test_what_is_found_out_is_the_same(cause, tmp_path):
    rank_files.write(causes.case("fsdp", 4, cause, 3, 6), tmp_path / "job", 3)
    anonymized(tmp_path / "job", tmp_path / "out")
    found = told("report", tmp_path / "out")[1]
    assert any(f["cost"] for f in found["findings"])
    assert facts(found) == facts(told("report", tmp_path / "job")[1])
    for command in (("summary", "--by", "phase"), ("summary", "--by", "comm"), ("check",), ("doctor",)):
        before, after = (told(command[0], tmp_path / folder, *command[1:])[1] for folder in ("job", "out"))
        assert facts(after) == facts(before), command


KEPT = {
    "TPROF_TIMING": ("host", "events", "events:16", "cupti"),
    "TPROF_EVENTS": ("all",),
    "TPROF_CALLSITE": ("native", "python", "both"),
    "TPROF_SCHEDULE": ("profiler", "ctl", "wait=5,warmup=1,active=3,repeat=2"),
    "TPROF_METRICS": ("100ms,gpus",),
    "TPROF_SIZES": ("1M-64M,-4K",),
    "TPROF_RANKS": ("0-7,64", "all"),
    "TPROF_STEP": ("auto", "period", "call:ncclAllReduce@128", "nvtx:forward"),
    "TPROF_RING_DIR": ("auto",),
    "TPROF_NVTX": ("nccl",),
}
REPLACED = {
    "TPROF_TIMING": NAME,
    "TPROF_STEP": f"nvtx:{NAME}",
    "TPROF_OPS": NAME,
    "TPROF_OUTPUT_DIR": f"/{NAME}",
    "TPROF_RING_DIR": f"/{NAME}",
    "TPROF_DRIVER": NAME,
}


@pytest.mark.parametrize(
    ("setting", "value", "kept"),
    [(name, value, True) for name, values in KEPT.items() for value in values]
    + [(name, value, False) for name, value in REPLACED.items()],
)
def test_a_settings_value_stays_if_it_is_one_of_its_own_words(setting, value, kept, tmp_path):
    text = (GOLDEN / "two_ranks/rank-00000.json").read_text()
    (tmp_path / "rank-00000.json").write_text(re.sub('"config":{[^}]*}', f'"config":{{"{setting}":"{value}"}}', text))
    (file,) = anonymized(tmp_path / "rank-00000.json", tmp_path / "out")
    (header,) = (line["args"] for line in lines(file) if line["name"] == "tprof_header")
    assert (header["config"][setting] == value) == kept
    assert NAME not in file.read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"name":"python"', '"name":"pt_autograd_3"'),
        ('"name":"python"', '"name":"pt_data_pin"'),
        ('"name":"tp"', '"name":"tensor-1"'),
        ('"name":"ncclSend"', '"name":"__cudaLaunchKernel"'),
    ],
)
def test_names_by_which_readers_go_tell_them_the_same(before, after, tmp_path):
    secret = {"tensor-1": f"{NAME}_tp"}
    text = (GOLDEN / "two_ranks/rank-00000.json").read_text()
    name = after.split('"')[3]
    (tmp_path / "rank-00000.json").write_text(text.replace(before, f'"name":"{secret.get(name, name)}"'))
    (file,) = anonymized(tmp_path / "rank-00000.json", tmp_path / "out")
    assert after in file.read_text() and NAME not in file.read_text()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ProfilerStep#7", "ProfilerStep#7"),
        ("forward", "forward"),
        (f"{NAME} forward", "forward-1"),
        (f"Optimizer.step#{NAME}.step", "optimizer step-1"),
        (f"{NAME} load_data", "load batch-1"),
        (f"{NAME} 7", "range-1"),
    ],
)
def test_ranges_stay_the_steps_and_phases_that_they_are(name, shown, tmp_path):
    generate(tmp_path / "job", 1, 10)
    line = {"cat": "NVTX", "ph": "X", "name": name, "pid": 0, "tid": 1, "ts": 1.0, "dur": 1.0, "args": {}}
    handmade.insert(tmp_path / "job/rank-00000.json", line)
    (copy,) = anonymized(tmp_path / "job", tmp_path / "out")
    assert [line["name"] for line in lines(copy) if line.get("cat") == "NVTX"] == [shown]


def test_a_folder_that_holds_something_is_not_written_to(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result = tprof("anonymize", GOLDEN / "two_ranks", "-o", tmp_path)
    assert result.returncode == 2 and "empty folder" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_bad_line_is_named_and_nothing_is_left(tmp_path):
    text = (GOLDEN / "two_ranks/rank-00000.json").read_text()
    at = text.index('{"name":"ncclSend"')
    bad = '{"name":"ncclSend",nonsense\n'
    (tmp_path / "rank-00000.json").write_text(text[:at] + bad + text[at:])
    result = tprof("anonymize", tmp_path / "rank-00000.json", "-o", tmp_path / "out")
    assert result.returncode == 2
    assert f"rank-00000.json: byte {at}: " in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
