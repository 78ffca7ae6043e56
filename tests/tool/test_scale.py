"""The cost of the tool per rank of a job of FSDP2 with device times, in what can be counted: bytes read and
memory. `scripts/bench scale` measures the times."""

import json
import pathlib
import re
import subprocess

import pytest
from generator import scale
from lib import tool
from lib.build import BUILD, TPROF

COMMANDS = ("summary", "check", "report")
FEW, MANY = 128, 2048
# Bytes per rank beyond the first few. Each rank of these has three steps and 17 rows of figures, and 50 calls, which
# are columns and nodes of the graph in the report.
MOST_PER_RANK = {"summary": 8_000, "check": 11_000, "report": 26_000}
# How often each file is read: to load it, and for its lines.
PASSES = {"summary": 1, "check": 2, "report": 2}


def used(folder: pathlib.Path, *command: object) -> dict:
    """Runs the tool, and returns its peak memory and how many bytes it read."""
    told = folder.with_suffix(".used")
    # A child of Python itself would have had Python's memory before it became the tool.
    done = subprocess.run([BUILD / "bench_usage", told, TPROF, *map(str, command), folder], stdout=subprocess.DEVNULL)
    assert done.returncode == 0
    return json.loads(told.read_text())


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Returns the folders of two jobs by their number of ranks, and what is in them."""
    folder = tmp_path_factory.mktemp("jobs")
    return {
        ranks: (folder / str(ranks), scale.write(folder / str(ranks), ranks, 50, slow=True)) for ranks in (FEW, MANY)
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_memory_and_bytes_read_grow_with_the_ranks_and_no_faster(jobs, command):
    done = {ranks: used(folder, command) for ranks, (folder, _) in jobs.items()}
    per_rank = (done[MANY]["peak_bytes"] - done[FEW]["peak_bytes"]) / (MANY - FEW)
    assert per_rank < MOST_PER_RANK[command]
    for ranks, (folder, _) in jobs.items():
        size = sum(file.stat().st_size for file in folder.iterdir())
        assert done[ranks]["read_bytes"] < (PASSES[command] + 0.5) * size


def test_the_report_of_a_big_job_names_its_slow_rank_and_what_it_costs(tmp_path):
    slow = scale.write(tmp_path / "slow", 128, 400, slow=True)
    even = scale.write(tmp_path / "even", 128, 400, slow=False)
    found = {name: tool.told("report", tmp_path / name)[1] for name in ("slow", "even")}
    assert [f["kind"] for f in found["even"]["findings"] if f["kind"].startswith("slow_")] == []
    (finding,) = [f for f in found["slow"]["findings"] if f["kind"] == "slow_gpu"]
    assert finding["ranks"] == str(slow["slow_rank"])
    saved = slow["step_ns"] - even["step_ns"]
    assert finding["cost"]["ns_per_step"] == pytest.approx(saved, rel=0.05)
    assert finding["cost"]["ns"] == pytest.approx(saved * slow["steps"], rel=0.05)


@pytest.mark.parametrize("slow", [False, True])
def test_lines_are_read_alike_with_and_without_the_generality_of_json(tmp_path, slow):
    """A space more in each line of a call, device time or computation, and simdjson reads it."""
    for name in ("own", "json"):
        scale.write(tmp_path / name, 72, 300, slow)
    changed = 0
    for file in (tmp_path / "json").iterdir():
        text, n = re.subn(r'(?m)^(\{"(?:cat|name)":"(?!tprof_|thread_|process_).*\})\}(,?)$', r"\1 }\2", file.read_text())
        file.write_text(text)
        changed += n
    assert changed > 72 * 200
    for command in ("summary", "check", "report"):
        own, general = (tool.tprof(command, "--json", tmp_path / name) for name in ("own", "json"))
        assert own.returncode == general.returncode
        assert own.stdout == general.stdout
        assert len(own.stdout) > 500
