"""scripts/gpu-check, the command for a machine with GPUs: what it expects is what its clients do."""

import os
import subprocess

from lib.build import BUILD, REPO


def test_it_passes_on_the_stand_in_and_says_where_it_ran():
    done = subprocess.run(
        [REPO / "scripts/gpu-check", "--standin"],
        env={**os.environ, "TPROF_BUILD": str(BUILD)},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gpu-check: ON THE STAND-IN, NOT ON A GPU: " in done.stdout
    assert "FAILED" not in done.stdout and "gpu-check: 8 of 8 ok" in done.stdout
