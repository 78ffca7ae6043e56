"""One GPU, no launcher and no process group; --end says how the script ends."""

import argparse
import os
import signal
import subprocess
import sys

import torch
from common import Mlp, batches, train_step

parser = argparse.ArgumentParser()
parser.add_argument("--end", default="return")
args = parser.parse_args()

device = torch.device("cuda", 0)
model = Mlp().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step, batch in enumerate(batches(64, 3), start=1):
    train_step(model, optimizer, batch, device)
    print(f"step {step}: {len(batch)} samples", flush=True)

if args.end == "exit":
    sys.exit(7)
if args.end == "exception":
    raise RuntimeError("no data left")
if args.end == "_exit":
    os._exit(5)
if args.end == "signal":
    os.kill(os.getpid(), signal.SIGTERM)
if args.end == "execv":  # like a launcher that starts its evaluation in the same process
    os.execv(sys.executable, [sys.executable, "-c", "print('evaluated')"])
if args.end == "subprocess":  # programs that make no CUDA call
    assert subprocess.run(["sh", "-c", "exit 3"], check=False).returncode == 3
    assert os.system("true") == 0
