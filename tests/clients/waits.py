"""A rank alone that waits for its device before some of its all-reduces, and measures for how long.

Prints one JSON list of seconds: for each all-reduce, what the script waited since the one before. `--waits` says
how: synchronize, event, item (a copy, and then the stream), or never."""

import argparse
import json
import time

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--waits", default="synchronize")
args = parser.parse_args()
torch.cuda.set_device(0)
dist.init_process_group("nccl")
x = torch.ones(64, device="cuda")
dist.all_reduce(x)  # makes the communicator
torch.cuda.synchronize()


def wait():
    if args.waits == "synchronize":
        torch.cuda.synchronize()
    elif args.waits == "event":
        event = torch.cuda.Event()
        event.record()
        event.synchronize()
    elif args.waits == "item":
        x[0].item()


waited = []
for number in range(12):
    x.mul_(1.0)
    begin = time.perf_counter()
    if number % 3 != 2:
        wait()
    waited.append(time.perf_counter() - begin)
    dist.all_reduce(x)
torch.cuda.synchronize()
print(json.dumps(waited))
dist.destroy_process_group()
