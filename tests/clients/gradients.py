"""Reduces gradients early or late, and other tensors as other programs do: 20 steps of a few linear layers."""

import argparse

import torch
import torch.distributed as dist
from common import log, start
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("how", choices=["buckets", "one-bucket", "by-hand", "activations"])
args = parser.parse_args()

WIDTH, LAYERS, STEPS = 512, 6, 20
device = start()
layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)).to(device)


class Reduced(torch.autograd.Function):
    """Tensor parallelism reduces what each layer gives, and the gradient that it gives back."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
            if args.how == "activations":
                x = Reduced.apply(x)
        return x


model = Net()
if args.how in ("buckets", "one-bucket"):
    megabytes = 1000 if args.how == "one-bucket" else 1
    model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=megabytes, gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(STEPS):
    x = torch.randn(512, WIDTH).pin_memory().to(device, non_blocking=True)
    model(x).sum().backward()
    if args.how == "by-hand":
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
log(f"steps {STEPS}")
dist.destroy_process_group()
