"""One GPU and no collective, as people train small models: the program says where its steps begin."""

import sys

import torch
import tprof

device = torch.device("cuda", 0)
steps, batches = int(sys.argv[1]), int(sys.argv[2])
host = torch.randn(16, 64)
for _ in range(steps):
    tprof.step()
    for _ in range(batches):
        host.to(device)
tprof.end_step()
print("steps", steps)
