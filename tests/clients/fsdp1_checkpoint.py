"""FSDP1: trains, saves model and optimizer as sharded state dicts, and loads them again.

FSDP times its state-dict code with its own SimpleProfiler, which keeps seconds only. This script
prints at the end how often each of its ranges was entered.
"""

import collections
import json

import torch
import torch.distributed as dist
from common import batches, log, start, train_step
from torch import nn
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictType,
)
from torch.distributed.fsdp._debug_utils import SimpleProfiler
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

# PyTorch pickles a tensor under the address of its storage in decimal. That has 14 or 15 digits, as
# the heap or a mapping holds it. With one length for all, every run gathers the same size.
address = torch._C.StorageBase._cdata
torch.UntypedStorage._cdata = property(lambda storage: 10**15 + address.__get__(storage))

entered = collections.Counter()
profile = SimpleProfiler.profile


def counted(kind):
    entered[getattr(kind, "value", kind)] += 1
    return profile(kind)


SimpleProfiler.profile = counted

device = start()
model = FullyShardedDataParallel(
    # One parameter per unit, so that what the ranks tell each other about it has one size: PyTorch
    # finds the largest by comparing on the GPU.
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
