"""Some functions have different arguments in different versions of CUDA. All arguments arrive, and
are counted by the version of the library that serves the call; where it is not known, that is said."""

import collections
import pathlib

import pytest
from lib.build import BUILD, STANDIN
from lib.launch import Run, start
from lib.rankfile import closed, named


def run(name: str, folder: pathlib.Path, preload: bool = False, **more: str) -> Run:
    libraries = STANDIN if name.startswith("older") else BUILD / f"tests/loader/{name}"
    return start([BUILD / name], folder, preload, libraries, **more)


def traced(name: str, folder: pathlib.Path, **more: str) -> Run:
    return run(name, folder, preload=True, **more)


def lines_of(folder: pathlib.Path) -> list[dict]:
    (rank_file,) = (folder / "traces").glob("*.json")
    return closed(rank_file)


def counted(lines: list[dict]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Returns (bucket, function without the twin's suffix) -> calls, bytes, failed."""
    ledger = named(lines, "tprof_ledger")[-1]
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for row in ledger["rows"]:
        for place, figure in enumerate(("calls", "bytes", "failed")):
            sums[row["bucket"], row["name"].removesuffix("_ptsz")][place] += row[figure]
    return {key: tuple(value) for key, value in sums.items()}


def test_older_prototypes_are_counted_as_the_tally_says(tmp_path):
    done = traced("older_cudart_12", tmp_path)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    tally = done.only_tally()
    expected = collections.defaultdict(lambda: [0, 0, 0])
    for row in tally["rows"]:
        for place, figure in enumerate(("returned", "bytes", "failed")):
            expected[row["kind"], row["function"]][place] += row[figure]
    ours = counted(lines_of(tmp_path))
    assert ours == {key: tuple(figures) for key, figures in expected.items()}
    assert {name for _, name in expected} >= {"cudaMemcpyBatchAsync"}


SUM = 2 * (64 + 1 + 1000 + 20_000 + 7 + 300_000) + 2 * (64 + 10 + 3 + 9 + 300_000)
SUM += 127 << 20


@pytest.mark.parametrize("version", [13, 99])
def test_every_argument_arrives(version, tmp_path):
    for ways in (run, traced):
        done = ways(f"newer_cudart_{version}", tmp_path)
        assert (done.code, done.stdout, done.stderr) == (0, f"{SUM}\n", "")


def test_newest_prototypes_are_counted(tmp_path):
    traced("newer_cudart_13", tmp_path)
    assert counted(lines_of(tmp_path)) == {("H2H", "cudaMemcpyBatchAsync"): (2, 128, 0)}


def test_of_an_unknown_version_nothing_is_counted_and_that_is_said(tmp_path):
    traced("newer_cudart_99", tmp_path)
    lines = lines_of(tmp_path)
    assert counted(lines) == {}
    (footer,) = [line["args"] for line in lines if line["name"] == "tprof_footer"]
    library = BUILD / "tests/loader/newer_cudart_99/libcudart.so.99"
    assert {"path": str(library), "kind": "unknown_cudart"} in footer["coverage"]["unseen"]
