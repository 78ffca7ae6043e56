"""Runs the launchers of scripts/README.md on this machine: python -m clusters FOLDER [ROW...]

Prints a table, and each row as it ends. The commands' output is in FOLDER/ROW/commands.log.
"""

import datetime
import itertools
import pathlib
import shutil
import signal
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
    verdict = "exact" if row.ours == row.theirs else f"{row.theirs - row.ours} calls not known"
    counts = f"{row.ours} of {row.theirs}"
    return [name, row.ran, str(row.processes), counts, "; ".join(filter(None, (verdict, row.note))), today]


def rows_of_slurm(names: list[str], folder: pathlib.Path):
    """Yields the cells of these rows, from one Slurm."""
    if not names:
        return
    shutil.rmtree(folder / "slurm", ignore_errors=True)
    try:
        with slurm_here.slurm(folder / "slurm") as env:
            for name in names:
                yield outcome(name, slurm.ROWS[name], folder, env)
    except NotRun as why:
        yield from ([name, f"not run: {why}", "", "", "not run", ""] for name in names)


def main() -> int:
    # The daemons end with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    others = {name: function for source in SOURCES for name, function in source.ROWS.items()}
    known = [*slurm.ROWS, *others]
    wanted = sys.argv[2:] or known
    for name in wanted:
        if name not in known:
            sys.exit(f"no row {name}: there are {', '.join(known)}")
        shutil.rmtree(folder / name, ignore_errors=True)
    of_slurm = rows_of_slurm([name for name in slurm.ROWS if name in wanted], folder)
    of_others = (outcome(name, others[name], folder) for name in others if name in wanted)
    cells = []
    for row in itertools.chain(of_slurm, of_others):
        cells.append(row)
        print(" | ".join(row), flush=True)
    if wanted == known:
        cells += [[name, f"not run: {reason}", "", "", "not run", ""] for name, reason in NEVER.items()]
    print("\n| row | what ran | processes | calls, of the stand-in's | verdict | date |\n|---|---|---|---|---|---|")
    for row in cells:
        print(f"| {' | '.join(row)} |")
    return any(row[4].startswith("WRONG") for row in cells)


if __name__ == "__main__":
    sys.exit(main())
