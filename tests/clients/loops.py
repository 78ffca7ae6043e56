"""Training loops as people write them: accumulation with and without synchronizing every micro-batch, evaluation and
checkpoints between steps, a clipped norm, a norm of the whole weights, tensor parallelism alone and in a mesh, LoRA.
Prints how many steps it made."""

import argparse
import contextlib
import os

# Read when deepspeed is imported.
os.environ.setdefault("DS_ACCELERATOR", "cuda")

import torch
import torch.distributed as dist
from common import Block, Mlp, batches, log, sharded, start
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["ddp", "fsdp1", "fsdp2", "hsdp", "lora", "mesh", "tp", "zero1", "zero2", "zero3"])
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--accumulate", default="1", help="micro-batches of a step: one number, or some in turn (1,2,3)")
parser.add_argument("--no-sync", action="store_true", help="gradients are reduced in the last of them only")
parser.add_argument("--eval-every", type=int, help="steps between two evaluations of two batches")
parser.add_argument("--clip", action="store_true", help="clip_grad_norm_ before each optimizer step")
parser.add_argument("--gather-every", type=int, help="steps between two that gather a metric before they clip")
parser.add_argument("--targets", action="store_true", help="batches have two tensors of one size")
parser.add_argument("--norm", action="store_true", help="logs the norm of the whole weights in each step")
parser.add_argument("--checkpoint-every", type=int, help="steps between two checkpoints of the whole model")
parser.add_argument("--ranges", help="name of an NVTX range around each step: its number follows it")
parser.add_argument("--epoch", type=int, help="steps of an epoch, with each of which the numbers of ranges begin again")
parser.add_argument("--emit-nvtx", action="store_true", help="PyTorch's own ranges around what it does")
parser.add_argument("--profile", type=int, nargs=2, help="cudaProfilerStart before one step, Stop behind another")
args = parser.parse_args()
turns = [int(n) for n in args.accumulate.split(",")]


def parallel(model, mesh):
    """Applies PyTorch's own tensor parallelism: one all-reduce forward and one backward in each block."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    for block in model.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


class Adapter(nn.Module):
    """LoRA: freezes the layer that it wraps, and trains two small matrices beside it."""

    def __init__(self, linear, rank=4):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + x @ self.a.T @ self.b.T


def with_adapters(model):
    model.requires_grad_(False)
    for block in model.blocks:
        block.up, block.down = Adapter(block.up), Adapter(block.down)
    return model


class Plain:
    """Every kind but DeepSpeed's, and what differs between them."""

    def __init__(self, device):
        from torch.distributed.device_mesh import init_device_mesh

        model = Mlp()
        if args.kind == "lora":
            with_adapters(model)
        model = model.to(device)
        how = {}
        if args.kind in ("mesh", "hsdp"):
            names = ("dp", "tp") if args.kind == "mesh" else ("replicas", "shards")
            mesh = init_device_mesh("cuda", (dist.get_world_size() // 2, 2), mesh_dim_names=names)
            how["mesh"] = mesh if args.kind == "hsdp" else mesh["dp"]
        if args.kind == "mesh":
            parallel(model, mesh["tp"])
        if args.kind == "tp":
            parallel(model, init_device_mesh("cuda", (dist.get_world_size(),)))
        elif args.kind in ("ddp", "lora"):
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
            model = sharded(model, **how)
        self.model = model
        self.sharded = args.kind in ("fsdp2", "hsdp", "mesh")
        trained = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=1e-3, foreach=False)

    def micro_batch(self, x, last):
        synchronized = last or not args.no_sync
        if self.sharded:
            self.model.set_requires_gradient_sync(synchronized)
        quiet = not synchronized and args.kind in ("ddp", "fsdp1", "lora")
        with self.model.no_sync() if quiet else contextlib.nullcontext():
            nn.functional.mse_loss(self.model(x), x).backward()

    def save(self):
        """Saves as Lightning and torchtune do: rank 0 has all of it on its host."""
        for value in self.model.state_dict().values():
            (value.full_tensor() if hasattr(value, "full_tensor") else value).cpu()

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
            "gradient_accumulation_steps": turns[0],
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


def to_device(batch):
    if args.targets:
        batch.to(device)
    return batch.to(device)


device = start()
trained = DeepSpeed(device) if args.kind.startswith("zero") else Plain(device)
for step in range(args.steps):
    if args.profile and step == args.profile[0]:
        torch.cuda.profiler.start()
    number = step % args.epoch if args.epoch else step
    around = torch.cuda.nvtx.range(f"{args.ranges}{number}") if args.ranges else contextlib.nullcontext()
    accumulate = turns[step % len(turns)]
    emitted = torch.autograd.profiler.emit_nvtx() if args.emit_nvtx else contextlib.nullcontext()
    with around, emitted:
        for i, batch in enumerate(batches(64, accumulate)):
            trained.micro_batch(to_device(batch), last=i + 1 == accumulate)
        if args.gather_every and (step + 1) % args.gather_every == 0:
            metric = torch.zeros(256, device=device)
            dist.all_gather_into_tensor(torch.empty(256 * dist.get_world_size(), device=device), metric)
        trained.update()
        if args.norm:
            norms = [p.full_tensor().norm() for p in trained.model.parameters()]
    if args.profile and step == args.profile[1]:
        torch.cuda.profiler.stop()
    if args.eval_every and (step + 1) % args.eval_every == 0:
        with torch.no_grad():
            for batch in batches(64, 2):
                trained.model(to_device(batch))
    if args.checkpoint_every and (step + 1) % args.checkpoint_every == 0:
        trained.save()
log(f"steps {args.steps}")
dist.barrier()
dist.destroy_process_group()
