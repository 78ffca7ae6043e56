"""TPROF_CALLSITE: compares the place that a line names with what the interpreter says."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
from lib import needs, rankfile
from lib.build import BUILD, CLIENTS
from lib.contract import not_as_the_contract_says
from lib.launch import start, without_agent
from lib.pythons import interpreters
from lib.tool import told, tprof

SCRIPT = CLIENTS / "call_sites.py"
KNOWN = {"3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"}


PYTHONS = interpreters()


def run(folder, python=sys.executable, *words, **settings):
    settings = {"TPROF_CALLSITE": "both", "TPROF_DLSYM": "1"} | settings
    return start([python, SCRIPT, *words], folder, **settings)


def sites_of(lines):
    return {args["site"]: args for args in rankfile.named(lines, "tprof_site")}


def check(lines, stdout):
    """Every copy's line names the frames that the program saw when it made it."""
    made = {size: frames for size, frames in json.loads(stdout.splitlines()[0])}
    sites = sites_of(lines)
    copies = [x for x in lines if x.get("cat") == "H2D"]
    assert len(copies) == 3 * 3 * 8
    for copy in copies:
        assert sites[copy["args"]["site"]]["frames"] == made[copy["args"]["bytes"]]
    # The 72 calls have 9 sites, or more where sizes came by different instructions, but never one
    # per call.
    assert 9 <= len(sites) <= 30


@pytest.mark.parametrize("version", [v for v in PYTHONS if v in KNOWN])
def test_frames_are_those_of_the_interpreter(tmp_path, version):
    done = run(tmp_path, PYTHONS[version])
    assert done.code == 0, done.stderr
    assert done.words_of_ours() == []
    check(done.only_rank().lines, done.stdout)


@pytest.mark.parametrize("version", [v for v in PYTHONS if v not in KNOWN])
def test_an_interpreter_that_is_not_known_costs_a_line_and_the_frames(tmp_path, version):
    text = SCRIPT.read_text().replace("(*words", "(words")
    script = tmp_path / "script.py"
    script.write_text(text)
    done = start([PYTHONS[version], script], tmp_path / "run", TPROF_CALLSITE="both", TPROF_DLSYM="1")
    assert len(done.words_of_ours()) == 1 and f"of Python {version}" in done.words_of_ours()[0]
    sites = sites_of(done.only_rank().lines)
    assert all(site["frames"] == [] for site in sites.values())


def test_off_is_off(tmp_path):
    lines = run(tmp_path, TPROF_CALLSITE="off").only_rank().lines
    assert not sites_of(lines) and all("site" not in x["args"] for x in lines)


def calls_in(program):
    """Returns the address after each call of a program -> the call, according to objdump."""
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True)
    found = re.findall(r"^ +([0-9a-f]+):\t(.*)$", code.stdout, re.MULTILINE)
    return {int(found[i + 1][0], 16): found[i][1] for i in range(len(found) - 1)}


@pytest.mark.parametrize("program", [("native_trainer", "--ranks", "2"), ("copies",)], ids=lambda p: p[0])
def test_native_names_the_instruction_that_calls_and_no_frame(tmp_path, program):
    path = BUILD / program[0]
    done = start([path, *program[1:]], tmp_path, TPROF_CALLSITE="native", TPROF_EVENTS="all")
    assert done.code == 0, done.stderr
    lines, calls = done.ranks()[0].lines, calls_in(path)
    sites = sites_of(lines)
    named = set()
    for event in lines:
        if event.get("cat") in ("ALLGATHER", "RESHARDING", "H2D", "D2H", "D2D", "MANAGED"):
            site = sites[event["args"]["site"]]
            assert pathlib.Path(site["object"]).name == program[0] and site["frames"] == []
            assert f"<{event['name']}" in calls[site["offset"]], event
            named.add(event["name"])
    assert len(named) > (2 if program[0] == "native_trainer" else 7)


def test_a_call_by_a_pointer_of_dlsym_comes_from_its_caller(tmp_path):
    """The thunk that the program got is nowhere to be seen."""
    for site in sites_of(run(tmp_path, TPROF_CALLSITE="both").only_rank().lines).values():
        assert pathlib.Path(site["object"]).name.startswith("libffi") and site["frames"]


def test_python_alone_names_no_object(tmp_path):
    lines = run(tmp_path, TPROF_CALLSITE="python").only_rank().lines
    assert all("object" not in site and site["frames"] for site in sites_of(lines).values())
    assert not not_as_the_contract_says(map(json.dumps, lines))


def test_a_program_that_has_all_thread_local_keys_keeps_them(tmp_path):
    done = run(tmp_path, sys.executable, "keys")
    assert done.code == 0, done.stderr
    assert len(done.words_of_ours()) == 1 and "no thread-local key is left" in done.words_of_ours()[0]
    lines = done.only_rank().lines
    check(lines, done.stdout)
    assert all("native" not in site for site in sites_of(lines).values())


def test_sites_outlive_a_kill(tmp_path):
    done = run(tmp_path, sys.executable, "kill")
    assert done.code == -9
    assert tprof("recover", done.traces).returncode == 0
    (file,) = done.traces.glob("*.json")
    check(rankfile.parsed(file), done.stdout)


def test_a_forked_child_has_sites_of_its_own(tmp_path):
    done = run(tmp_path, sys.executable, "fork")
    assert done.code == 0, done.stderr
    files = map(rankfile.read, done.traces.glob("*.json"))
    parent, child = sorted(files, key=lambda file: -len(file.events))
    check(parent.lines, done.stdout)
    (call,) = child.events
    (site,) = sites_of(child.lines).values()
    assert (call["args"]["site"], call["args"]["bytes"], call["args"]["result"] > 0) == (1, 77, True)
    assert [f["function"] for f in site["frames"]] == ["<module>"]


def test_summary_by_site_has_every_call_once(tmp_path):
    done = run(tmp_path)
    sites = told("summary", done.traces, "--by", "site")[1]["sites"]
    assert sum(row["calls"] for row in sites) == 3 * 3 * 8
    recursive = [row for row in sites if row["frames"][1]["function"] == "recursive"]
    assert sum(row["calls"] for row in recursive) == 9
    assert sum(row["bytes"] for row in recursive) == 3 * (110 + 210 + 310)
    assert tprof("merge", done.traces, "-o", tmp_path / "merged.json").returncode == 0
    assert told("summary", tmp_path / "merged.json", "--by", "site")[1]["sites"] == sites
    text = tprof("summary", done.traces, "--by", "site").stdout
    line = next(n for n, x in enumerate(SCRIPT.read_text().splitlines(), 1) if "made.append" in x)
    assert f"call_sites.py:{line} copy" in text.split("Call sites")[1]


def test_fsdp_calls_come_from_fsdp_and_from_the_line_that_trains(tmp_path):
    needs.package("torch")
    done = start(without_agent("fsdp2.py", 2), tmp_path, TPROF_CALLSITE="both")
    assert done.code == 0, done.stderr
    for file in done.ranks():
        sites = sites_of(file.lines)
        for event in file.events:
            if event["name"] not in ("ncclAllGather", "ncclReduceScatter"):
                continue
            site = sites[event["args"]["site"]]
            assert site["object"].endswith("/libtorch_cuda.so")
            assert "ProcessGroupNCCL" in site["symbol"]
            # The stack goes from there to the interpreter, or to where autograd's thread began.
            objects = [run["object"] for run in site["native"]]
            assert objects[0] == site["object"] and site["native"][0]["offsets"][0] == site["offset"]
            assert sum(len(run["offsets"]) for run in site["native"]) > 5
            assert any(x.endswith(("/libtorch_cpu.so", "/libtorch_python.so")) for x in objects)
            files = {pathlib.Path(f["file"]).name for f in site["frames"]}
            assert "distributed_c10d.py" in files
            forward = event["cat"] == "ALLGATHER" and "common.py" in files
            assert forward or any("fsdp" in name for name in files)
