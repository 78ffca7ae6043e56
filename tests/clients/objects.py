"""Python objects over NCCL: gathered and scattered, beside a plain all-gather.

All objects of a call have one size: PyTorch takes the largest by comparing on the GPU.
"""

import torch
import torch.distributed as dist
from common import log, start

device = start()
rank, world = dist.get_rank(), dist.get_world_size()

for round_ in range(3):
    everyone = [None] * world
    dist.all_gather_object(everyone, {"rank": rank, "round": round_, "note": "x" * (1 + round_)})
    log(f"round {round_}: {[(one['rank'], one['note']) for one in everyone]}")
    # This all-gather of a byte tensor is not part of an object gather.
    whole = torch.empty(32 * world, dtype=torch.uint8, device=device)
    dist.all_gather_into_tensor(whole, torch.full((32,), rank, dtype=torch.uint8).to(device))

share = [None]
dist.scatter_object_list(share, [f"part {peer}" for peer in range(world)] if rank == 0 else None)
log(f"scatter: {share}")

dist.barrier()
dist.destroy_process_group()
