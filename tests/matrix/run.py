#!/usr/bin/env python3
"""Runs rows of the table, one at a time, and writes results.md. See scripts/test-matrix."""

import argparse
import os
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

import builds
import nccl
import nccl_tests
import table
import training
import venvs
from lib.build import BUILD
from outcome import Failed
from rows import ROWS, Row, selected

KINDS = {"nccl": nccl, "nccl_tests": nccl_tests, "training": training, "builds": builds}
WITHOUT_VENV = ("builds", "nccl_tests")
RESULTS = HERE / "results.md"


def run_row(row: Row):
    folder = venvs.folder_of(row)
    shutil.rmtree(folder / "runs", ignore_errors=True)
    venv = folder if row.kind in WITHOUT_VENV else venvs.make(row)
    return KINDS[row.kind].run(row, venv, BUILD, folder / "runs")


def remove(row: Row, to_come: list[Row]) -> None:
    """Removes the environments that no row still to come needs."""
    needed = {other.base for other in to_come}
    for done in (row, *(other for other in ROWS if other.key == row.base)):
        if done.key not in needed:
            shutil.rmtree(venvs.folder_of(done), ignore_errors=True)


def without_paths(text: str) -> str:
    """Removes this machine's folders from text for the committed table: they mean nothing elsewhere."""
    for path in (str(BUILD), str(venvs.REPO), os.path.expanduser("~")):
        text = text.replace(path + "/", "")
    return " ".join(text.replace("|", "/").split())


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/test-matrix", description=__doc__)
    parser.add_argument("rows", nargs="*", help="client, client==version or kind; all")
    parser.add_argument("--list", action="store_true", help="the rows, nothing is run")
    parser.add_argument("--again", action="store_true", help="rows that were run here too")
    parser.add_argument("--keep", action="store_true", help="environments are not removed")
    args = parser.parse_args()
    rows = selected(args.rows)
    if args.list:
        print("\n".join(f"{row.key}  {row.beside}" for row in rows))
        return 0

    place = BUILD / "matrix"
    bad, left_out = [], 0
    for number, row in enumerate(rows):
        done = place / f"{row.client}-{row.version}.done"
        state = repr(row)
        if not args.again and done.exists() and done.read_text() == state:
            print(f"{row.key}: was run here (--again runs it once more)")
            continue
        if row.kind == "nccl_tests" and (reason := nccl_tests.why_not()):
            print(f"{row.key}: left out: {reason}")
            left_out += 1
            continue
        started = time.monotonic()
        outcome, trouble = None, ""
        try:
            outcome = run_row(row)
        except (Failed, venvs.CannotInstall) as error:
            trouble = without_paths(str(error))
        table.write(RESULTS, row, table.cells(row, outcome, trouble))
        if not args.keep:
            remove(row, rows[number + 1 :])
        seconds = time.monotonic() - started
        if outcome is None or outcome.difference:
            bad.append(row.key)
        else:
            done.write_text(state)
        text = trouble or f"{outcome.ran}: {outcome.calls} calls, difference {outcome.difference}"
        print(f"{row.key}: {text} ({seconds:.0f} s)", flush=True)
    passed = len(rows) - len(bad) - left_out
    left = f", {left_out} left out" if left_out else ""
    print(f"test-matrix: {passed} passed, {len(bad)} failed{left}, of {len(ROWS)} rows")
    for key in bad:
        print(f"test-matrix: {key} FAILED or differs")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
