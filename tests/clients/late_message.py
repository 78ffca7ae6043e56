"""Two ranks: rank 0 sends to rank 1, and one of them comes late to each message."""

import argparse
import time

import torch
import torch.distributed as dist
from common import start

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--ms", type=float, required=True)
parser.add_argument("--messages", type=int, default=5)
args = parser.parse_args()

device = start()
tensor = torch.zeros(1 << 20, device=device)
dist.all_reduce(tensor)
for _ in range(args.messages):
    torch.cuda.synchronize()
    if dist.get_rank() == args.rank:
        time.sleep(args.ms / 1000)
    if dist.get_rank() == 0:
        dist.send(tensor, dst=1)
    else:
        dist.recv(tensor, src=0)
torch.cuda.synchronize()
dist.destroy_process_group()
