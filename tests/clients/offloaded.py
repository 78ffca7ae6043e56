"""Trains on one GPU, with weights that come from pinned memory and activations that go there on streams of their
own, as offloading makes them, under torch.profiler. Writes its trace to OUT.

The copies are of no use, and nothing waits for them before the step ends: what computes beside them is what counts.
"""

import argparse

import torch
from common import Mlp, batches
from torch import nn
from torch.profiler import ProfilerActivity, profile

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
parser.add_argument("--width", type=int, required=True)
parser.add_argument("--depth", type=int, default=8)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--copy-bytes", type=int, required=True)
args = parser.parse_args()

torch.cuda.set_device(0)
torch.manual_seed(0)
model = Mlp(args.width, 4 * args.width, args.depth).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
here = [torch.empty(args.copy_bytes, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
there = [torch.zeros(args.copy_bytes, dtype=torch.uint8, device="cuda") for _ in range(2)]
streams = [torch.cuda.Stream() for _ in range(2)]


def copied(stream, to, source):
    def copy(*_):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            to.copy_(source, non_blocking=True)

    return copy


for block in model.blocks[::2]:
    block.register_forward_pre_hook(copied(streams[0], there[0], here[0]))
    block.register_full_backward_hook(copied(streams[1], here[1], there[1]))

with profile(activities=[ProfilerActivity.CUDA]) as profiler:
    for batch in batches(args.width, args.steps):
        x = batch.cuda()
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
profiler.export_chrome_trace(args.out)
