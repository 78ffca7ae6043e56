"""The tool as its user runs it: commands, files, exit codes."""

import collections
import json
import pathlib
import re
import subprocess

import jsonschema_rs
from lib.build import BUILD, GOLDEN, TPROF
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
    big_job(folder, ranks, lines, "plain")
    totals = collections.defaultdict(collections.Counter)
    for rank in range(ranks):
        file = folder / f"rank-{rank:05}.json"
        text = file.read_text()
        end = text.index('{"name":"tprof_ledger","ph":"M","pid":%d,"tid":0,"args":{"epoch":0,"reason":"close"' % rank)
        for row in json.loads(text[end:].split("\n")[0].rstrip(","))["args"]["rows"]:
            totals[row["bucket"]].update({key: row[key] for key in ("calls", "count", "elements", "bytes", "host_ns")})
        if rank == unclosed:
            file.write_text(text[:end])
    return totals


def big_job(folder: pathlib.Path, ranks: int, lines: int, kind: str, *more: object) -> dict:
    """Makes the files of a job with groups (tests/golden/big_jobs.cpp), and returns what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [BUILD / "big_jobs", folder, ranks, lines, kind, *more]
    return json.loads(subprocess.check_output(list(map(str, command)), timeout=60))
