"""DDP without marks, in which one rank's batches always come late; each rank logs how long its steps took."""

import time

import torch
import torch.distributed as dist
from common import Mlp, batches, log, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
LATE_RANK, LATE_S = 1, 0.1

device = start()
model = DistributedDataParallel(Mlp().to(device), device_ids=[device.index])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
begun = []
for step, batch in enumerate(batches(64, STEPS), start=1):
    if dist.get_rank() == LATE_RANK:
        time.sleep(LATE_S)
    ready = batch.pin_memory()
    begun.append(time.perf_counter())
    x = ready.to(device, non_blocking=True)
    loss = nn.functional.mse_loss(model(x), x)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step % 5 == 0:
        loss.item()
torch.cuda.synchronize()
begun.append(time.perf_counter())
log("took " + " ".join(f"{to - at:.6f}" for at, to in zip(begun, begun[1:])))
dist.destroy_process_group()
