"""`tprof run` says how its job went when the command has ended."""

from lib import launch
from lib.build import BUILD, TPROF


def test_the_summary_comes_where_the_page_can_not_be_written(tmp_path):
    """As on a full disk; here somebody else's file stands in its place."""
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "report.html").write_text("mine")
    run = launch.start([TPROF, "run", "--out", traces, "--", BUILD / "copies"], tmp_path, preload=False)
    assert run.code == 0
    assert "tprof: " in run.stderr and "exists and is no page of tprof report" in run.stderr
    assert "Totals over 1 process" in run.stderr and "-o FILE.html" in run.stderr
    assert (traces / "report.html").read_text() == "mine"
