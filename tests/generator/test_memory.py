"""With little memory a report has the steps in the middle of a job, and says the same of them."""

import pytest
from generator import causes, rank_files
from lib.tool import told, tprof


@pytest.mark.parametrize("cause", ["slow_gpu", "slow_loader"])
def test_the_steps_that_there_is_room_for_name_the_same_cause(tmp_path, cause):
    made = causes.case("fsdp_tp", 8, cause, 3, steps=40)
    rank_files.write(made, tmp_path / "job", 3)
    whole, part = (told("report", tmp_path / "job", "--memory", mib)[1] for mib in ("1024", "6"))
    assert part["buckets"] == whole["buckets"]  # counts are the whole job's
    of_whole, of_part = (next(f for f in r["findings"] if f["cost"]) for r in (whole, part))
    assert of_part["kind"] == of_whole["kind"]
    assert of_part["ranks"] == of_whole["ranks"] == ",".join(map(str, made.truth.ranks))
    assert of_part["cost"]["ns_per_step"] == pytest.approx(of_whole["cost"]["ns_per_step"], rel=0.1)
    assert of_part["cost"] != of_whole["cost"]  # it is of fewer steps
    assert whole["step"]["causes_why"] is part["step"]["causes_why"] is None


def test_that_there_is_no_room_for_a_replay_is_said(tmp_path):
    rank_files.write(causes.case("fsdp_tp", 16, "slow_gpu", 3), tmp_path / "job", 3)
    code, report = told("report", tmp_path / "job", "--memory", "3")
    assert (code, [f for f in report["findings"] if f["cost"]]) == (0, [])
    assert "give more with --memory" in report["step"]["causes_why"]
    said = tprof("report", tmp_path / "job", "--memory", "3").stdout
    assert "causes: not known: they are looked for in eight steps or more" in said
