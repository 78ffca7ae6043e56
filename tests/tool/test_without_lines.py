"""Where a setting keeps calls from getting lines, that is the reason for everything that is then not known."""

import pytest
from lib.filtered import leave_step_lines, training
from lib.tool import told, tprof


@pytest.fixture(params=[("TPROF_EVENTS", "off", "TPROF_EVENTS=off"), ("TPROF_RANKS", "8-15", "TPROF_RANKS")])
def made(request, tmp_path):
    name, value, by = request.param
    loop, _ = training()
    for rank in loop.job.ranks:
        rank.dropped, rank.header = {"window": len(rank.ops)}, {"config": {name: value}}
    folder = loop.job.write(tmp_path / "job")
    leave_step_lines(loop, folder)
    return folder, by


@pytest.mark.parametrize("by", ["layer", "range"])
def test_tables_of_lines_name_the_setting(made, by):
    folder, setting = made
    text = tprof("summary", folder, "--by", by).stdout
    assert f"has a line ({setting})" in text and "did not arrive" not in text and "common order" not in text


def test_so_do_the_counts_of_calls_without_a_line(made):
    folder, setting = made
    (finding,) = [f for f in told("summary", folder)[1]["findings"] if f["kind"] == "dropped"]
    assert setting in finding["text"] and "window" not in finding["text"]
