"""A scheduler's time limit: SIGTERM to the launcher, which torchrun's agent hands on to its ranks."""

import os
import signal
import subprocess

from lib import figures, launch, rankfile
from lib.build import BUILD

RANKS = 2


def test_sigterm_to_tprof_run_leaves_a_closed_file_of_every_rank(built, tmp_path):
    traces, tally = tmp_path / "traces", tmp_path / "tally"
    tally.mkdir()
    env = launch.environment(tmp_path, preload=False)
    del env["TPROF_OUTPUT_DIR"]
    training = launch.torchrun("diverge.py", RANKS, ("--what", "nothing", "--steps", "1000000"))
    command = [BUILD / "tprof", "run", "--out", traces, "--", *training]
    with subprocess.Popen(
        command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            # Until every rank is in its loop: some hundred lines.
            while len([f for f in traces.glob("*.json") if f.stat().st_size > 100_000]) < RANKS:
                assert run.poll() is None
            run.terminate()
            _, stderr = run.communicate(timeout=launch.TIME_LIMIT_S)
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode != 0
    assert "Totals over 2 processes" in stderr
    assert rankfile.rings(traces) == {} and {file.suffix for file in traces.iterdir()} == {".json"}

    tallies = {one["pid"]: one for one in figures.read_tallies(tally)}
    files = rankfile.read_folder(traces)
    assert [file.rank for file in files] == list(range(RANKS))
    for file in files:
        assert file.footer["complete"] is False
        ours = figures.of_ledger(file)
        for key, figure in figures.of_tally(tallies[file.header["pid"]]).items():
            # Killed between the library's return and ours, a thread's call stays unfinished.
            calls = ours[key]["calls"]
            assert figure["calls"] - 1 <= calls <= figure["calls"], (file.path.name, key)
