"""tprof run --with-torch-profiler switches on unmodified PyTorch's profiler, which the program does not mention."""

import gzip
import json
import subprocess

from lib import launch
from lib.build import TPROF


def test_pytorch_traces_the_steps_that_are_asked_for_on_one_axis_with_its_collectives(torch, tmp_path):
    (tmp_path / "tally").mkdir()
    env = launch.environment(tmp_path, preload=False)
    options = ["--quiet", "--out", tmp_path / "out", "--with-torch-profiler", "--torch-steps", "20-22"]
    command = [TPROF, "run", *options, "--", *launch.without_agent("profiled.py", 1)]
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert [line for line in said if line.startswith(("INFO:", "WARNING:", "ERROR:"))] == []
    with gzip.open(tmp_path / "out/torch/merged.json.gz", "rt") as file:
        lines = json.load(file)
    marks = [line["name"] for line in lines if line.get("cat") == "OTHER,user_annotation"]
    steps = [int(name.split()[-1]) for name in marks if name.startswith("my step ")]
    # The trace begins with step 20, or later if PyTorch asked later; its own thread ends it, and may be late.
    assert len(steps) >= 3 and steps == list(range(steps[0], steps[0] + len(steps))) and steps[0] >= 20
    (clock,) = [line["args"] for line in lines if line["name"] == "tprof_other"]
    # PyTorch says what a call is when it ends, and its thread may end the trace before.
    comms = [line for line in lines if line["name"] == "record_param_comms" and "Collective name" in line["args"]]
    assert clock["collectives"] == len(comms) > 0
    assert clock["clock"].startswith("refined by ")
