"""The program's own NVTX ranges: a line for each, on lanes of their own."""

import json
import os
import pathlib
import subprocess

import jsonschema

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TPROF_BUILD", REPO / "build")).resolve()
LIBTPROF = BUILD / "libtprof.so"
LANE = 1 << 22
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((REPO / "tests/golden/line.schema.json").read_text())
)


def run(folder, scenario, **variables):
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(BUILD / "standin"), "RANK": "0"}
    env |= {"LD_PRELOAD": str(LIBTPROF), "NVTX_INJECTION64_PATH": str(LIBTPROF)}
    env |= {"WORLD_SIZE": "1", "TPROF_OUTPUT_DIR": str(folder / "traces")} | variables
    done = subprocess.run(
        [BUILD / "nvtx_ranges", scenario], env=env, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done


def tprof(*arguments):
    return subprocess.run(
        [BUILD / "tprof", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def lines(folder):
    """Of all processes, whether they closed or not; each is as the schema says."""
    merged = folder / "merged.json"
    done = tprof("merge", folder / "traces", "-o", merged)
    assert done.returncode == 0, done.stderr
    found = [json.loads(x.rstrip(",")) for x in merged.read_text().splitlines() if x[:1] == "{"]
    for line in found:
        error = next(SCHEMA.iter_errors(line), None)
        assert error is None, f"{line}: {error.message[:300]}"
    return found


def ranges(folder):
    return [line for line in lines(folder) if line.get("cat") == "NVTX"]


def inside(inner, outer):
    return (
        outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    )  # fmt: skip


def test_pushed_ranges_are_lines_on_a_lane_beside_their_thread(tmp_path):
    run(tmp_path, "nested")
    everything = lines(tmp_path)
    found = {line["name"]: line for line in everything if line.get("cat") == "NVTX"}
    assert set(found) == {"outer", "inner 0", "inner 1", "inner 2"}
    assert {line["ph"] for line in found.values()} == {"X"}
    assert all(inside(line, found["outer"]) for line in found.values())
    copies = [line for line in everything if line.get("cat") == "H2D"]
    assert [sum(inside(copy, found[f"inner {i}"]) for copy in copies) for i in range(3)] == [1] * 3
    lanes = {line["tid"]: line["args"]["name"] for line in everything if line["name"] == "thread_name"}  # fmt: skip
    thread = copies[0]["tid"]
    assert {line["tid"] for line in found.values()} == {LANE + thread}
    assert lanes == {thread: "nvtx_ranges", LANE + thread: "NVTX nvtx_ranges"}
