"""`tprof budget` of loops that reduce each gradient by itself, of which the small ones are small calls, and of DDP's
buckets beside losses and norms."""

import json

import pytest
from lib.loops import Loop
from lib.tool import told, tprof

# The elements of a small transformer's parameters: embeddings, and matrices with biases and norms.
LARGE = (768 * 256, 256 * 1024, 1024 * 256, 256 * 768, 256 * 256, 256 * 4096)
BIASES = (768, 256, 1024, 256, 256, 256, 256, 256, 10)
PARAMS = sum(LARGE) + sum(BIASES)
FROZEN = 7524
CROSSED = "ALLREDUCE: the difference is assumed to be calls that are small here or in the budget's run"


def options(params):
    return ("--model", "ddp", "--params", params, "--dtype", "float32")


def job(folder, gradients, beside=(), steps=12):
    """Writes a loop that makes an all-reduce of each of these, and then of what is beside them."""
    loop = Loop([[0, 1]])
    for _ in range(steps):
        loop.step()
        loop.micro_batch()
        for count in (*gradients, *beside):
            loop.reduce(count)
    return loop.job.write(folder)


def reduced(report):
    (row,) = [row for row in report["rows"] if row["bucket"] == "ALLREDUCE"]
    return row["calls"], row["elements"]


@pytest.mark.parametrize("beside", [(), (1,), (1, 1)])
def test_a_loop_over_parameters_is_within_its_number_of_parameters(beside, tmp_path):
    folder = job(tmp_path / "job", LARGE + BIASES, beside)
    code, report = told("budget", folder, *options(PARAMS))
    assert (code, report["explained_by"]) == (0, [])
    assert reduced(report) == (len(LARGE), sum(LARGE))  # as was measured
    small = len(BIASES + beside), 4 * sum(BIASES + beside)
    assert [(of["calls"], of["bytes"]) for of in report["small"]] == [small]
    (said,) = [note for note in report["notes"] if "small" in note]
    how = f"among {small[0]} small calls of {small[1] / 1024:.2f} KiB"
    assert said == f"ALLREDUCE: the missing part is assumed to be gradients of small parameters, {how}"
    text = tprof("budget", folder, *options(PARAMS)).stdout
    assert said + "." in text.splitlines()


def test_frozen_parameters_are_told_as_under(tmp_path):
    folder = job(tmp_path / "buckets", (PARAMS // 2, PARAMS - PARAMS // 2), (1,))
    code, report = told("budget", folder, *options(PARAMS + FROZEN))
    assert (code, reduced(report)) == (1, (2, PARAMS))
    (said,) = report["explained_by"]
    how = f"gradients of {PARAMS:,} elements are reduced, but --params says {PARAMS + FROZEN:,}"
    assert said == f"{how}: there are other or frozen parameters"  # nothing of FSDP's shards
    assert tprof("budget", folder, *options(PARAMS + FROZEN)).stdout.count(" under\n") == 1
    # All small gradients of a loop are not enough either.
    loop = job(tmp_path / "loop", LARGE + BIASES, (1,))
    code, report = told("budget", loop, *options(PARAMS + FROZEN))
    assert code == 1
    assert any(note.endswith("but are less than the missing part") for note in report["notes"])


def test_a_type_that_nobody_asked_for_is_all_that_is_told_of_a_loop(tmp_path):
    folder = job(tmp_path / "job", LARGE + BIASES, (1,))
    (said,) = told("budget", folder, "--model", "ddp", "--params", PARAMS)[1]["explained_by"]
    assert said.startswith("ALLREDUCE moves float32, but bfloat16 was expected: 2 times the bytes")


def test_a_call_that_was_small_is_not_over_a_budget(tmp_path):
    file = tmp_path / "budget.json"
    good = job(tmp_path / "good", (*LARGE, 4000), (1,))
    assert tprof("budget", good, "--write", file, "--tolerance", "0.1").returncode == 0
    more = job(tmp_path / "more", (*LARGE, 4100), (1,))
    code, report = told("budget", more, "--budget", file)
    assert (code, report["explained_by"]) == (0, [])
    assert CROSSED in report["notes"]
    # Another one beside it is over.
    code, report = told("budget", job(tmp_path / "both", (*LARGE, 4000, 4100), (1,)), "--budget", file)
    assert code == 1
    # A budget that does not say how many bytes they had has no room.
    old = json.loads(file.read_text())
    for small in old["small"]:
        del small["bytes_per_step"]
    file.write_text(json.dumps(old))
    assert told("budget", more, "--budget", file)[0] == 1
