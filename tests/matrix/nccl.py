"""NCCL's own library, without a GPU: every call returns what it returns without us, and is counted."""

import collections
import pathlib

import venvs
from lib import cuda
from lib.launch import start
from outcome import Failed, Outcome
from rows import Row

CLIENT = "every_call"


def library_of(venv: pathlib.Path) -> pathlib.Path:
    return venvs.site(venv) / "nvidia" / "nccl" / "lib" / "libnccl.so.2"


def results(stdout: str) -> list[tuple[str, int]]:
    """Returns what the client printed of NCCL's functions: name and code."""
    pairs = (line.split(",")[0].rsplit(" ", 1) for line in stdout.splitlines())
    return [(name, int(code)) for name, code in pairs if name.startswith("nccl")]


def run(row: Row, venv: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> Outcome:
    return compare(library_of(venv), row.left_out, build, folder)


def compare(
    library: pathlib.Path, left_out: tuple[str, ...], build: pathlib.Path, folder: pathlib.Path
) -> Outcome:
    """Runs the client that calls everything, without and with the preload."""
    runtime = cuda.library_path()
    if runtime is None:
        raise Failed(f"no {' and '.join(cuda.SONAMES)} of NVIDIA's to link the client with")
    path = f"{library.parent}:{runtime}"
    plain, traced = (
        start([str(build / CLIENT), *left_out], folder / name, preload, LD_LIBRARY_PATH=path)
        for name, preload in (("plain", False), ("traced", True))
    )
    if plain.code != 0:
        raise Failed(f"the client ends with {plain.code} without us: {plain.stderr[-300:]}")
    called = results(plain.stdout)
    different = sum(a != b for a, b in zip(called, results(traced.stdout), strict=False))
    different += abs(len(called) - len(results(traced.stdout))) + (plain.code != traced.code)
    different += traced.words_of_ours() != []

    file = traced.only_rank()
    if pathlib.Path(file.header["nccl_path"]).resolve() != library.resolve():
        raise Failed(f"the calls went to {file.header['nccl_path']}")
    failed = collections.Counter(name for name, code in called if code != 0)
    rows = [row for row in file.ledger_rows() if row["name"].startswith("nccl")]
    counted = collections.Counter()
    for entry in rows:
        counted[entry["name"]] += entry["failed"]
        different += entry["calls"] + entry["count"] + entry["elements"] + entry["bytes"]
    # Each refused call of a function that moves data is counted once, and nothing else is.
    moving = set(counted) | (set(failed) & DATA)
    different += sum(abs(counted[name] - failed[name]) for name in moving)
    functions = len({name for name, _ in called})
    ran = f"{functions} functions without a GPU, {sum(counted.values())} refused calls counted"
    return Outcome(ran, len(called), different, str(file.header["nccl_version"]))


DATA = {
    "ncclAllGather", "ncclReduceScatter", "ncclAllReduce", "ncclBroadcast", "ncclBcast",
    "ncclReduce", "ncclAlltoAll", "ncclGather", "ncclScatter", "ncclSend", "ncclRecv",
}  # fmt: skip
