"""Actors of Ray, each a rank of PyTorch's NCCL: ray_job.py RANKS VARIABLE=VALUE..."""

import socket
import sys

import ray

RANKS = int(sys.argv[1])
VARIABLES = dict(word.split("=", 1) for word in sys.argv[2:])


@ray.remote(num_cpus=1)
class Worker:
    def train(self, rank: int, port: int) -> float:
        import torch
        import torch.distributed as dist
        from common import Mlp, batches, train_step
        from torch.nn.parallel import DistributedDataParallel

        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
        where = f"tcp://127.0.0.1:{port}"
        dist.init_process_group("nccl", init_method=where, rank=rank, world_size=RANKS)
        model = DistributedDataParallel(Mlp().to(device), device_ids=[rank])
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        for batch in batches(64, 6):
            train_step(model, optimizer, batch, device)
        torch.cuda.synchronize()
        dist.destroy_process_group()
        return 6


with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
ray.init(num_cpus=RANKS, include_dashboard=False, runtime_env={"env_vars": VARIABLES})
workers = [Worker.remote() for _ in range(RANKS)]
print("steps:", ray.get([worker.train.remote(rank, port) for rank, worker in enumerate(workers)]))
ray.shutdown()
