"""With NVIDIA's own libraries, every wrapped call returns what it returns without us."""

import collections
import subprocess

import pytest
from lib import cuda
from lib.build import BUILD, LIBTPROF
from lib.launch import start

# ncclCommShrink of 2.28 dereferences a null communicator before it checks it, and without a GPU
# there is no other.
CANNOT_BE_CALLED = {"ncclCommShrink"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Runs the program that calls everything, without and with the preload."""
    libraries = cuda.library_path()
    if libraries is None:
        pytest.skip(f"no {' and '.join(cuda.SONAMES)} of NVIDIA's on this machine")
    folder = tmp_path_factory.mktemp("every-call")
    return [
        start([str(BUILD / "every_call")], folder / name, preload, LD_LIBRARY_PATH=libraries)
        for name, preload in (("plain", False), ("traced", True))
    ]


def results(run) -> list[tuple[str, int]]:
    pairs = (line.split(",")[0].rsplit(" ", 1) for line in run.stdout.splitlines())
    return [(name, int(code)) for name, code in pairs]


def test_every_result_and_the_last_error_are_the_librarys_own(both):
    plain, traced = both
    assert plain.code == 0 and len(results(plain)) > 80
    assert traced.code == plain.code
    assert traced.stdout.splitlines() == plain.stdout.splitlines()
    assert traced.words_of_ours() == []


def exported(library) -> set[str]:
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout.split()
    names = {symbol.partition("@")[0] for symbol in symbols}
    return {name for name in names if name.startswith(("nccl", "cuda"))}


def test_every_wrapped_function_that_the_libraries_have_is_called(both):
    there = set().union(*(exported(path) for path in cuda.libraries()))
    wrapped = exported(LIBTPROF) & there
    called = {name for name, _ in results(both[0])}
    assert {"ncclAllGather", "cudaMemcpy"} <= wrapped
    assert wrapped - called == CANNOT_BE_CALLED & wrapped


def test_calls_that_failed_are_counted_as_failed_and_as_nothing_else(both):
    _, traced = both
    file = traced.only_rank()
    failed = collections.Counter()
    for row in file.ledger_rows():
        assert (row["calls"], row["count"], row["elements"], row["bytes"]) == (0, 0, 0, 0), row
        failed[row["name"]] += row["failed"]
    printed = collections.Counter(name for name, code in results(traced) if code != 0)
    assert failed
    assert failed == {name: printed[name] for name in failed}
    collectives = {"ncclAllGather", "ncclReduceScatter", "ncclBcast", "ncclSend", "cudaMemcpy"}
    assert collectives <= set(failed)
