#!/usr/bin/env python3
"""Other tools that load or merge traces of jobs, and the same lines as their formats have them.

As a program, it is the peer: `scale_peers.py hta FOLDER` loads, `scale_peers.py composer FOLDER OUTPUT` merges.
PYTHONPATH has the tool: packages() fetches it.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VERSIONS = {"hta": "HolisticTraceAnalysis==0.5.0", "composer": "mosaicml==0.32.1"}
MERGER = "composer/profiler/json_trace_merger.py"  # needs nothing else of that package


def packages(folder: Path, python: Path) -> Path:
    """Fetches both packages without what they depend on, and returns a folder to import them from."""
    there = folder / "importable"
    if not (there / "json_trace_merger.py").exists():
        command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", folder, *VERSIONS.values()], check=True)
        for wheel in folder.glob("*.whl"):
            subprocess.run([python, "-m", "zipfile", "-e", wheel, there], check=True)
        (there / "json_trace_merger.py").write_text((there / MERGER).read_text())
    return there


def calls_and_times(rank_file: Path) -> Iterator[dict]:
    for line in rank_file.read_text().splitlines():
        if line.startswith(("[", "]")):
            continue
        event = json.loads(line.rstrip(","))
        if event["ph"] == "X":
            yield event


def kineto(rank: int, events: list[dict]) -> dict:
    """The events as PyTorch's profiler writes them, which HTA loads."""
    found, numbers = [], {}
    for event in events:
        args, cat = event["args"], event.get("cat")
        key = (args.get("comm"), args.get("seq")) if "seq" in args else None
        # A call and its kernel have the same number.
        number = numbers.setdefault(key, len(numbers) + 1) if key else len(numbers) + 1
        if cat == "DEVICE":
            more = {"cat": "kernel", "pid": 0, "tid": args.get("stream", 0)}
            own = {"stream": args.get("stream", 0), "correlation": number, "device": 0}
        elif cat == "NVTX":
            more, own = {"cat": "user_annotation", "name": event["name"].replace("step ", "ProfilerStep#")}, {}
        elif cat == "BUSY":
            more, own = {"cat": "kernel", "pid": 0, "tid": 7}, {"stream": 7, "correlation": 0, "device": 0}
        else:
            more, own = {"cat": "cuda_runtime"}, {"correlation": number}
        found.append({**event, **more, "args": {**args, **own}})
    return {"schemaVersion": 1, "distributedInfo": {"rank": rank}, "traceEvents": found}


def composers(rank: int, events: list[dict]) -> list[dict]:
    """The events as Composer's profiler writes them."""

    def fact(name: str, value: int) -> dict:
        return {"name": name, "ph": "M", "pid": rank, "tid": 0, "args": {"value": value}}

    return [fact("global_rank", rank), fact("clock_sync_timestamp_us", 0), *events]


def convert(folder: Path, to: Path) -> int:
    """Writes what both tools read into TO/hta and TO/composer, and returns how many lines each has."""
    lines = 0
    for name in VERSIONS:
        (to / name).mkdir(parents=True)
    for rank, file in enumerate(sorted(folder.glob("*.json"))):
        events = list(calls_and_times(file))
        lines += len(events)
        (to / "hta" / file.name).write_text(json.dumps(kineto(rank, events), indent=1))
        (to / "composer" / file.name).write_text(json.dumps(composers(rank, events)))
    return lines


def main() -> None:
    tool, folder, *output = sys.argv[1:]
    if tool == "hta":
        from hta.common.trace import Trace

        trace = Trace(trace_dir=folder)
        trace.load_traces(use_memory_profiling=False)
        assert len(trace.get_all_traces()) == len(list(Path(folder).iterdir()))
    else:
        from json_trace_merger import merge_traces

        merge_traces(output[0], *sorted(Path(folder).glob("*.json")))


if __name__ == "__main__":
    main()
