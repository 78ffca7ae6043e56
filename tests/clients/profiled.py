"""DDP whose profiler somebody else starts: trains until its trace is there."""

import itertools
import os
import pathlib

import torch
from common import Mlp, batches, log, start, train_step
from torch.nn.parallel import DistributedDataParallel

device = start()
model = DistributedDataParallel(Mlp(depth=1).to(device), device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
trace = pathlib.Path(os.environ["KINETO_IPC_SOCKET_DIR"], "traces", f"kineto_{os.getpid()}.json")
for step in itertools.count(1):
    with torch.profiler.record_function(f"my step {step}"):
        train_step(model, optimizer, next(batches(64, 1)), device)
    if trace.exists():
        break
log(f"done after {step} steps")
torch.distributed.destroy_process_group()
