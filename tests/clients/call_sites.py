"""Makes copies from several places of a Python program, and prints where from, by the interpreter's own account.

Runs on any CPython, without PyTorch. ctypes releases the GIL around each call, as PyTorch does.
"""

import ctypes
import gc
import json
import os
import signal
import sys
import threading

libc = ctypes.CDLL(None)
keys = []
key = ctypes.c_uint()
while "keys" in sys.argv and libc.pthread_key_create(ctypes.byref(key), None) == 0:
    keys.append(key.value)
runtime = ctypes.CDLL("libcudart.so.13")
device = ctypes.c_void_p()
runtime.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(4096))
host = ctypes.create_string_buffer(4096)
made = []


def where(frame):
    """Yields the frames, innermost first."""
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        yield {"function": name, "file": code.co_filename, "line": frame.f_lineno}
        frame = frame.f_back


def copy(size):
    # Both are on one line, so that the frame is recorded at the line that makes the call.
    made.append((size, list(where(sys._getframe())))); runtime.cudaMemcpy(device, host, ctypes.c_size_t(size), 1)  # fmt: skip


class Model:
    def forward(self, size):
        def inner():
            copy(size)

        inner()
        return [copy(size + n) for n in (1, 2)]


def recursive(depth, size):
    if depth == 0:
        return copy(size)
    return recursive(depth - 1, size)


def generator(size):
    yield copy(size)


def everything(base):
    model = Model()
    for _ in range(3):
        model.forward(base)
        recursive(5, base + 10)
        list(map(copy, [base + 20]))  # C between two frames
        sorted([3, 1], key=lambda n: copy(base + 30 + n) or n)
        next(generator(base + 40))


def disturb(stop):
    """Does what another thread may do to frames: looks at all of them, and collects garbage."""
    while not stop.is_set():
        sys._current_frames()
        gc.collect()


stop = threading.Event()
noise = threading.Thread(target=disturb, args=(stop,))
noise.start()
threads = [threading.Thread(target=everything, args=(100 * n,)) for n in (2, 3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
everything(100)
stop.set()
noise.join()
assert not any(libc.pthread_getspecific(key) for key in keys)
print(json.dumps(made), flush=True)
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        # No such copy kind exists, so the call is refused at once: CUDA can't copy in a forked child.
        runtime.cudaMemcpyAsync(device, host, ctypes.c_size_t(77), 99, None)
        sys.exit()
    os.waitpid(child, 0)
if "kill" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
