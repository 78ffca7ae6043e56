"""Hugging Face Accelerate with its FSDP2 plugin: the model of tests/clients/common.py."""

import torch
import torch.distributed as dist
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from common import Mlp, batches, log

plugin = FullyShardedDataParallelPlugin(
    fsdp_version=2,
    auto_wrap_policy="transformer_based_wrap",
    transformer_cls_names_to_wrap=["Block"],
    reshard_after_forward=True,
)
accelerator = Accelerator(fsdp_plugin=plugin)
torch.manual_seed(1234 + accelerator.process_index)
model = Mlp()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model, optimizer = accelerator.prepare(model, optimizer)

for step, batch in enumerate(batches(64, 3), start=1):
    x = batch.to(accelerator.device)
    loss = torch.nn.functional.mse_loss(model(x), x)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    log(f"step {step}: {len(batch)} samples")

accelerator.wait_for_everyone()
log("done")
dist.destroy_process_group()
