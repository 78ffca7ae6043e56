"""Copies and collectives of given sizes, each a given number of times, and nothing between."""

import argparse

import torch
import torch.distributed as dist
from common import log, start

parser = argparse.ArgumentParser()
parser.add_argument("--copy-bytes", type=int, nargs="+", default=[4099, 1000003])
parser.add_argument("--elements", type=int, default=1009, help="one rank's part of a collective")
parser.add_argument("--repeat", type=int, default=3)
args = parser.parse_args()

device = start()
world = dist.get_world_size()

for size in args.copy_bytes:
    numbers = torch.arange(size, dtype=torch.uint8)
    on_device = torch.empty_like(numbers, device=device)
    for pinned in (False, True):
        there = numbers.pin_memory() if pinned else numbers
        back = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        for _ in range(args.repeat):
            on_device.copy_(there, non_blocking=True)
            back.copy_(on_device, non_blocking=True)
        torch.cuda.synchronize()
        log(f"{size} bytes, pinned {pinned}: {'same' if torch.equal(numbers, back) else 'LOST'}")

part = torch.ones(args.elements, device=device)
whole = torch.ones(args.elements * world, device=device)
for _ in range(args.repeat):
    dist.all_gather_into_tensor(whole, part)
    dist.reduce_scatter_tensor(part, whole)
    dist.all_reduce(part)
    dist.broadcast(part, src=0)
torch.cuda.synchronize()
log("done")
dist.destroy_process_group()
