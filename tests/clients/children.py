"""Processes of multiprocessing that copy to the GPU and back, as their parent does."""

import argparse
import ctypes
import multiprocessing


def copies(n: int) -> None:
    """The functions are looked up as a program that is linked with the runtime finds them."""
    ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
    runtime = ctypes.CDLL(None)
    host, there = ctypes.create_string_buffer(400), ctypes.c_void_p()
    size = ctypes.c_size_t(len(host))
    assert runtime.cudaMalloc(ctypes.byref(there), size) == 0
    for _ in range(n):
        assert runtime.cudaMemcpy(there, host, size, 1) == 0
        assert runtime.cudaMemcpy(host, there, size, 2) == 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--method", required=True)
    method = parser.parse_args().method
    context = multiprocessing.get_context(method)
    # CUDA can't be used in a fork of a process that has used it.
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
