"""FSDP1: trains, saves model and optimizer as sharded state dicts, loads them again.

FSDP times its state-dict code with its own SimpleProfiler, which keeps seconds only; how often
each of its ranges was entered is printed at the end.
"""

import collections
import ctypes
import json

# One malloc arena: PyTorch pickles a tensor under its address in decimal, which has a digit more in
# the arena of another thread, and the sizes of what is gathered should be those of the last run.
M_ARENA_MAX = -8
ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from common import batches, log, start, train_step  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import (  # noqa: E402
    FullyShardedDataParallel,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictType,
)
from torch.distributed.fsdp._debug_utils import SimpleProfiler  # noqa: E402
from torch.distributed.fsdp.wrap import ModuleWrapPolicy  # noqa: E402

entered = collections.Counter()
profile = SimpleProfiler.profile


def counted(kind):
    entered[getattr(kind, "value", kind)] += 1
    return profile(kind)


SimpleProfiler.profile = counted

device = start()
model = FullyShardedDataParallel(
    # One parameter a unit, so that what the ranks tell each other about it has one size: PyTorch
    # takes the largest by comparing on the GPU.
    nn.Sequential(*(nn.Linear(64, 64, bias=False) for _ in range(5))),
    auto_wrap_policy=ModuleWrapPolicy({nn.Linear}),
    device_id=device,
    use_orig_params=True,
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step, batch in enumerate(batches(64, 3), start=1):
    train_step(model, optimizer, batch, device)
    log(f"step {step}: {len(batch)} samples")

FullyShardedDataParallel.set_state_dict_type(
    model,
    StateDictType.SHARDED_STATE_DICT,
    ShardedStateDictConfig(offload_to_cpu=True),
    ShardedOptimStateDictConfig(offload_to_cpu=True),
)
weights = model.state_dict()
states = FullyShardedDataParallel.optim_state_dict(model, optimizer)
model.load_state_dict(weights)
optimizer.load_state_dict(
    FullyShardedDataParallel.optim_state_dict_to_load(model, optimizer, states)
)

log(f"{len(weights)} parameters, {len(states['state'])} optimizer states")
log(f"SimpleProfiler: {json.dumps(entered, sort_keys=True)}")
dist.destroy_process_group()
