"""A training loop of Hugging Face Accelerate, as `accelerate launch` starts it."""

import torch
from accelerate import Accelerator
from common import Mlp, batches, log, train_step

accelerator = Accelerator()
torch.manual_seed(1234)
model = Mlp()
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=1e-2))
for step, batch in enumerate(batches(64, 6), start=1):
    train_step(model, optimizer, batch, accelerator.device)
log(f"{step} steps")
accelerator.end_training()
