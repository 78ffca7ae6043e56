"""A DeviceMesh of two dimensions, dp and tp: tensor parallelism within, FSDP2 or DDP across."""

import argparse

import torch
import torch.distributed as dist
from common import Block, batches, log, start, train_step
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.distributed.tensor.parallel.ddp import _pre_dp_module_transform
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--tp", type=int, default=2)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--across", choices=("fsdp", "ddp"), default="fsdp")
parser.add_argument("--sequence", action="store_true", help="activations are sharded between blocks")
args = parser.parse_args()

WIDTH = 64
device = start()
dp = dist.get_world_size() // args.tp
mesh = init_device_mesh("cuda", (dp, args.tp), mesh_dim_names=("dp", "tp"))
torch.manual_seed(7)  # what tensor parallelism does not split is equal on its ranks
model = nn.Sequential(*(Block(WIDTH, 4 * WIDTH) for _ in range(4))).cuda()
for index, block in enumerate(model):
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    if args.sequence:
        plan["down"] = RowwiseParallel(output_layouts=Shard(0), use_local_output=True)
        plan["up"] = ColwiseParallel(input_layouts=Shard(0))
    parallelize_module(block, mesh["tp"], plan)
if args.across == "fsdp":
    for block in model:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
else:
    _pre_dp_module_transform(model)  # DDP knows no DTensor
    model = DistributedDataParallel(model, process_group=mesh["dp"].get_group())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in batches(WIDTH, args.steps):
    train_step(model, optimizer, batch, device)
log("done")
dist.destroy_process_group()
