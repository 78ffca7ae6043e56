"""A small GPT of Megatron-Core on tensor- and pipeline-parallel ranks, 3 steps of 4 micro-batches."""

import argparse

import torch
import torch.distributed as dist
from common import log, start
from megatron.core import parallel_state
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer import TransformerConfig

LAYERS, HIDDEN, HEADS, VOCABULARY, SEQUENCE, BATCH = 4, 64, 4, 128, 32, 2
STEPS, MICRO_BATCHES = 3, 4

parser = argparse.ArgumentParser()
parser.add_argument("--tensor-parallel", type=int, default=1)
parser.add_argument("--pipeline-parallel", type=int, default=1)
args = parser.parse_args()

device = start()
parallel_state.initialize_model_parallel(args.tensor_parallel, args.pipeline_parallel)
model_parallel_cuda_manual_seed(1234)
config = TransformerConfig(
    num_layers=LAYERS,
    hidden_size=HIDDEN,
    num_attention_heads=HEADS,
    tensor_model_parallel_size=args.tensor_parallel,
    pipeline_model_parallel_size=args.pipeline_parallel,
    pipeline_dtype=torch.float32,
    use_cpu_initialization=True,
    gradient_accumulation_fusion=False,
    finalize_model_grads_func=finalize_model_grads,
)
model = GPTModel(
    config,
    get_gpt_layer_local_spec(),
    VOCABULARY,
    SEQUENCE,
    pre_process=parallel_state.is_pipeline_first_stage(),
    post_process=parallel_state.is_pipeline_last_stage(),
    share_embeddings_and_output_weights=False,
).to(device)
model = DistributedDataParallel(
    config, DistributedDataParallelConfig(check_for_nan_in_grad=False), model
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def batches():
    positions = torch.arange(SEQUENCE).repeat(BATCH, 1)
    mask = torch.tril(torch.ones(1, 1, SEQUENCE, SEQUENCE)) < 0.5
    while True:
        tokens = torch.randint(VOCABULARY, (BATCH, SEQUENCE))
        yield [part.to(device) for part in (tokens, positions, mask, tokens.roll(-1, 1))]


def mean_loss(losses):
    loss = losses.float().mean()
    return loss, {"loss": loss}


def forward_step(data, network):
    tokens, positions, mask, labels = next(data)
    return network(tokens, positions, mask, labels=labels), mean_loss


data = batches()
for step in range(1, STEPS + 1):
    model.zero_grad_buffer()
    get_forward_backward_func()(
        forward_step_func=forward_step,
        data_iterator=data,
        model=model,
        num_microbatches=MICRO_BATCHES,
        seq_length=SEQUENCE,
        micro_batch_size=BATCH,
        forward_only=False,
    )
    optimizer.step()
    log(f"step {step}: {MICRO_BATCHES} micro-batches")

dist.barrier()
log("done")
dist.destroy_process_group()
