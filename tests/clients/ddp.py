"""DDP with small buckets; ends without destroying the process group, as many scripts do."""

import torch
from common import Mlp, batches, log, start, train_step
from torch.nn.parallel import DistributedDataParallel

device = start()
# 1 MiB holds every gradient; a tenth of it makes several buckets.
model = DistributedDataParallel(
    Mlp().to(device), device_ids=[device.index], bucket_cap_mb=0.1, gradient_as_bucket_view=True
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)

for step, batch in enumerate(batches(64, 8), start=1):
    train_step(model, optimizer, batch, device)
    log(f"step {step}: {len(batch)} samples")

log("done")
