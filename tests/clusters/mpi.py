"""Rows of Open MPI and MPICH: their launchers, since tprof has to do with nothing else of them."""

from clusters.place import NATIVE, Place, Row, expect, path_of, run_ids
from lib.build import LIBTPROF, TPROF

RANKS = 4
STEPS = ["--steps", "6"]
# mpirun refuses root and more ranks than cores where it is not told otherwise.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def preloaded(place: Place, launcher: list, ran: str, **env: str) -> Row:
    """The same launch twice into one folder: they are two jobs."""
    for again in range(2):
        text = place.run([*launcher, NATIVE, *STEPS], NATIVE_TRAINER_ID=place.folder / f"id.{again}", **env)
        expect(not place.complaints(text), place.complaints(text))
        found = place.checked(0)
        expect(found["ranks"] == list(range(RANKS)), found["ranks"])
        expect([f["kind"] for f in found["findings"]] == ["other_run"] * again, found["findings"])
    runs = sorted({str(run) for _, run, _ in run_ids(place.traces)})
    return place.counted(ran, sorted([*range(RANKS)] * 2), note=f"twice; run ids {', '.join(runs)}")


def in_front(place: Place, launcher: list, ran: str, **env: str) -> Row:
    command = [TPROF, "run", "--out", place.traces, "--", *launcher, NATIVE, *STEPS]
    text = place.run(command, NATIVE_TRAINER_ID=place.folder / "id", **env)
    expect(f"Totals over {RANKS} processes" in text, "no summary of all ranks")
    place.checked(0)
    return place.counted(ran, list(range(RANKS)))


def open_mpi(place: Place) -> Row:
    more = ["-x", f"LD_PRELOAD={LIBTPROF}", "-x", f"TPROF_OUTPUT_DIR={place.traces}"]
    launcher = [path_of("mpirun.openmpi"), "--oversubscribe", "-n", RANKS, *more]
    return preloaded(place, launcher, "mpirun -x LD_PRELOAD=…", **OPEN_MPI)


def open_mpi_front(place: Place) -> Row:
    launcher = [path_of("mpirun.openmpi"), "--oversubscribe", "-n", RANKS]
    return in_front(place, launcher, "tprof run -- mpirun …", **OPEN_MPI)


def mpich(place: Place) -> Row:
    more = ["-genv", "LD_PRELOAD", LIBTPROF, "-genv", "TPROF_OUTPUT_DIR", place.traces]
    return preloaded(place, [path_of("mpirun.mpich"), *more, "-n", RANKS], "mpirun -genv LD_PRELOAD …")


def mpich_front(place: Place) -> Row:
    return in_front(place, [path_of("mpirun.mpich"), "-n", RANKS], "tprof run -- mpirun …")


ROWS = {"openmpi": open_mpi, "openmpi-front": open_mpi_front, "mpich": mpich, "mpich-front": mpich_front}
