"""FSDP2 with a mark around each step, in which one rank may be late: before it, or in its middle."""

import argparse
import time

import torch
import torch.distributed as dist
from common import Mlp, batches, sharded, start
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=-1)
parser.add_argument("--where", choices=("before", "middle"), default="before")
parser.add_argument("--ms", type=float, default=0)
args = parser.parse_args()

device = start()
model = sharded(Mlp().cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
late = dist.get_rank() == args.rank
for step, batch in enumerate(batches(64, 10)):
    with torch.cuda.nvtx.range(f"step {step}"):
        if late and args.where == "before":
            time.sleep(args.ms / 1000)
        batch = batch.to(device)
        loss = nn.functional.mse_loss(model(batch).float(), batch)
        if late and args.where == "middle":
            time.sleep(args.ms / 1000)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
torch.cuda.synchronize()
dist.destroy_process_group()
