"""Eager start with device_id: process groups are split from the world's communicator."""

import os

import torch
import torch.distributed as dist
from common import log, start

device = start(device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
rank, world = dist.get_rank(), dist.get_world_size()

# Tensor and pipeline groups of a 2-wide model, every rank in one of each.
tensor_groups = [dist.new_group([first, first + 1]) for first in range(0, world, 2)]
pipeline_groups = [dist.new_group(list(range(column, world, 2))) for column in range(2)]
for name, group in (("tensor", tensor_groups[rank // 2]), ("pipeline", pipeline_groups[rank % 2])):
    values = (torch.arange(7) + rank).to(device)
    dist.all_reduce(values, group=group)
    log(f"{name} group: {values.cpu().tolist()}")

values = torch.full((3,), rank).to(device)
dist.all_reduce(values)
log(f"world: {values.cpu().tolist()}")
dist.destroy_process_group()
