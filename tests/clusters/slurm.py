"""Rows of Slurm: steps, arrays, time limits, jobs that are requeued."""

import functools
import sys

from clusters.place import NATIVE, Place, Row, expect, headers, run_ids, until
from clusters.slurm_here import free_port, said
from lib.build import CLIENTS, LIBTPROF, TPROF
from lib.tool import tprof

RANKS = 4
STEPS = ["--steps", "6"]
EXPORT = "--export=ALL,LD_PRELOAD={library},TPROF_OUTPUT_DIR={traces}/%j"


def export(place: Place) -> str:
    return EXPORT.format(library=LIBTPROF, traces=place.traces)


def only_folder(place: Place):
    (folder,) = place.traces.iterdir()
    return folder


def preload(place: Place, env: dict) -> Row:
    env = env | {"NATIVE_TRAINER_ID": place.folder / "id"}
    text = place.run(["srun", f"-n{RANKS}", export(place), NATIVE, *STEPS], **env)
    expect(not place.complaints(text), place.complaints(text))
    folder = only_folder(place)
    expect(folder.name.isdigit(), f"%j is {folder.name}")
    expect(place.checked(0, traces=folder)["run_id"] == f"{folder.name}.0", "the run id is not job.step")
    return place.counted("srun --export=ALL,LD_PRELOAD=…", list(range(RANKS)), folder)


def run_in_each_task(place: Place, env: dict) -> Row:
    env = env | {"NATIVE_TRAINER_ID": place.folder / "id"}
    command = ["srun", f"-n{RANKS}", TPROF, "run", "--out", place.traces, "--", NATIVE, *STEPS]
    text = place.run(command, **env)
    expect(text.count("Totals over") == 1, f"{text.count('Totals over')} summaries")
    place.checked(0)
    return place.counted("srun tprof run -- …", list(range(RANKS)))


def run_in_front(place: Place, env: dict) -> Row:
    env = env | {"NATIVE_TRAINER_ID": place.folder / "id"}
    text = place.run([TPROF, "run", "--out", place.traces, "--", "srun", f"-n{RANKS}", NATIVE, *STEPS], **env)
    expect(f"Totals over {RANKS} processes" in text, "no summary of all ranks")
    place.checked(0)
    return place.counted("tprof run -- srun …", list(range(RANKS)))


def submit(place: Place, env: dict, options: list[str], body: str) -> int:
    script = place.folder / "job.sh"
    script.write_text("#!/bin/sh\n" + body)
    out = ["-o", place.folder / "job-%A-%a.out"]
    text = place.run(["sbatch", "--parsable", *out, *options, script], **env)
    return int(text.split()[-1])


def over(job: int, env: dict, limit: int = 200) -> None:
    until(lambda: str(job) not in said(["squeue", "-h", "-o", "%A"], env).split(), limit)


def two_steps(place: Place, env: dict) -> Row:
    """Two steps of one job, at the same time and into one folder, are two runs."""
    step = f'NATIVE_TRAINER_ID={place.folder}/id.{{0}} srun --exact -n2 {export(place)} {NATIVE} --steps {{0}} &\n'
    job = submit(place, env, ["-n4"], step.format(5) + step.format(7) + "wait\n")
    over(job, env)
    folder = only_folder(place)
    expect({run for _, run, _ in run_ids(folder)} == {f"{job}.0", f"{job}.1"}, run_ids(folder))
    for step in ("0", "1"):
        expect(place.checked(0, "--run", f"{job}.{step}", traces=folder)["ranks"] == [0, 1], "ranks of a step")
    return place.counted("sbatch, two steps at once", [0, 0, 1, 1], folder)


def array(place: Place, env: dict) -> Row:
    line = f"NATIVE_TRAINER_ID={place.folder}/id.$SLURM_ARRAY_TASK_ID srun {export(place)} {NATIVE} --steps 6\n"
    job = submit(place, env, ["--array=0-1", "-n2"], line)
    over(job, env)
    until(lambda: not said(["squeue", "-h"], env).strip())
    folders = sorted(place.traces.iterdir())
    expect(len(folders) == 2, f"folders {[f.name for f in folders]}")
    rows = []
    for folder in folders:
        place.checked(0, traces=folder)
        rows.append(place.counted("sbatch --array=0-1", [0, 1], folder))
    return Row(rows[0].ran, *(sum(getattr(row, name) for row in rows) for name in ("processes", "ours", "theirs")))


def time_limit(place: Place, env: dict) -> Row:
    """SIGTERM by Slurm, and the ranks have no handler: what they counted is in their rings."""
    line = f"NATIVE_TRAINER_ID={place.folder}/id exec srun {export(place)} {NATIVE} --steps 100000000\n"
    job = submit(place, env, ["--time=1", f"-n{RANKS}"], line)
    over(job, env)
    (out,) = place.folder.glob("job-*.out")
    expect("DUE TO TIME LIMIT" in out.read_text(), "not ended by its time limit")
    folder = only_folder(place)
    found = place.checked(1, traces=folder)
    kinds = {finding["kind"] for finding in found["findings"]}
    expect(tprof("recover", folder).returncode == 0, "tprof recover")
    place.checked(1, traces=folder)
    note = f"check says: {', '.join(sorted(kinds))}"
    return place.counted("sbatch --time=1, over its time", list(range(RANKS)), folder, short=1, note=note)


def requeued(place: Place, env: dict) -> Row:
    body = (
        "steps=100000000\n"
        '[ -z "$SLURM_RESTART_COUNT" ] || steps=6\n'
        f"export NATIVE_TRAINER_ID={place.folder}/id.$SLURM_RESTART_COUNT\n"
        f"exec srun {export(place)} {NATIVE} --steps $steps\n"
    )
    job = submit(place, env, ["--requeue", f"-n{RANKS}"], body)
    folder = place.traces / str(job)
    until(lambda: len([f for f in folder.glob("*.json") if f.stat().st_size > 100_000]) == RANKS)
    place.run(["scontrol", "requeue", job], **env)
    over(job, env)
    expect(len(list(folder.glob("*.json"))) == 2 * RANKS, sorted(f.name for f in folder.iterdir()))
    expect({(run, again) for _, run, again in run_ids(folder)} == {(f"{job}.0", 0), (f"{job}.0", 1)}, run_ids(folder))
    last = place.checked(0, traces=folder)
    expect([f["kind"] for f in last["findings"]] == ["other_run"], last["findings"])
    place.checked(1, "--attempt", "1", traces=folder)
    expect(tprof("recover", folder).returncode == 0, "tprof recover")
    ranks = sorted([*range(RANKS)] * 2)
    return place.counted("sbatch --requeue, scontrol requeue", ranks, folder, short=1, note="two attempts of one run")


def cancelled(place: Place, env: dict) -> Row:
    """`tprof run` in each task gets the SIGTERM, too, and closes the files of its rank before the SIGKILL."""
    run = f"{TPROF} run --out {place.traces} -- {NATIVE} --steps 100000000"
    job = submit(place, env, [f"-n{RANKS}"], f"NATIVE_TRAINER_ID={place.folder}/id exec srun {run}\n")
    until(lambda: len([f for f in place.traces.glob("*.json") if f.stat().st_size > 100_000]) == RANKS)
    place.run(["scancel", job], **env)
    over(job, env)
    # srun may end before the tasks, and pass on no summary.
    until(lambda: all(f.read_text().endswith("\n]\n") for f in place.traces.glob("*.json")), limit=20)
    place.checked(1)
    return place.counted("srun tprof run, scancel", list(range(RANKS)), short=1, note="files closed by tprof run")


def torchrun(place: Place, env: dict) -> Row:
    """A torchrun on each of two nodes, here two tasks: torchrun names no run, the step does."""
    nodes = f"-m torch.distributed.run --nnodes=2 --node_rank=$SLURM_PROCID --nproc_per_node=2 --master_addr=127.0.0.1"
    line = f"exec {sys.executable} {nodes} --master_port={free_port()} {CLIENTS / 'counted.py'}"
    place.run(["srun", "-n2", export(place), "sh", "-c", line], **env)
    folder = only_folder(place)
    expect({run for _, run, _ in run_ids(folder)} == {f"{folder.name}.0"}, run_ids(folder))
    expect(place.checked(0, traces=folder)["ranks"] == list(range(RANKS)), "ranks")
    return place.counted("srun -n2 --export=… torchrun --nnodes=2", list(range(RANKS)), folder)


def pmi2(place: Place, env: dict) -> Row:
    env = env | {"NATIVE_TRAINER_ID": place.folder / "id"}
    place.run(["srun", "--mpi=pmi2", f"-n{RANKS}", export(place), NATIVE, *STEPS], **env)
    folder = only_folder(place)
    local = [head["local_rank"] for head in headers(folder)]
    expect(local == list(range(RANKS)), f"local ranks {local}")
    place.checked(0, traces=folder)
    return place.counted("srun --mpi=pmi2 --export=…", list(range(RANKS)), folder)


def report(place: Place, env: dict, mpi: str) -> Row:
    """Four tasks share the work of one report, and say what one alone does: stdout and page, to the byte."""
    env = env | {"NATIVE_TRAINER_ID": place.folder / "id"}
    place.run(["srun", f"-n{RANKS}", export(place), NATIVE, *STEPS], **env)
    folder = only_folder(place)
    alone = place.run([TPROF, "report", folder], **env)
    place.run([TPROF, "report", folder, "-o", place.folder / "alone.html"], **env)
    together = ["srun", f"--mpi={mpi}", f"-n{RANKS}", TPROF, "report", folder]
    text = place.run(together, **env)
    expect(text == alone, f"together: {text}")
    place.run([*together, "-o", place.folder / "together.html"], **env)
    pages = [(place.folder / f"{name}.html").read_bytes() for name in ("alone", "together")]
    expect(pages[0] == pages[1], "the pages differ")
    return place.counted(f"srun --mpi={mpi} tprof report", list(range(RANKS)), folder, note="the bytes of one alone")


ROWS = {
    "slurm-preload": preload,
    "slurm-run": run_in_each_task,
    "slurm-front": run_in_front,
    "slurm-steps": two_steps,
    "slurm-array": array,
    "slurm-requeue": requeued,
    "slurm-cancel": cancelled,
    "slurm-torchrun": torchrun,
    "slurm-pmi2": pmi2,
    "slurm-report-pmix": functools.partial(report, mpi="pmix"),  # Open MPI
    "slurm-report-pmi2": functools.partial(report, mpi="pmi2"),  # MPICH
    "slurm-limit": time_limit,
}
