"""DDP whose ranks end without Python's and C's exit handlers, or not with these alone: by os._exit,
by execv into another program, or after subprocesses."""

import argparse
import os
import subprocess
import sys

STEPS = 6


def train() -> None:
    import torch
    from common import Mlp, batches, log, start, train_step
    from torch.nn.parallel import DistributedDataParallel

    device = start()
    model = DistributedDataParallel(Mlp().to(device), device_ids=[device.index])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for batch in batches(64, STEPS):
        train_step(model, optimizer, batch, device)
    torch.cuda.synchronize()
    log(f"{STEPS} steps")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", required=True)
    how = parser.parse_args().how
    train()
    if how == "_exit":
        os._exit(0)
    if how == "execv":
        # Like a launcher that starts its evaluation in the same process.
        os.execv(sys.executable, [sys.executable, "-c", "print('evaluated')"])
    if how == "subprocess":
        # Programs such as shells and compilers, which make no CUDA call.
        assert subprocess.run(["sh", "-c", "exit 3"], check=False).returncode == 3
        assert os.system("true") == 0


if __name__ == "__main__":
    main()
