"""FSDP1: the blocks and the root are FullyShardedDataParallel units."""

import argparse

import torch
import torch.distributed as dist
from common import Block, Mlp, batches, log, start
from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--strategy", default="FULL_SHARD")
parser.add_argument("--shard-ranks", type=int, help="HYBRID_SHARD: ranks that share one copy")
parser.add_argument("--cpu-offload", action="store_true")
args = parser.parse_args()

if torch.__version__.startswith("2.0."):
    # PyTorch 2.0 compares the ranks' order on the GPU, and kernels may compute nothing here.
    torch.Tensor.__ne__ = lambda self, other: torch.ne(self.cpu(), other.cpu())

device = start()
options = {}
if args.shard_ranks:
    # PyTorch before 2.2 does not have it, and the plain run does without it.
    from torch.distributed.device_mesh import init_device_mesh

    replicas = dist.get_world_size() // args.shard_ranks
    options["device_mesh"] = init_device_mesh("cuda", (replicas, args.shard_ranks))
model = FullyShardedDataParallel(
    Mlp(args.width, args.hidden),
    auto_wrap_policy=ModuleWrapPolicy({Block}),
    sharding_strategy=ShardingStrategy[args.strategy],
    device_id=device,
    cpu_offload=CPUOffload(offload_params=args.cpu_offload),
    **options,
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step, batch in enumerate(batches(args.width, args.steps), start=1):
    x = batch.to(device)
    loss = torch.nn.functional.mse_loss(model(x), x)
    loss.backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    log(f"step {step}: {len(batch)} samples")

dist.barrier()
log("done")
dist.destroy_process_group()
