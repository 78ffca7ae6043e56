"""results.md: one line per row, written by the script, kept where a row was not run."""

import datetime
import pathlib

from outcome import Outcome
from rows import ROWS, Row

HEAD = """# What tprof was run with
Written by `make test-matrix`, a row a time, each in a virtual environment of its own. Difference: the sum of the differences of all
figures (calls, counts, elements, bytes, failed calls; every rank) between the trace and an independent count: the stand-in's tally and, for FSDP,
the number and sizes of all-gathers and reduce-scatters that follow from the model's shapes; for nccl-tests (run where `NCCL_TESTS` names the folder
of its programs) also the calls and counts that follow from its options and from what it prints, and what `summary` and `check` say of each rank; for NCCL's own libraries, which run here
without a GPU, between what each call returned with and without the preload, and between the calls that were refused and those counted as failed.

| client | version | with | what ran | calls | difference | date |
|---|---|---|---|---|---|---|
"""


def cells(row: Row, outcome: Outcome | None, trouble: str = "") -> list[str]:
    today = datetime.date.today().isoformat()
    if outcome is None:
        return [row.client, row.version, row.beside, f"**not run**: {trouble}", "-", "-", today]
    number = lambda n: "-" if n is None else f"{n:,}"
    figures = [number(outcome.calls), number(outcome.difference)]
    beside = row.beside or outcome.note
    return [row.client, row.version, beside, outcome.ran, *figures, today]


def read(path: pathlib.Path) -> dict[tuple[str, str], list[str]]:
    """Returns (client, version) -> the cells that an earlier run wrote."""
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(cells[0], cells[1]): cells for cells in rows if cells[0] != "client"}


def write(path: pathlib.Path, row: Row, new: list[str]) -> None:
    known = read(path) | {(row.client, row.version): new}
    ordered = [known[r.client, r.version] for r in ROWS if (r.client, r.version) in known]
    path.write_text(HEAD + "".join(f"| {' | '.join(line)} |\n" for line in ordered))
