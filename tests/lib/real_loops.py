"""The training loops of tests/clients/loops.py that tests share."""

from lib import launch
from lib.build import LIBTPROF

STEPS = 6
ACCUMULATED = ("--accumulate", "4")
LAST_ONLY = (*ACCUMULATED, "--no-sync")

# case -> (arguments of loops.py, steps found per step of the loop, whether they are said to be whole)
LOOPS = {
    "fsdp2": (("fsdp2", "--clip"), 1, False),
    "fsdp2-every-micro-batch": (("fsdp2", *ACCUMULATED, "--clip"), 4, False),
    "fsdp2-last-only": (("fsdp2", *LAST_ONLY, "--eval-every", "2"), 1, True),
    "fsdp1-evaluated": (("fsdp1", "--eval-every", "2", "--clip"), 1, False),
    "ddp": (("ddp", "--eval-every", "2"), 1, False),
    "ddp-last-only": (("ddp", *LAST_ONLY), 1, False),
    "ddp-last-only-evaluated": (("ddp", *LAST_ONLY, "--eval-every", "2"), 1, False),
    "ddp-every-micro-batch": (("ddp", *ACCUMULATED), 4, False),
    "zero1": (("zero1", *ACCUMULATED), 1, True),
    "zero3": (("zero3",), 1, True),
    "zero3-every-micro-batch": (("zero3", *ACCUMULATED), 4, False),
}


def loop(folder, *arguments, ranges="pass "):
    # The ranges have no name that is known for steps: they are the truth here, and no mark.
    command = launch.without_agent("loops.py", 2, (*arguments, "--ranges", ranges))
    run = launch.start(command, folder, NVTX_INJECTION64_PATH=str(LIBTPROF))
    assert run.code == 0, run.stderr
    assert run.lines() == [f"[rank {rank}] steps {STEPS}" for rank in range(2)]
    return run
