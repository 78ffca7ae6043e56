"""scripts/gpu-check, the command for a machine with GPUs, expects what its clients do."""

import os
import subprocess

from lib.build import BUILD, LIBTPROF, REPO
from lib.thorough import ALL

# One that needs a second; scripts/fresh-machine runs all checks. The others run PyTorch, several times.
CHECKS = ("python with one CUDA call",)
if ALL:
    CHECKS += ("copies and collectives", "calls beside CUPTI's", "times beside CUPTI's", "copies beside kernels", "step time")


def test_it_passes_on_the_stand_in_and_says_where_it_ran():
    done = subprocess.run(
        [REPO / "scripts/gpu-check", "--standin", *CHECKS],
        env={**os.environ, "TPROF_BUILD": str(BUILD), "LIBTPROF": str(LIBTPROF)},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gpu-check: ON THE STAND-IN, NOT ON A GPU: " in done.stdout
    assert "FAILED" not in done.stdout and f"gpu-check: {len(CHECKS)} of {len(CHECKS)} ok" in done.stdout
