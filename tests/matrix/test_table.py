"""The committed table has all rows, no difference, and nothing of the machine that it is from."""

import pathlib
import re

import rows
import table
from outcome import Outcome

RESULTS = pathlib.Path(__file__).resolve().parent / "results.md"
ROW = rows.nccl(12, "2.17.1")[0]


def test_the_committed_table_has_every_row_and_none_that_differs():
    written = table.read(RESULTS)
    assert list(written) == [(row.client, row.version) for row in rows.ROWS]
    for cells in written.values():
        assert cells[5] in ("0", "-"), cells


def test_the_committed_table_names_no_place():
    assert not re.search(r"(^|[\s(])/\w|https?:", RESULTS.read_text())


def test_a_row_that_is_run_again_replaces_its_line_and_no_other(tmp_path):
    path = tmp_path / "results.md"
    other = rows.nccl(12, "2.16.5")[0]
    table.write(path, ROW, table.cells(ROW, Outcome("something", 7, 1)))
    table.write(path, other, table.cells(other, Outcome("this", 1000, 0)))
    table.write(path, ROW, table.cells(ROW, Outcome("something", 8, 0)))
    lines = [line for line in path.read_text().splitlines() if line.startswith("| nvidia")]
    assert [line.split(" | ")[1:6] for line in lines] == [
        ["2.16.5", "CUDA 12", "this", "1,000", "0"],
        ["2.17.1", "CUDA 12", "something", "8", "0"],
    ]


def test_what_could_not_be_run_says_why(tmp_path):
    path = tmp_path / "results.md"
    table.write(path, ROW, table.cells(ROW, None, "no such library"))
    assert "| **not run**: no such library | - | - |" in path.read_text()


def test_every_nccl_minor_since_2_16_has_a_row():
    minors = {row.version.split(".")[1] for row in rows.NCCL}
    assert minors == {str(minor) for minor in range(16, 33)}
