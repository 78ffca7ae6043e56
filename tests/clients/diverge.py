"""Gathers and reduces in turn; one rank does something else once, as a bug would make it.

Prints what the odd rank did, and at which of its own collectives, as this script counts them.
"""

import argparse
import time

import torch
import torch.distributed as dist
from common import log, start
from torch.distributed.distributed_c10d import _get_default_store

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--rank", type=int, default=1, help="the odd one")
parser.add_argument("--at", type=int, default=9, help="the step at which it is odd")
parser.add_argument("--what", choices=["nothing", "size", "sleep", "leave", "crash", "swap", "lone"])
args = parser.parse_args()

device = start()
rank, world = dist.get_rank(), dist.get_world_size()
called = 0
again = dist.new_group() if args.what == "swap" else None  # the same ranks, on a communicator of its own

for step in range(args.steps):
    odd = args.what if (rank, step) == (args.rank, args.at) else None
    if odd:
        log(f"{odd} at collective {called}")
    if odd == "leave":  # a launcher ends the others: they shall have come further by then
        _get_default_store().wait([f"further {r}" for r in range(world) if r != rank])
        raise SystemExit("a bug of this rank")
    if args.what == "crash" and step == args.at:  # all ranks fail here, ranks 0 and 1 first
        if rank < 2:
            raise SystemExit("a bug of all ranks")
        time.sleep(600)  # the launcher ends them
    if odd == "sleep":
        time.sleep(2)
    shard = torch.zeros(64 + (odd == "size"), device=device)
    dist.all_gather_into_tensor(torch.empty(shard.numel() * world, device=device), shard)
    called += 1
    if args.what == "leave" and step == args.at:
        _get_default_store().set(f"further {rank}", "")
    if again is None:
        dist.all_reduce(torch.zeros(8, device=device))
    else:
        for group in (again, None) if odd else (None, again):
            dist.all_reduce(torch.zeros(8, device=device), group=group)
    called += 1
    if args.what == "lone":  # a ring, in which the odd rank receives once too often
        ring = [(dist.isend, (rank + 1) % world), (dist.irecv, (rank - 1) % world)]
        ring += [(dist.irecv, (rank - 1) % world)] if odd else []
        dist.batch_isend_irecv([dist.P2POp(call, torch.zeros(4, device=device), peer) for call, peer in ring])
    torch.cuda.synchronize()  # like a script that logs its loss
log(f"done after {called} collectives")
dist.destroy_process_group()
