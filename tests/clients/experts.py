"""Experts on all ranks, marked steps: tokens go to their experts and back, by uneven all-to-alls.

The expert of one rank may be hot: it gets most of the tokens, and computes longer by as much."""

import argparse

import torch
import torch.distributed as dist
from common import start

parser = argparse.ArgumentParser()
parser.add_argument("--hot", type=int, default=-1)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--kernels", type=int, default=10)  # of an expert that is not hot
parser.add_argument("--times", type=int, default=10)  # as many of the hot one
parser.add_argument("--item", action="store_true")  # the host waits for a value in each step
args = parser.parse_args()

TOKENS, WIDTH = 256, 128
device = start()
rank, world = dist.get_rank(), dist.get_world_size()
dense = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(args.layers)).cuda()
optimizer = torch.optim.SGD(dense.parameters(), lr=1e-3)

cold = TOKENS // world if args.hot < 0 else TOKENS // (2 * world)
sends = [cold] * world
if args.hot >= 0:
    sends[args.hot] = TOKENS - cold * (world - 1)
gets = [sends[rank]] * world
kernels = args.kernels * (args.times if rank == args.hot else 1)
work = torch.ones(64, device=device)

for step in range(args.steps):
    with torch.cuda.nvtx.range(f"step {step}"):
        x = torch.randn(TOKENS, WIDTH, device=device)
        for layer in dense:
            x = layer(x)
            tokens = torch.empty(sum(gets), WIDTH, device=device)
            dist.all_to_all_single(tokens, x.detach(), gets, sends)
            with torch.no_grad():
                for _ in range(kernels):
                    work = work * 1.0
            back = torch.empty(TOKENS, WIDTH, device=device)
            dist.all_to_all_single(back, tokens, sends, gets)
            x = x + back
        loss = x.sum()
        loss.backward()
        for parameter in dense.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        if args.item:
            loss.item()
torch.cuda.synchronize()
dist.destroy_process_group()
