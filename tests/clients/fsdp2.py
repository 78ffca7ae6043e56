"""FSDP2: fully_shard on every block and on the root; with --shard-ranks, HSDP on a 2-D mesh."""

import argparse

import torch
import torch.distributed as dist
from common import Mlp, batches, log, start, train_step
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--keep-parameters", action="store_true", help="no reshard after forward")
parser.add_argument("--shard-ranks", type=int, help="HSDP: ranks that share one copy")
parser.add_argument("--cpu-offload", action="store_true")
parser.add_argument("--bfloat16", action="store_true")
args = parser.parse_args()

device = start()
world = dist.get_world_size()
if args.shard_ranks:
    shape, names = (world // args.shard_ranks, args.shard_ranks), ("replicate", "shard")
else:
    shape, names = (world,), ("shard",)
options = {
    "mesh": init_device_mesh("cuda", shape, mesh_dim_names=names),
    "reshard_after_forward": not args.keep_parameters,
}
if args.cpu_offload:
    options["offload_policy"] = CPUOffloadPolicy()
if args.bfloat16:
    options["mp_policy"] = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=torch.float32
    )

model = Mlp(args.width, args.hidden)
if not args.cpu_offload:
    model.cuda()
for block in model.blocks:
    fully_shard(block, **options)
# The root is needed again at once, so by default it keeps its parameters.
options.pop("reshard_after_forward")
fully_shard(model, **options)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step, batch in enumerate(batches(args.width, args.steps), start=1):
    train_step(model, optimizer, batch, device)
    log(f"step {step}: {len(batch)} samples")

log("done")
dist.destroy_process_group()
