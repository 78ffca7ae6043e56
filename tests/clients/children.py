"""Processes of multiprocessing that copy to the GPU and back, as their parent does."""

import argparse
import multiprocessing

import torch


def copies(n: int) -> None:
    for _ in range(n):
        torch.ones(100).to("cuda").cpu()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", required=True)
    method = parser.parse_args().method
    context = multiprocessing.get_context(method)
    # PyTorch refuses CUDA in a fork of a process that has used it.
    if method != "fork":
        copies(3)
    children = [context.Process(target=copies, args=(5 + i,)) for i in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    copies(4)
    print([child.exitcode for child in children])


if __name__ == "__main__":
    main()
