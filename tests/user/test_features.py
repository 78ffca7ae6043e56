"""Every line of the page of features does something, and the tests beside them are there."""

import collections
import csv
import json
import re
import sqlite3
import subprocess
import sys

import pytest
from lib import figures, launch
from lib.build import REPO, TPROF
from lib.live import TRAINER
from lib.rankfile import parsed

PAGE = (REPO / "interpose/user/features.md").read_text()
ROWS = [row.split(" | ") for row in re.findall(r"^\| (\d+ \| .*) \|$", PAGE, re.M)]
SPANS = [(number, what, span) for number, what, here, _ in ROWS for span in re.findall(r"`([^`]+)`", here)]
COMMANDS = [(number, span) for number, _, span in SPANS if span.startswith("tprof ")]
SETTINGS = [(number, span) for number, _, span in SPANS if span.startswith("TPROF_")]
PYTHON = [(number, what, span) for number, what, span in SPANS if "tprof." in span]
WORDS = [span for _, _, span in SPANS if span == "record_shapes"]  # other profilers' words


def train(folder, *, wrap=(), **settings):
    done = launch.start([*wrap, *TRAINER, "6"], folder, **settings)
    assert done.code == 0 and done.words_of_ours() == [], done.stderr
    return done


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    settings = {"TPROF_STEP": "call:ncclReduceScatter", "TPROF_TIMING": "events"}
    return train(folder, **settings)


def calls_of(run):
    """Returns what the stand-in was asked for: function -> calls."""
    calls = collections.Counter()
    for tally in run.tallies().values():
        for (_, function, _, _, mode), made in figures.of_tally(tally).items():
            assert mode == "direct"
            calls[function] += made["calls"]
    return calls


def number(text):
    return int(text.replace(",", ""))


def told_by_summary(text, words):
    """Returns the calls that a summary tells: by its table, or by the histograms, of all and then of each rank."""
    if "--json" in words:
        return json.loads(text)["buckets"]["ALL"]["calls"]
    if "--hist" in words:
        return sum(number(n) for n in re.findall(r"^ +[\d.]+ \w+ +[\d.]+ \w+ +([\d,]+)", text, re.M))
    return number(re.search(r"^  ALL +([\d,]+) ", text, re.M)[1])


def assert_tells(words, text, out, calls):
    """Asserts that what a command over a job's traces says, or leaves behind, covers all its calls."""
    everything = sum(calls.values())
    if words[0] == "summary":
        told = told_by_summary(text, words)
        if "--steps" in words:
            assert 0 < told < everything
        else:
            assert told == (2 * calls["ncclAllGather"] if "--hist" in words else everything)
    elif "--sqlite" in words:
        ranks = "WHERE rank = 0" if "--ranks" in words else ""
        (told,) = sqlite3.connect(out).execute(f"SELECT count(*) FROM calls {ranks}").fetchone()
        assert told == everything // (2 if ranks else 1)  # the two ranks do the same
    elif "--csv" in words:
        with open(out / "calls.csv", newline="") as file:
            assert len(list(csv.DictReader(file))) == everything
    elif "--kineto" in words:
        assert len(list(out.rglob("*.json*"))) == 2
    elif words[0] == "metrics":
        assert sum(float(n) for n in re.findall(r"^tprof_calls_total\{.*\} (.*)$", text, re.M)) == everything
    elif words[0] == "merge":
        buckets = {info for info in figures.BUCKET.values()} | figures.COPIES
        events = [event for event in parsed(out) if event["ph"] == "X" and event.get("cat") in buckets]
        assert collections.Counter(event["args"]["op"] for event in events) == calls
        others = [event for event in parsed(out) if event["name"] == "aten::mm"]
        assert len(others) == ("--with" in words)


@pytest.fixture(scope="module")
def other(tmp_path_factory, traces):
    file = tmp_path_factory.mktemp("other") / "rank0.json"
    base = min(json.loads(line.rstrip(","))["args"]["base_time_ns"] for trace in traces.traces.glob("*.json")
               for line in trace.read_text().split("\n") if '"tprof_header"' in line)  # fmt: skip
    event = {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 5.5, "dur": 2}
    file.write_text(json.dumps({"traceEvents": [event], "baseTimeNanoseconds": base}))
    return file


def test_the_rows_are_sixty_and_their_tests_exist():
    assert [int(number) for number, *_ in ROWS] == list(range(1, 61))
    for number, _, here, test in ROWS:
        path, name = test.split("::")
        assert f"def {name}(" in (REPO / "tests" / path).read_text(), number
        assert "`" in here, number
    assert len(COMMANDS) + len(SETTINGS) + len(PYTHON) + len(WORDS) == len(SPANS), "a line of no kind"


@pytest.mark.parametrize("number, command", COMMANDS)
def test_a_command_of_the_page_runs(number, command, traces, other, tmp_path):
    out = tmp_path / "out"
    words = [
        {"DIR": str(traces.traces), "OUT": str(out), "OTHER": str(other)}.get(word, word)
        for word in command.split()[1:]
    ]
    if words[0] == "ctl":  # of a job that runs: tool/test_ctl.py has one
        assert subprocess.run([TPROF, words[0], "--help"], capture_output=True, check=False).returncode == 0
        return
    done = subprocess.run([TPROF, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    # doctor has something to say of a machine without a GPU.
    assert done.returncode == 0 or (words[0] == "doctor" and done.returncode == 1), (number, done.stderr)
    assert done.stdout or out.exists() or words[0] == "tail", number  # the job writes no more lines
    assert_tells(words, done.stdout, out, calls_of(traces))


@pytest.mark.parametrize("number, settings", SETTINGS)
def test_a_setting_of_the_page_is_accepted(number, settings, tmp_path):
    given = dict(word.split("=", 1) for word in settings.split())
    given = {name: value.replace("OUT", str(tmp_path / "out")) for name, value in given.items()}
    done = train(tmp_path, **({"TPROF_STEP": "call:ncclReduceScatter"} | given))
    folders = [tmp_path / "traces", *(tmp_path / "out").glob("*")]
    files = [file for folder in folders for file in folder.glob("*.json")]
    assert bool(files) != ("TPROF_DISABLE" in given), (number, done.stderr)


def test_the_python_lines_of_the_page_run(traces, other, tmp_path):
    lines = []
    for number, what, span in PYTHON:
        if "raises" in what:
            span = f"try: {span}\nexcept tprof.TprofError: pass\nelse: raise SystemExit('{number}')"
        if span == "tprof.PartitionedParameterProfiler":  # the class, which others take by its name
            span = f"assert callable({span})"
        lines.append(span)
    paths = {"DIR": str(traces.traces), "OTHER": str(other), "OUT": str(tmp_path / "saved")}
    code = "import logging\nimport tprof\n" + "".join(f"{n} = {v!r}\n" for n, v in paths.items()) + "\n".join(lines) + "\nprint(tprof.totals().keys())\n"
    env = launch.environment(tmp_path, PYTHONPATH=str(REPO / "interpose/user"))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "saved").exists()
    (file,) = (tmp_path / "traces").glob("*.json")
    text = file.read_text()
    for name in ("outer", "inner", "same", "a new name", "checkpoint", "queue", "step 7", "builtins.len"):
        assert f'"{name}"' in text, name
