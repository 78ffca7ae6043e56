"""The common part of the training scripts in this folder: a small model, its data and the log."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

BATCH = 16


class Block(nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Mlp(nn.Module):
    """Linear, `depth` residual blocks, Linear."""

    def __init__(self, width: int = 64, hidden: int = 256, depth: int = 4):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.blocks = nn.ModuleList(Block(width, hidden) for _ in range(depth))
        self.last = nn.Linear(width, width)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def start(**kwargs) -> torch.device:
    """Joins the job that torchrun describes and picks this rank's GPU."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", **kwargs)
    torch.manual_seed(1234 + dist.get_rank())
    return device


def sharded(model: Mlp, **how) -> nn.Module:
    """FSDP2: each block is a unit, and the root is another."""
    from torch.distributed.fsdp import fully_shard  # PyTorch 2.0 has it not

    for block in model.blocks:
        fully_shard(block, **how)
    return fully_shard(model, **how)


def batches(width: int, steps: int):
    for _ in range(steps):
        yield torch.randn(BATCH, width)


def train_step(model, optimizer, batch, device) -> float:
    x = batch.to(device)
    loss = nn.functional.mse_loss(model(x).float(), x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def log(text: str) -> None:
    """One write per line, so that lines of different ranks never mix."""
    sys.stdout.write(f"[rank {os.environ['RANK']}] {text}\n")
