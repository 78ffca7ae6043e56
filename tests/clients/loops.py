"""Training loops as people write them: accumulation with and without synchronizing every micro-batch,
evaluation between steps, a clipped norm. Says how many steps it made."""

import argparse
import contextlib
import os

# Read when deepspeed is imported.
os.environ.setdefault("DS_ACCELERATOR", "cuda")

import torch
import torch.distributed as dist
from common import Block, Mlp, batches, log, start
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["ddp", "fsdp1", "fsdp2", "zero1", "zero3"])
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--accumulate", type=int, default=1, help="micro-batches of a step")
parser.add_argument("--no-sync", action="store_true", help="gradients are reduced in the last of them only")
parser.add_argument("--eval-every", type=int, help="steps between two evaluations of two batches")
parser.add_argument("--clip", action="store_true", help="clip_grad_norm_ before each optimizer step")
parser.add_argument("--ranges", help="name of an NVTX range around each step: its number follows it")
parser.add_argument("--emit-nvtx", action="store_true", help="PyTorch's own ranges around what it does")
parser.add_argument("--profile", type=int, nargs=2, help="cudaProfilerStart before one step, Stop behind another")
args = parser.parse_args()


class Plain:
    """DDP, FSDP1 and FSDP2: what differs between them."""

    def __init__(self, device):
        model = Mlp().to(device)
        if args.kind == "ddp":
            model = nn.parallel.DistributedDataParallel(
                model, device_ids=[device.index], bucket_cap_mb=0.1, gradient_as_bucket_view=True
            )
        elif args.kind == "fsdp1":
            from torch.distributed.fsdp import FullyShardedDataParallel
            from torch.distributed.fsdp.wrap import ModuleWrapPolicy

            model = FullyShardedDataParallel(
                model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=device
            )
        else:
            from torch.distributed.fsdp import fully_shard

            for block in model.blocks:
                fully_shard(block)
            fully_shard(model)
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def micro_batch(self, x, last):
        synchronized = last or not args.no_sync
        if args.kind == "fsdp2":
            self.model.set_requires_gradient_sync(synchronized)
        quiet = not synchronized and args.kind != "fsdp2"
        with self.model.no_sync() if quiet else contextlib.nullcontext():
            nn.functional.mse_loss(self.model(x), x).backward()

    def update(self):
        if args.clip and args.kind == "fsdp1":
            self.model.clip_grad_norm_(1.0)
        elif args.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


class DeepSpeed:
    """The engine itself knows which micro-batch is the last of its step."""

    def __init__(self, device):
        import logging

        import deepspeed
        from deepspeed.runtime.zero import stage3, stage_1_and_2
        from deepspeed.utils import logger

        logger.setLevel(logging.WARNING)
        # Where kernels compute nothing, DeepSpeed must not look at values.
        torch.Tensor.__repr__ = lambda self, **_: f"tensor of {tuple(self.shape)}"
        for stage_of in (stage3, stage_1_and_2):
            stage_of.is_invalid_grad_norm = lambda norm: False
        no_overflow = lambda self: torch.zeros(1, device=device)  # noqa: E731
        stage_1_and_2.DeepSpeedZeroOptimizer.has_overflow_partitioned_grads_serial = no_overflow
        stage = int(args.kind[-1])
        config = {
            "train_micro_batch_size_per_gpu": 16,
            "gradient_accumulation_steps": args.accumulate,
            "zero_allow_untested_optimizer": True,
            "zero_optimization": {"stage": stage},
        } | ({"gradient_clipping": 1.0} if args.clip else {})
        model = Mlp()
        self.model, *_ = deepspeed.initialize(
            model=model, optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3), config=config
        )

    def micro_batch(self, x, last):
        self.model.backward(nn.functional.mse_loss(self.model(x), x))
        self.model.step()

    def update(self):
        pass


device = start()
trained = DeepSpeed(device) if args.kind.startswith("zero") else Plain(device)
for step in range(args.steps):
    if args.profile and step == args.profile[0]:
        torch.cuda.profiler.start()
    around = torch.cuda.nvtx.range(f"{args.ranges}{step}") if args.ranges else contextlib.nullcontext()
    emitted = torch.autograd.profiler.emit_nvtx() if args.emit_nvtx else contextlib.nullcontext()
    with around, emitted:
        for i, batch in enumerate(batches(64, args.accumulate)):
            trained.micro_batch(batch.to(device), last=i + 1 == args.accumulate)
        trained.update()
    if args.profile and step == args.profile[1]:
        torch.cuda.profiler.stop()
    if args.eval_every and (step + 1) % args.eval_every == 0:
        with torch.no_grad():
            for batch in batches(64, 2):
                trained.model(batch.to(device))
log(f"steps {args.steps}")
dist.barrier()
dist.destroy_process_group()
