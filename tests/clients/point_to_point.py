"""A ring, a pipeline's sends and receives, and all-to-all: what is sent arrives."""

import torch
import torch.distributed as dist
from common import log, start

device = start()
rank, world = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % world, (rank - 1) % world


def numbered(count: int, by: int) -> torch.Tensor:
    return (torch.arange(count, dtype=torch.int32) + 1000 * by).to(device)


def arrived(what: str, tensor: torch.Tensor, expected: list) -> None:
    assert tensor.cpu().tolist() == expected, (what, tensor.cpu(), expected)
    log(f"{what}: {tensor.cpu()[:9].tolist()}")


# Batched: both directions of the ring in one group, in several pieces.
inbox = torch.zeros(100_003, dtype=torch.int32, device=device)
for _ in range(3):
    ring = [
        dist.P2POp(dist.isend, numbered(100_003, rank), right),
        dist.P2POp(dist.irecv, inbox, left),
    ]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
arrived(f"ring, from rank {left}", inbox, [1000 * left + i for i in range(100_003)])

# One by one, as pipeline stages do: each pair of neighbours has its own communicator.
stage = torch.zeros(17, dtype=torch.float64, device=device)
if rank > 0:
    dist.recv(stage, src=rank - 1)
else:
    stage.copy_(torch.arange(17, dtype=torch.float64))
if rank + 1 < world:
    dist.send(stage, dst=rank + 1)
arrived("pipeline", stage, list(range(17)))

# All to all: equal parts, then parts that differ.
parts = torch.zeros(5 * world, dtype=torch.int32, device=device)
dist.all_to_all_single(parts, numbered(5 * world, rank))
arrived("all to all", parts, [1000 * peer + 5 * rank + i for peer in range(world) for i in range(5)])

sizes = [1 + (rank + peer) % 3 for peer in range(world)]
received = torch.zeros(sum(sizes), dtype=torch.int32, device=device)
dist.all_to_all_single(received, numbered(sum(sizes), rank), sizes, sizes)
begins = [sum(1 + (peer + to) % 3 for to in range(rank)) for peer in range(world)]
arrived("uneven all to all", received, [1000 * peer + begins[peer] + i for peer in range(world) for i in range(sizes[peer])])

dist.destroy_process_group()
