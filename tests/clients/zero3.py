"""DeepSpeed ZeRO-3 with its own parameter profiler switched on, which is printed at the end."""

import collections
import json
import logging
import os

# Read when deepspeed is imported.
os.environ.setdefault("DS_ACCELERATOR", "cuda")

import deepspeed
import torch
import torch.distributed as dist
from common import Mlp, batches, log, start
from deepspeed.runtime.zero import partitioned_param_coordinator, stage3
from deepspeed.runtime.zero.partitioned_param_profiler import PartitionedParameterProfiler
from deepspeed.utils import logger

calls, elements = collections.Counter(), collections.Counter()


class WholeRunProfiler(PartitionedParameterProfiler):
    """DeepSpeed's profiler forgets after every step; this one also keeps the sum."""

    def stop_event(self, name, num_elem):
        super().stop_event(name, num_elem)
        calls[name] += 1
        elements[name] += num_elem


# The profiler has no configuration key.
partitioned_param_coordinator.ENABLE_PROFILER = True
partitioned_param_coordinator.PartitionedParameterProfiler = WholeRunProfiler
logger.setLevel(logging.WARNING)
# Where kernels compute nothing, DeepSpeed must not look at values: it prints parameters while it
# starts, and skips a step whose gradient norm is not a number.
torch.Tensor.__repr__ = lambda self, **_: f"tensor of {tuple(self.shape)}"
stage3.is_invalid_grad_norm = lambda norm: False

CONFIG = {
    "train_micro_batch_size_per_gpu": 16,
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {
        "stage": 3,
        # Every parameter is partitioned, and fetched when it is needed.
        "stage3_param_persistence_threshold": 0,
        "stage3_prefetch_bucket_size": 0,
        "stage3_max_reuse_distance": 0,
    },
}

device = start()
model = Mlp()
engine, *_ = deepspeed.initialize(
    model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3), config=CONFIG
)
for step, batch in enumerate(batches(64, 8), start=1):
    x = batch.to(device)
    loss = torch.nn.functional.mse_loss(engine(x), x)
    engine.backward(loss)
    engine.step()
    log(f"step {step}: {len(batch)} samples")

log(f"profiler: {json.dumps({name: [calls[name], elements[name]] for name in sorted(calls)})}")
dist.barrier()
dist.destroy_process_group()
