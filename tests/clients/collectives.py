"""Every collective of torch.distributed once or more: plain, coalesced, uneven, in subgroups."""

import torch
import torch.distributed as dist
from common import log, start
from torch.distributed import _coalescing_manager

device = start()
rank, world = dist.get_rank(), dist.get_world_size()


def of(peer: int, count: int) -> torch.Tensor:
    return (torch.arange(count) + 100 * peer).to(torch.int32)


def of_all(count: int, peers=range(world)) -> torch.Tensor:
    """Returns a row of data for each rank."""
    return torch.stack([of(peer, count) for peer in peers])


def numbered(count: int, dtype=torch.int32) -> torch.Tensor:
    """Returns data that the CPU made, so that what comes back can be checked without a kernel."""
    return of(rank, count).to(dtype).to(device)


def arrived(what: str, tensor: torch.Tensor, expected: torch.Tensor) -> None:
    assert torch.equal(tensor.cpu(), expected.to(tensor.dtype)), (what, tensor.cpu(), expected)
    log(f"{what}: {tensor.cpu()[:9].tolist()}")


def empty(count: int, dtype=torch.int32) -> torch.Tensor:
    return torch.empty(count, dtype=dtype, device=device)


dtypes = (torch.uint8, torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float64)
for dtype in dtypes:
    small = (of(rank, 6) % 7).to(dtype).to(device)
    dist.all_reduce(small)
    arrived(f"all_reduce {dtype}", small, (of_all(6) % 7).sum(0))
for op, expected in (("MAX", torch.amax), ("MIN", torch.amin), ("PRODUCT", torch.prod), ("AVG", torch.mean)):
    values = (torch.arange(4, dtype=torch.float32) + rank).to(device)
    dist.all_reduce(values, getattr(dist.ReduceOp, op))
    arrived(f"all_reduce {op}", values, expected(torch.arange(4.0) + torch.arange(world)[:, None], 0))
large = numbered(300_001)  # in several pieces
dist.all_reduce(large)
arrived("all_reduce", large, of_all(300_001).sum(0))
scaled = torch.full((4,), rank + 1.0).to(device)
dist.all_reduce(scaled, dist._make_nccl_premul_sum(3.0))
arrived("all_reduce of thrice as much", scaled, torch.full((4,), 1.5 * world * (world + 1)))

values = numbered(9)
dist.broadcast(values, src=world - 1)
arrived("broadcast", values, of(world - 1, 9))
dist.reduce(values, dst=0)
if rank == 0:
    arrived("reduce", values, world * of(world - 1, 9))

gathered = empty(4 * world)
dist.all_gather_into_tensor(gathered, numbered(4))
arrived("all_gather", gathered, of_all(4).flatten())
scattered = empty(3)
dist.reduce_scatter_tensor(scattered, numbered(3 * world))
arrived("reduce_scatter", scattered, of_all(3 * world).sum(0)[3 * rank : 3 * rank + 3])

# Lists of unequal sizes become broadcasts and reduces in one group.
uneven = [empty(2 + peer) for peer in range(world)]
dist.all_gather(uneven, numbered(2 + rank))
arrived("uneven all_gather", torch.cat(uneven), torch.cat([of(peer, 2 + peer) for peer in range(world)]))

with _coalescing_manager(device=device):
    many = [(empty(size * world), numbered(size)) for size in (1, 10, 100)]
    for output, shard in many:
        dist.all_gather_into_tensor(output, shard)
for output, shard in many:
    arrived("coalesced all_gather", output, of_all(len(shard)).flatten())
with _coalescing_manager(device=device):
    many = [(empty(size), numbered(size * world)) for size in (1, 10, 100)]
    for output, whole in many:
        dist.reduce_scatter_tensor(output, whole)
for output, whole in many:
    arrived("coalesced reduce_scatter", output, of_all(len(whole)).sum(0).reshape(world, -1)[rank])
with _coalescing_manager(device=device):
    several = [numbered(size) for size in (2, 3)]
    for tensor in several:
        dist.all_reduce(tensor)
for tensor in several:
    arrived("coalesced all_reduce", tensor, of_all(len(tensor)).sum(0))

gather_list = [empty(3) for _ in range(world)] if rank == 0 else None
dist.gather(numbered(3), gather_list, dst=0)
if gather_list:
    arrived("gather", torch.cat(gather_list), of_all(3).flatten())
output = empty(3)
dist.scatter(output, [(of(0, 3) + peer).to(device) for peer in range(world)] if rank == 0 else None, src=0)
arrived("scatter", output, of(0, 3) + rank)

# Halves of the world, and a group that overlaps them.
halves = [dist.new_group(list(range(world // 2))), dist.new_group(list(range(world // 2, world)))]
mine = halves[rank // (world // 2)] if world > 1 else None
values = numbered(5)
dist.all_reduce(values, group=mine)
arrived("half", values, of_all(5, [peer for peer in range(world) if mine is None or peer // (world // 2) == rank // (world // 2)]).sum(0))
edges = dist.new_group([0, world - 1])
if rank in (0, world - 1):
    values = numbered(5)
    dist.all_reduce(values, group=edges)
    arrived("edges", values, of_all(5, {0, world - 1}).sum(0))

dist.barrier()
dist.destroy_process_group()
