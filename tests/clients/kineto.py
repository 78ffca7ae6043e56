"""Runs FSDP2 with some steps under torch.profiler, for device times as Kineto has them from CUPTI.

Writes OUT/kineto-RANK.json. The same steps lie between cudaProfilerStart and cudaProfilerStop.
"""

import argparse
import os

import torch
import torch.distributed as dist
from common import Mlp, batches, sharded, start, train_step
from torch.profiler import ProfilerActivity, profile

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--depth", type=int, default=2)
parser.add_argument("--warm-up", type=int, default=2)
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

device = start()
model = sharded(Mlp(args.width, args.hidden, args.depth).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(steps):
    for batch in batches(args.width, steps):
        train_step(model, optimizer, batch, device)
    torch.cuda.synchronize()


train(args.warm_up)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    torch.cuda.profiler.start()
    train(args.steps)
    torch.cuda.profiler.stop()
profiler.export_chrome_trace(os.path.join(args.out, f"kineto-{dist.get_rank()}.json"))
dist.destroy_process_group()
