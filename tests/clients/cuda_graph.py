"""An all-gather and copies captured in two CUDA graphs, replayed from two threads."""

import threading

import torch
import torch.distributed as dist
from common import log, start

REPLAYS = 5
REPLAYS_ELSEWHERE = 3  # of the first graph, by another thread
REPLAYS_OF_BOTH = 2  # one after the other

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
second = torch.cuda.CUDAGraph()
with torch.cuda.graph(second, stream=side):
    dist.all_gather_into_tensor(whole, shard)
    dist.all_gather_into_tensor(whole, shard)
for _ in range(REPLAYS):
    graph.replay()
torch.cuda.synchronize()
log(f"replayed: {host[::12].tolist()}")


def replay() -> None:
    for _ in range(REPLAYS_ELSEWHERE):
        graph.replay()
    torch.cuda.synchronize()


thread = threading.Thread(target=replay)
thread.start()
thread.join()
for _ in range(REPLAYS_OF_BOTH):
    graph.replay()
    second.replay()
torch.cuda.synchronize()
del graph
second.replay()
torch.cuda.synchronize()

dist.destroy_process_group()
