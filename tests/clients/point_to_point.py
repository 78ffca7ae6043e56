"""A ring, a pipeline's sends and receives, and all-to-all: what is sent arrives."""

import torch
import torch.distributed as dist
from common import log, start

device = start()
rank, world = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world, (rank - 1) % world


def numbered(count: int, by: int) -> torch.Tensor:
    return (torch.arange(count, dtype=torch.int32) + 1000 * by).to(device)


# Batched: both directions of the ring in one group.
inbox = torch.zeros(33, dtype=torch.int32, device=device)
for _ in range(3):
    ring = [
        dist.P2POp(dist.isend, numbered(33, rank), right),
        dist.P2POp(dist.irecv, inbox, left),
    ]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
log(f"ring: {inbox.cpu()[:3].tolist()} from rank {left}")

# One by one, as pipeline stages do: each pair of neighbours has its own communicator.
stage = torch.zeros(17, dtype=torch.float64, device=device)
if rank > 0:
    dist.recv(stage, src=rank - 1)
else:
    stage.copy_(torch.arange(17, dtype=torch.float64))
if rank + 1 < world:
    dist.send(stage, dst=rank + 1)
log(f"pipeline: {stage.cpu()[:3].tolist()}")

# All to all: equal parts, then parts that differ.
parts = torch.zeros(5 * world, dtype=torch.int32, device=device)
dist.all_to_all_single(parts, numbered(5 * world, rank))
log(f"all to all: {parts.cpu()[::5].tolist()}")

sizes = [1 + (rank + peer) % 3 for peer in range(world)]
received = torch.zeros(sum(sizes), dtype=torch.int32, device=device)
dist.all_to_all_single(received, numbered(sum(sizes), rank), sizes, sizes)
log(f"uneven all to all: {received.cpu().tolist()}")

dist.destroy_process_group()
