"""FSDP2 with the NVTX ranges that people put into their loops; prints how many of each name it made."""

import collections
import json

import torch
import torch.distributed as dist
from common import Mlp, batches, log, sharded, start
from torch import nn

made = collections.Counter()


class Range:
    """torch.cuda.nvtx.range, counted."""

    def __init__(self, name):
        made[name] += 1
        self.range = torch.cuda.nvtx.range(name)

    def __enter__(self):
        self.range.__enter__()

    def __exit__(self, *exception):
        self.range.__exit__(*exception)


def ranged(block, name):
    """Puts a range around a module's forward, as Megatron and DeepSpeed do."""

    def push(*_):
        made[name] += 1
        torch.cuda.nvtx.range_push(name)

    def pop(*_):
        torch.cuda.nvtx.range_pop()

    block.register_forward_pre_hook(push)
    block.register_forward_hook(pop)


device = start()
model = sharded(Mlp().cuda())
for i, block in enumerate(model.blocks):
    ranged(block, f"block {i}")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step, batch in enumerate(batches(64, 3)):
    with Range(f"step {step}"):
        x = batch.to(device)
        with Range("forward"):
            loss = nn.functional.mse_loss(model(x), x)
        with Range("backward"):
            loss.backward()
        with Range("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
    torch.cuda.nvtx.mark(f"end of step {step}")

log(json.dumps(made))
dist.destroy_process_group()
