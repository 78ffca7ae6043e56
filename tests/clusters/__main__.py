"""Runs the launchers of scripts/README.md on this machine: python -m clusters FOLDER [ROW...]

Prints a table, and each row as it ends. What the commands printed is in FOLDER/ROW/commands.log.
"""

import contextlib
import datetime
import pathlib
import shutil
import sys
import traceback

from clusters import containers, mpi, pytorch, ray_actors, slurm, slurm_here
from clusters.place import NotRun, Place, Wrong

NEVER = {"pyxis": "needs enroot, and a registry of images"}
SOURCES = (pytorch, mpi, ray_actors, containers)


def outcome(name: str, function, folder: pathlib.Path, *more: object) -> list[str]:
    """Returns the cells of a row."""
    today = str(datetime.date.today())
    try:
        row = function(Place(folder / name), *more)
    except NotRun as why:
        return [name, f"not run: {why}", "", "", "not run", today]
    except Wrong as why:
        return [name, "", "", "", f"WRONG: {why}", today]
    except Exception as why:  # noqa: BLE001 a row that breaks must not keep the others from running
        with (folder / name / "commands.log").open("a") as log:
            traceback.print_exc(file=log)
        return [name, "", "", "", f"WRONG: {type(why).__name__}: {str(why)[:200]}", today]
    verdict = "exact" if row.ours == row.theirs else f"{row.theirs - row.ours} calls unfinished"
    counts = f"{row.ours} of {row.theirs}"
    return [name, row.ran, str(row.processes), counts, "; ".join(filter(None, (verdict, row.note))), today]


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    known = {name: function for source in SOURCES for name, function in source.ROWS.items()}
    wanted = sys.argv[2:] or [*slurm.ROWS, *known]
    for name in wanted:
        if name not in known and name not in slurm.ROWS:
            sys.exit(f"no row {name}: there are {', '.join([*slurm.ROWS, *known])}")
        shutil.rmtree(folder / name, ignore_errors=True)
    cells = []

    def done(row: list[str]) -> None:
        cells.append(row)
        print(" | ".join(row), flush=True)

    of_slurm = [name for name in slurm.ROWS if name in wanted]
    with contextlib.ExitStack() as stack:
        env: dict | None = None
        why = ""
        if of_slurm:
            shutil.rmtree(folder / "slurm", ignore_errors=True)
            try:
                env = stack.enter_context(slurm_here.slurm(folder / "slurm"))
            except NotRun as reason:
                why = str(reason)
        for name in of_slurm:
            done(outcome(name, slurm.ROWS[name], folder, env) if env else [name, f"not run: {why}", "", "", "not run", ""])
    for name, function in known.items():
        if name in wanted:
            done(outcome(name, function, folder))
    for name, reason in NEVER.items():
        if not sys.argv[2:]:
            cells.append([name, f"not run: {reason}", "", "", "not run", ""])
    print("\n| row | what ran | processes | calls, ours of the stand-in's | verdict | date |\n|---|---|---|---|---|---|")
    for row in cells:
        print(f"| {' | '.join(row)} |")
    return any(row[4].startswith("WRONG") for row in cells)


if __name__ == "__main__":
    sys.exit(main())
