"""Runs FSDP2 steps; rank 0 prints the wall and CPU milliseconds of each: torchrun ... STEPS"""

import sys
import time

import torch
import torch.distributed as dist
from common import Mlp, batches, sharded, start, train_step

WIDTH, HIDDEN, DEPTH = 64, 256, 8

device = start()
model = sharded(Mlp(WIDTH, HIDDEN, DEPTH).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for batch in batches(WIDTH, int(sys.argv[1])):
    wall, cpu = time.perf_counter(), time.process_time()
    train_step(model, optimizer, batch, device)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if dist.get_rank() == 0:
        print(f"step {1000 * wall:.3f} {1000 * cpu:.3f}", flush=True)
dist.destroy_process_group()
