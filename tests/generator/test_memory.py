"""With little memory a report has the steps in the middle of a job, and says the same of them."""

import pathlib
import re

import pytest
from generator import causes, rank_files
from lib.thorough import some
from lib.tool import told, tprof


def cost_of(report: dict) -> dict:
    return next(f for f in report["findings"] if f["cost"])


@pytest.mark.parametrize("cause", some(["slow_gpu", "slow_loader"], 2))
def test_the_steps_that_there_is_room_for_name_the_same_cause(tmp_path, cause):
    made = causes.case("fsdp_tp", 8, cause, 3, steps=40)
    rank_files.write(made, tmp_path / "job", 3)
    whole, part = (told("report", tmp_path / "job", "--memory", mib)[1] for mib in ("1024", "6"))
    assert part["buckets"] == whole["buckets"]  # counts are the whole job's
    of_whole, of_part = cost_of(whole), cost_of(part)
    assert of_part["kind"] == of_whole["kind"]
    assert of_part["ranks"] == of_whole["ranks"] == ",".join(map(str, made.truth.ranks))
    assert of_part["cost"]["ns_per_step"] == pytest.approx(of_whole["cost"]["ns_per_step"], rel=0.1)
    assert of_part["cost"] != of_whole["cost"]  # it is of fewer steps
    assert whole["step"]["causes_why"] is part["step"]["causes_why"] is None


def keep_lines(file: pathlib.Path, steps: range) -> None:
    """Leaves out the lines of what was called or computed in other steps: they are marked in all."""
    kept, step, dropped = [], 0, 0
    for line in file.read_text().split("\n"):
        mark = '"cat":"NVTX","name":"step ' in line
        step += mark
        if '"cat":' in line and not mark and step not in steps:
            dropped += 1
        else:
            kept.append(line.replace('"dropped":{}', f'"dropped":{{"quota":{dropped}}}'))
    file.write_text("\n".join(kept))


@pytest.mark.parametrize("steps", some([range(26, 38), range(12)], 2), ids=str)  # a window, or what a quota leaves
def test_there_is_room_for_lines_and_not_for_calls(tmp_path, steps):
    made = causes.case("fsdp_tp", 8, "slow_gpu", 3, steps=40)
    rank_files.write(made, tmp_path / "job", 3)
    for file in (tmp_path / "job").glob("rank-*"):
        keep_lines(file, steps)
    report = told("report", tmp_path / "job", "--memory", "6")[1]
    found = cost_of(report)
    assert (found["kind"], found["ranks"]) == ("slow_gpu", ",".join(map(str, made.truth.ranks)))
    assert found["cost"]["ns_per_step"] == pytest.approx(made.truth.cost_ns_per_step, rel=0.05)


def test_how_much_room_a_replay_needs_is_said(tmp_path):
    rank_files.write(causes.case("fsdp_tp", 16, "slow_gpu", 3), tmp_path / "job", 3)
    code, report = told("report", tmp_path / "job", "--memory", "3")
    assert (code, [f for f in report["findings"] if f["cost"]]) == (0, [])
    needed = re.fullmatch(r".* --memory (\d+)\.", report["step"]["causes_why"])[1]
    said = tprof("report", tmp_path / "job", "--memory", "3").stdout
    assert f"--memory {needed}" in said and "Nothing is wrong:" not in said
    assert cost_of(told("report", tmp_path / "job", "--memory", needed)[1])["kind"] == "slow_gpu"
