"""DDP under torchrun --max-restarts: a rank is killed inside a collective, the first time only."""

import os

first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
if first:
    # The stand-in reads this when it is loaded.
    os.environ["STANDIN_DIE"] = "1:ncclAllReduce:6"

import torch  # noqa: E402
from common import Mlp, batches, log, start, train_step  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

device = start()
model = DistributedDataParallel(Mlp().to(device), device_ids=[device.index])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step, batch in enumerate(batches(64, 12), start=1):
    train_step(model, optimizer, batch, device)
log(f"{step} steps, {'the first time' if first else 'started again'}")
