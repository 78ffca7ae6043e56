"""DDP fed by a DataLoader whose workers are other processes, through pinned memory."""

import pathlib

import torch
import torch.distributed as dist
from common import Mlp, log, start
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((64,), float(index)), index


def report_worker(worker: int) -> None:
    threads = len(list(pathlib.Path("/proc/self/task").iterdir()))
    log(f"worker {worker} starts with {threads} thread")


def main() -> None:
    device = start()
    model = DistributedDataParallel(Mlp(depth=1).to(device), device_ids=[device.index])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    rows = Rows()
    loader = DataLoader(
        rows,
        batch_size=8,
        sampler=DistributedSampler(rows, shuffle=False),
        num_workers=2,
        pin_memory=True,
        worker_init_fn=report_worker,
        multiprocessing_context="fork",
    )
    for x, index in loader:
        loss = model(x.to(device, non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log(f"rows {index.tolist()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
