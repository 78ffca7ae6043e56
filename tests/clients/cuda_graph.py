"""An all-gather and copies captured in a CUDA graph and replayed."""

import torch
import torch.distributed as dist
from common import log, start

REPLAYS = 5

device = start()
world = dist.get_world_size()
shard = torch.full((12,), float(dist.get_rank())).to(device)
whole = torch.empty(12 * world, device=device)
host = torch.empty(12 * world, pin_memory=True)

# NCCL sets up its buffers outside the capture.
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    dist.all_gather_into_tensor(whole, shard)
side.synchronize()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, stream=side):
    dist.all_gather_into_tensor(whole, shard)
    host.copy_(whole, non_blocking=True)
for _ in range(REPLAYS):
    graph.replay()
torch.cuda.synchronize()
log(f"replayed: {host[::12].tolist()}")

dist.destroy_process_group()
