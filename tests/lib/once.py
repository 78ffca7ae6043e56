"""Makes expensive things once for all workers of a test run (pytest-xdist)."""

import fcntl
import pathlib
import pickle
from collections.abc import Callable


def once(shared: pathlib.Path, name: str, make: Callable[[pathlib.Path], object]):
    """Returns what make(folder) returned to the worker that came first; the others wait for it."""
    shared.mkdir(exist_ok=True)
    folder, made = shared / name, shared / f"{name}.made"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            result = pickle.dumps(make(folder))
            made.write_bytes(result)
    return pickle.loads(made.read_bytes())
