"""The tool as its user runs it: commands, files, exit codes."""

import collections
import json
import pathlib
import re
import subprocess

import jsonschema_rs
from lib import jobs
from lib.build import GOLDEN, TPROF
from lib.rankfile import parsed

SUMMARY_SCHEMA = jsonschema_rs.Draft202012Validator(json.loads((GOLDEN / "summary.schema.json").read_text()))


def tprof(*arguments: object, **options) -> subprocess.CompletedProcess:
    options = {"capture_output": True, "text": True, "timeout": 60} | options
    return subprocess.run([TPROF, *map(str, arguments)], check=False, **options)


def told(*arguments: object) -> tuple[int, dict]:
    """Returns exit status and report of a command."""
    done = tprof(*arguments, "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert values_that_words_lack(report) == []
    return done.returncode, report


def values_that_words_lack(report: dict) -> list[str]:
    """Returns sentences of findings in which a value shows by its name (analysis/report/words.h)."""
    findings = report.get("findings", [])
    said = [text for f in findings for text in (f["text"], f["next"] or "", *f.get("evidence", []))]
    return [text for text in said if re.search(r"\{[a-z_]+\}", text)]


def summary_of(folder: pathlib.Path, *more: object) -> dict:
    """Returns what `summary` says, which must be in the form that the contract gives it."""
    found = told("summary", folder, *more)[1]
    assert [f"{error.instance_path}: {error.message[:200]}" for error in SUMMARY_SCHEMA.iter_errors(found)] == []
    return found


def worse_than_notes(traces: pathlib.Path, *options: str) -> list[dict]:
    """Returns what `check` finds that is worse than a note, and asserts that its exit status says so."""
    code, found = told("check", traces, *options)
    worse = [finding for finding in found["findings"] if finding["severity"] != "note"]
    assert code == (1 if worse else 0)
    return worse


def merged(traces: pathlib.Path, to: pathlib.Path, *options: str) -> list[dict]:
    """Returns the lines of the merged trace of all processes, closed or not, as rank files have them: with functions
    for names, and without the lanes that merge adds. Leaves the trace at `to`."""
    done = tprof("merge", traces, "-o", to, *options)
    assert done.returncode == 0, done.stderr
    lines = [line for line in parsed(to) if line.get("cat") != "LANE"]
    return [line | {"name": line.get("args", {}).get("op", line["name"])} for line in lines]


def generate(folder: pathlib.Path, ranks: int, lines: int, unclosed: int = -1) -> dict:
    """Makes the files of a plain job, and returns by bucket what its calls amount to. The file of the unclosed rank
    ends with its last call, as after a lost host."""
    job = jobs.plain(ranks, lines)
    if unclosed >= 0:
        job.ranks[unclosed].end = "lost"
    job.write(folder)
    totals = collections.defaultdict(collections.Counter)
    for op in (op for rank in job.ranks for op in rank.ops):
        size = jobs.bytes_of(op, ranks)
        elements = size // jobs.SIZES.get(op.dtype, 1)
        amounts = {"calls": 1, "count": op.count, "elements": elements, "bytes": size, "host_ns": op.ns}
        totals[jobs.BUCKETS[op.function]].update(amounts)
    return totals
