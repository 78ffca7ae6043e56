"""A trace that was merged with filters says so first in every command, and nothing is concluded from what it lacks."""

import pytest
from generator import causes, rank_files
from lib.rankfile import parsed
from lib.tool import told, tprof

RANKS = 4


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job with a slow GPU, whose report blames it."""
    folder = tmp_path_factory.mktemp("merged") / "job"
    rank_files.write(causes.case("fsdp", RANKS, "slow_gpu", 3, 6), folder, 3)
    assert any(f["cost"] for f in told("report", folder)[1]["findings"])
    return folder


FILTERS = {
    "ranks": (("--ranks", "0"), "only rank 0"),
    "some ranks": (("--ranks", "0-1"), "only ranks 0-1"),
    "a bucket": (("--ops", "ALLGATHER"), "only ops ALLGATHER"),
    "steps": (("--steps", "2-4"), "only steps 2-4"),
    "sizes": (("--sizes", "1M-"), "only sizes 1M-"),
    "both": (("--ranks", "0-1", "--ops", "ALLGATHER", "--steps", "2-4"), "only ranks 0-1, steps 2-4, ops ALLGATHER"),
}


@pytest.fixture(params=FILTERS, ids=FILTERS)
def merged(request, job, tmp_path_factory):
    options, only = FILTERS[request.param]
    to = tmp_path_factory.mktemp("merged") / "m.json"
    assert tprof("merge", job, "-o", to, *options).returncode == 0
    return to, only


def test_every_command_says_what_was_kept(merged, tmp_path):
    file, only = merged
    said = f"merged with {only}"
    assert said in tprof("summary", file).stdout.splitlines()[1]
    assert " ".join(tprof("report", file).stdout.splitlines()[:2]).startswith(f"{said}: ")
    for command, options in {"check": (), "replay": (), "budget": ("--model", "ddp", "--params", "1e6")}.items():
        assert said in tprof(command, file, *options).stdout.splitlines()[0], command
    assert said in tprof("diff", file, file).stdout.splitlines()[1]
    assert f"with {only}" in tprof("doctor", file).stdout
    assert f"note: {said}\n" in tprof("export", file, "--csv", tmp_path / "csv").stderr
    for command, options in {"summary": (), "check": (), "report": (), "replay": (), "diff": (file,)}.items():
        assert told(command, file, *options)[1]["only"]["merged"] == only, command


def test_it_is_still_known_after_the_next_merge_and_in_copies(merged, tmp_path):
    file, only = merged
    assert tprof("merge", file, "-o", tmp_path / "again.json", "--ops", "nccl*").returncode == 0
    assert parsed(tmp_path / "again.json")[0]["args"]["only"] == f"{only}; only ops nccl*"
    assert tprof("anonymize", file, "-o", tmp_path / "copy").returncode == 0
    assert parsed(next((tmp_path / "copy").iterdir()))[0]["args"]["only"] == only


def test_nobody_is_blamed_and_nothing_that_was_left_out_is_missing(merged, job):
    file, only = merged
    report = told("report", file)[1]
    assert [f for f in report["findings"] if f.get("cost") or f["kind"] == "late"] == []
    assert report["verdict"]["finding"] is None
    why = f"the trace was merged with {only}"
    assert why in report["step"]["causes_why"]
    if "," in only or "rank" not in only:  # else the parts of a step are known of the ranks that are here
        assert report["verdict"]["text"].endswith(f"The causes of slow steps are not known: {why}.")
        assert report["step"]["parts"] is None and why in report["step"]["parts_why"]
    else:
        assert report["step"]["parts"]["compute_ns"] > 0
    assert told("diff", file, file)[1]["slow_ranks"] is None
    for command in ("summary", "report", "check"):
        done = tprof(command, file)
        assert (done.returncode, "rank files" in done.stdout) == (0, False), (command, done.stdout)
