"""Every collective of torch.distributed once or more: plain, coalesced, uneven, in subgroups."""

import torch
import torch.distributed as dist
from common import log, start
from torch.distributed import _coalescing_manager

device = start()
rank, world = dist.get_rank(), dist.get_world_size()


def numbered(count: int, dtype=torch.int32) -> torch.Tensor:
    """Returns data that the CPU made, so that what comes back can be checked without a kernel."""
    return (torch.arange(count) + 100 * rank).to(dtype).to(device)


def empty(count: int, dtype=torch.int32) -> torch.Tensor:
    return torch.empty(count, dtype=dtype, device=device)


dtypes = (torch.uint8, torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float64)
for dtype in dtypes:
    small = numbered(6).cpu().remainder(7).to(dtype).to(device)
    dist.all_reduce(small)
    log(f"all_reduce {dtype}: {small.cpu().tolist()}")
for op in (dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PRODUCT, dist.ReduceOp.AVG):
    values = (torch.arange(4, dtype=torch.float32) + rank).to(device)
    dist.all_reduce(values, op)
    log(f"all_reduce {op}: {values.cpu().tolist()}")

values = numbered(9)
dist.broadcast(values, src=world - 1)
log(f"broadcast: {values.cpu().tolist()}")
dist.reduce(values, dst=0)
log(f"reduce: {values.cpu().tolist() if rank == 0 else None}")

gathered = empty(4 * world)
dist.all_gather_into_tensor(gathered, numbered(4))
log(f"all_gather: {gathered.cpu().tolist()}")
scattered = empty(3)
dist.reduce_scatter_tensor(scattered, numbered(3 * world))
log(f"reduce_scatter: {scattered.cpu().tolist()}")

# Lists of unequal sizes become broadcasts and reduces in one group.
uneven = [empty(2 + peer) for peer in range(world)]
dist.all_gather(uneven, numbered(2 + rank))
log(f"uneven all_gather: {[part.cpu().tolist() for part in uneven]}")

with _coalescing_manager(device=device):
    many = [(empty(size * world), numbered(size)) for size in (1, 10, 100)]
    for output, shard in many:
        dist.all_gather_into_tensor(output, shard)
log(f"coalesced all_gather: {[int(output.cpu()[-1]) for output, _ in many]}")
with _coalescing_manager(device=device):
    many = [(empty(size), numbered(size * world)) for size in (1, 10, 100)]
    for output, whole in many:
        dist.reduce_scatter_tensor(output, whole)
log(f"coalesced reduce_scatter: {[int(output.cpu()[-1]) for output, _ in many]}")
with _coalescing_manager(device=device):
    several = [numbered(size) for size in (2, 3)]
    for tensor in several:
        dist.all_reduce(tensor)
log(f"coalesced all_reduce: {[tensor.cpu().tolist() for tensor in several]}")

gather_list = [empty(3) for _ in range(world)] if rank == 0 else None
dist.gather(numbered(3), gather_list, dst=0)
log(f"gather: {[t.cpu().tolist() for t in gather_list] if gather_list else None}")
output = empty(3)
dist.scatter(output, [numbered(3) for _ in range(world)] if rank == 0 else None, src=0)
log(f"scatter: {output.cpu().tolist()}")

# Halves of the world, and a group that overlaps them.
halves = [dist.new_group(list(range(world // 2))), dist.new_group(list(range(world // 2, world)))]
mine = halves[rank // (world // 2)] if world > 1 else None
values = numbered(5)
dist.all_reduce(values, group=mine)
log(f"half: {values.cpu().tolist()}")
edges = dist.new_group([0, world - 1])
if rank in (0, world - 1):
    values = numbered(5)
    dist.all_reduce(values, group=edges)
    log(f"edges: {values.cpu().tolist()}")

dist.barrier()
dist.destroy_process_group()
