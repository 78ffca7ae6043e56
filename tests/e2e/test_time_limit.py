"""A scheduler's time limit: SIGTERM to the launcher, which torchrun's agent hands on to its ranks."""

from lib import figures, launch, rankfile, runs, tally
from lib.build import TPROF

RANKS = 2


def test_sigterm_to_tprof_run_leaves_a_closed_file_of_every_rank(tmp_path):
    traces = tmp_path / "traces"
    training = launch.torchrun("diverge.py", RANKS, ("--what", "nothing", "--steps", "1000000"))
    command = [TPROF, "run", "--out", traces, "--", *training]
    with launch.running(command, tmp_path, preload=False, TPROF_OUTPUT_DIR=None) as run:
        # Waits until every rank is in its loop, which is after some hundred lines.
        runs.until(lambda: len([f for f in traces.glob("*.json") if f.stat().st_size > 100_000]) == RANKS)
        run.terminate()
        _, stderr = run.communicate(timeout=launch.TIME_LIMIT_S)
    assert run.returncode != 0
    assert "Totals over 2 processes" in stderr
    assert rankfile.rings(traces) == {} and {file.suffix for file in traces.iterdir()} == {".json", ".html"}

    tallies = tally.by_pid(tmp_path / "tally")
    files = rankfile.read_folder(traces)
    assert [file.rank for file in files] == list(range(RANKS))
    for file in files:
        assert file.footer["complete"] is False
        ours = figures.of_ledger(file)
        for key, figure in figures.of_tally(tallies[file.header["pid"]]).items():
            # Killed between the library's return and ours, a thread's call stays unfinished.
            calls = ours[key]["calls"]
            assert figure["calls"] - 1 <= calls <= figure["calls"], (file.path.name, key)
