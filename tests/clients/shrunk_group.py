"""A group that goes on without its last rank (ncclCommShrink)."""

import os

import torch
import torch.distributed as dist
from common import log, start

device = start(device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
rank, world = dist.get_rank(), dist.get_world_size()

values = torch.full((3,), rank).to(device)
dist.all_reduce(values)
log(f"all: {values.cpu().tolist()}")
if rank != world - 1:
    dist.shrink_group([world - 1])
    for step in range(2):
        values = torch.full((5,), rank + step).to(device)
        dist.all_reduce(values)
        log(f"without the last: {values.cpu().tolist()}")
dist.destroy_process_group()
