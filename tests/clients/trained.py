"""One loop for several kinds of parallel training, as people write it, and several ways in which a step ends."""

import argparse
import contextlib
import itertools
import time

import torch
import torch.distributed as dist
from common import BATCH, Mlp, batches, log, sharded, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = ("ddp", "accumulated", "fsdp2", "tensor", "experts", "pipeline")
parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=KINDS)
parser.add_argument("end", choices=("nothing", "item", "synchronize", "clipped", "evaluated"))
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--host-us", type=int, default=0, help="each operator takes the host so much longer")
parser.add_argument("--sleep-ms", type=int, default=0, help="the host sleeps so long in each forward pass")
parser.add_argument("--sleep-rank", type=int, help="only this rank does")
parser.add_argument("--sleep-every", type=int, default=1, help="in each so many-th step only")
parser.add_argument("--item-every", type=int, default=1, help="reads the loss in each so many-th step only")
args = parser.parse_args()

WIDTH = 64
device = start()
rank, world = dist.get_rank(), dist.get_world_size()


class SlowHost(TorchDispatchMode):
    """Every operator costs the host some Python, as hooks, subclasses and profilers do."""

    def __torch_dispatch__(self, function, types, positional=(), named=None):
        until = time.perf_counter_ns() + 1000 * args.host_us
        while time.perf_counter_ns() < until:
            pass
        return function(*positional, **(named or {}))


class Experts(nn.Module):
    """Tokens go to where their expert is and come back; a shared expert computes meanwhile."""

    def __init__(self):
        super().__init__()
        self.own, self.shared = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        there, back = torch.empty_like(x), torch.empty_like(x)
        sent = dist.all_to_all_single(there, x.detach(), async_op=True)
        shared = nn.functional.gelu(self.shared(x))
        sent.wait()
        dist.all_to_all_single(back, self.own(there).detach())
        return x + shared + back


def sleep(*_):
    if step % args.sleep_every == 0:
        time.sleep(args.sleep_ms / 1000)


def made():
    if args.kind == "experts":
        return nn.Sequential(*(Experts() for _ in range(4))).to(device)
    model = Mlp(WIDTH).to(device)
    if args.sleep_ms and args.sleep_rank in (None, rank):
        model.blocks[1].register_forward_hook(sleep)
    if args.kind in ("ddp", "accumulated"):
        return DistributedDataParallel(model, device_ids=[device.index], bucket_cap_mb=0.1)
    if args.kind == "fsdp2":
        return sharded(model)
    if args.kind == "tensor":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        mesh = init_device_mesh("cuda", (world,))
        for block in model.blocks:
            parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def passed_on(x):
    """Sends x to the next stage, and returns what the previous stage sent."""
    got = torch.empty_like(x)
    work = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x.detach(), (rank + 1) % world), dist.P2POp(dist.irecv, got, (rank - 1) % world)]
    )
    for one in work:
        one.wait()
    return got


model = made()
# Fused as on GPUs: foreach, and no .item() of its own.
trained = (model.blocks if args.kind == "tensor" else model).parameters()
optimizer = torch.optim.AdamW(trained, lr=1e-3, foreach=True)
loads = torch.cuda.Stream()


def loaded():
    """Yields batches that are copied a step ahead, from pinned memory, on a stream of their own."""

    def load(batch):
        with torch.cuda.stream(loads):
            return batch.pin_memory().to(device, non_blocking=True)

    following = None
    for batch in batches(WIDTH, args.steps * micros):
        ready, following = following, load(batch)
        if ready is not None:
            torch.cuda.current_stream().wait_stream(loads)
            yield ready
            torch.cuda.current_stream().wait_stream(loads)
    yield following


micros = 4 if args.kind in ("accumulated", "pipeline") else 1
data = loaded()
slow = SlowHost() if args.host_us else contextlib.nullcontext()
slow.__enter__()
for step in range(1, args.steps + 1):
    for micro, x in enumerate(itertools.islice(data, micros), start=1):
        last = micro == micros
        waits = model.no_sync() if args.kind == "accumulated" and not last else contextlib.nullcontext()
        with waits:
            out = model(passed_on(x) if args.kind == "pipeline" else x)
            loss = nn.functional.mse_loss(out, x)
            loss.backward()
    if args.kind in ("experts", "pipeline"):
        for parameter in model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
    if args.end == "clipped":
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if args.end in ("item", "clipped") and step % args.item_every == 0:
        loss.item()
    if args.end == "synchronize":
        torch.cuda.synchronize()
    if args.end == "evaluated" and step % 2 == 0:
        with torch.no_grad():
            model(torch.randn(BATCH, WIDTH).to(device)).sum().item()

torch.cuda.synchronize()
log("done")
dist.destroy_process_group()
