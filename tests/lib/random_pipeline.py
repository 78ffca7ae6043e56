"""Compares what the tool makes of a random program's trace with the tally and the rank files."""

import collections
import json

from lib import figures, signatures
from lib.contract import not_as_the_contract_says
from lib.random_calls import Played, counted
from lib.rankfile import lines_of, parsed
from lib.tool import tprof

SUMS = ("calls", "elements", "bytes")
WITH_LINES = {"on": lambda bucket: bucket not in {"D2D", "H2H", "MANAGED"}, "all": lambda _: True}
def executed(played: Played) -> dict[str, dict[str, int]]:
    """Returns bucket -> sums over all processes, of the calls that were executed."""
    sums: dict = collections.defaultdict(lambda: dict.fromkeys(SUMS, 0))
    for tally in played.tallies().values():
        for (bucket, *_, mode), values in counted(played.plan, tally, lambda _: None).items():
            for name in SUMS if mode != "captured" else ():
                sums[bucket][name] += values[name]
    return {bucket: values for bucket, values in sums.items() if any(values.values())}


def buckets_of(summary: dict) -> dict[str, dict[str, int]]:
    all_of = {bucket: values for bucket, values in summary["buckets"].items() if values}
    sums = {bucket: {name: values[name] for name in SUMS} for bucket, values in all_of.items()}
    return {b: v for b, v in sums.items() if any(v.values()) and b not in ("ALL", "ALLGATHER_OBJ")}


def wrong_in_summary(played: Played) -> list[str]:
    result = tprof("summary", "--json", played.traces)
    if result.returncode not in ((0, 1) if played.killed else (0,)):  # 1: it was killed inside a call
        return [f"summary exits with {result.returncode}: {result.stderr[:500]}"]
    ours, theirs = buckets_of(json.loads(result.stdout)), executed(played)
    return [] if ours == theirs else [f"summary: {ours}, expected {theirs}"]


def wrong_in_check(played: Played) -> list[str]:
    """All ranks did the same, so check finds nothing but what the program was made to do."""
    result = tprof("check", "--json", played.traces)
    if result.returncode not in (0, 1):
        return [f"check exits with {result.returncode}: {result.stderr[:500]}"]
    found = json.loads(result.stdout)
    parted = [c for c in found["communicators"] if not c["same"]]
    allowed = {"failed"} if played.plan.options.get("refused", 1) else set()
    if any(file.footer["dropped"] for file in played.files().values()):
        allowed |= {"dropped"}
    if played.plan.processes > 1 or played.plan.options["copiers"]:
        allowed |= {"assumed_job"}
    others = [f["text"] for f in found["findings"] if f["kind"] not in allowed]
    return [f"check: {parted or ''} {others or ''}"] if parted or others else []


def wrong_in_lines(played: Played) -> list[str]:
    """Each call that should have a line has one."""
    wrong = []
    wants = WITH_LINES.get(played.plan.settings["TPROF_EVENTS"], lambda _: False)
    for file in played.files().values():
        if file.footer["dropped"]:
            continue
        ledger = figures.of_ledger(file)
        # Simulated calls have failed, and have no line.
        expected = {
            key: values | {"failed": 0}
            for key, values in ledger.items()
            if key[4] == "direct" and wants(key[0])
        }
        lines = {key: v | {"failed": 0} for key, v in figures.of_lines(file).items()}
        if difference := figures.difference(lines, expected):
            wrong.append(f"lines of {file.path.name}:\n{difference}")
        if lines:
            wrong += signatures.wrong(file)
    return wrong


def wrong_in_merge(played: Played) -> list[str]:
    merged = played.folder / "merged.json"
    result = tprof("merge", played.traces, "-o", merged)
    if result.returncode != 0:
        return [f"merge exits with {result.returncode}: {result.stderr[:500]}"]
    lines = parsed(merged)
    # Names are for viewers there, and lanes too.
    events = [line for line in lines if line["ph"] == "X" and line.get("cat") != "LANE"]
    names = collections.Counter(line["args"].get("op", line["name"]) for line in events)
    expected: collections.Counter = collections.Counter()
    for file in played.files().values():
        expected += collections.Counter(line["name"] for line in file.lines if line["ph"] == "X")
    wrong = [] if names == expected else [f"merge: {names - expected} more, {expected - names} less"]
    # Looking at every line takes longer than all the rest.
    some = lines_of(merged)[:: max(1, len(lines) // 100)]
    return wrong + [f"merge: {fault}" for fault in not_as_the_contract_says(some)]


def wrong_in_anonymized(played: Played) -> list[str]:
    public = played.folder / "public"
    result = tprof("anonymize", played.traces, "-o", public)
    if result.returncode != 0:
        return [f"anonymize exits with {result.returncode}: {result.stderr[:500]}"]
    found = json.loads(tprof("summary", "--json", public).stdout)
    same = buckets_of(found) == executed(played)
    return [] if same else ["anonymize: the counts are others"]


def wrong_about_odd(played: Played) -> list[str]:
    """One rank made one collective differently: check names the rank and the place."""
    told = [line.split() for line in played.stdout.splitlines() if line.startswith("odd: ")]
    result = tprof("check", "--json", played.traces)
    findings = [f for f in json.loads(result.stdout)["findings"] if f["kind"] == "mismatch"]
    if not told:
        return [f"check: {findings}, and nothing was odd"] if findings else []
    # odd: rank 2 size 4 seq 17 function ncclReduce
    ((_, _, rank, _, size, _, seq, _, function),) = told
    if result.returncode != 1 or len(findings) != 1:
        return [f"check exits with {result.returncode}: {findings}, expected {told}"]
    (finding,) = findings
    # With two ranks nobody can tell which is the odd one.
    right = finding["ranks"] == [int(rank)] or size == "2"
    right = right and finding["between"][0] <= int(seq) < finding["between"][1]
    if played.plan.settings["TPROF_EVENTS"] == "off":
        right = right and function in str(finding["evidence"])
    else:
        right = right and (finding["seq"], finding["function"]) == (int(seq), function)
    return [] if right else [f"check: {finding}, expected {told}"]


def faults(played: Played) -> list[str]:
    # Where an element is more than a byte, the tally tells calls and bytes only.
    in_bytes = "TPROF_COPY_ELEMENT_SIZE" not in played.plan.settings
    parts = [wrong_in_merge]
    if "odd" in played.plan.options:
        parts += [wrong_in_summary, wrong_about_odd]
    elif played.plan.options.get("fork-first"):  # two runs, of which the tool wants one
        parts = [wrong_in_lines] if in_bytes else []
    elif played.killed:
        exact = played.plan.threads() == 1
        parts += [wrong_in_summary, wrong_in_anonymized] if exact and in_bytes else []
    else:
        parts += [wrong_in_check]
        parts += [wrong_in_summary, wrong_in_lines, wrong_in_anonymized] if in_bytes else []
    return [fault for part in parts for fault in part(played)]
