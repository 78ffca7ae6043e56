"""PyTorch Lightning's Trainer with DDP: nothing of it knows of the tracer."""

import pytorch_lightning as lightning
import torch
import torch.distributed as dist
from common import log
from torch import nn


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

    def training_step(self, batch, _):
        return nn.functional.mse_loss(self.layers(batch), batch)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


torch.manual_seed(1234)
batches = torch.utils.data.DataLoader(torch.rand(64, 64), batch_size=4)
trainer = lightning.Trainer(
    accelerator="cuda", devices=2, strategy="ddp", max_steps=3, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(Model(), batches)
log("done")
if dist.is_initialized():
    dist.destroy_process_group()
