"""Hugging Face's Trainer with DDP: nothing of it knows of the tracer."""

import torch
import torch.distributed as dist
from common import log
from torch import nn
from transformers import Trainer, TrainingArguments


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, x):
        return {"loss": nn.functional.mse_loss(self.layers(x), x)}


args = TrainingArguments(
    output_dir="hf_trainer", per_device_train_batch_size=4, max_steps=3, report_to=[], save_strategy="no",
    disable_tqdm=True,
)  # fmt: skip
torch.manual_seed(1234)
Trainer(Model(), args, train_dataset=[{"x": torch.rand(64)} for _ in range(64)]).train()
log("done")
dist.destroy_process_group()
