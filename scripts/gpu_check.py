"""Checks what only a GPU can show: real libcudart, libnccl and frameworks, with and without libtprof.so.

scripts/gpu-check runs it. Every check is reported, whatever the ones before it did. Expected values
come from the programs' own arguments and shapes, never from tprof.
"""

import argparse
import collections
import ctypes
import dataclasses
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys

import gpu_times
from lib import figures, formulas, launch, rankfile

TIME_LIMIT_S = 300
COPY_BYTES = (4099, 1000003)  # sizes that nothing else copies
ELEMENTS = 1009
REPEAT = 3


class Failed(Exception):
    pass


def require(condition: bool, text: str) -> None:
    if not condition:
        raise Failed(text)


@dataclasses.dataclass(frozen=True)
class Run:
    code: int
    stdout: str
    stderr: pathlib.Path
    traces: pathlib.Path

    def ranks(self) -> list[rankfile.RankFile]:
        return rankfile.read_folder(self.traces)


class Machine:
    """The machine and the library that the programs run with."""

    def __init__(self, library: pathlib.Path, out: pathlib.Path, gpus: int, ranks_per_gpu: int, turns: int, standin: bool):
        self.library, self.out, self.gpus, self.turns, self.standin = library, out, gpus, turns, standin
        self.ranks = gpus * ranks_per_gpu

    def run(self, name: str, command: list[str], preload: bool, settings: dict[str, str]) -> Run:
        traces = self.out / name
        env = {k: v for k, v in os.environ.items() if not k.startswith("TPROF_")}
        env.pop("LD_PRELOAD", None)
        env |= {"TPROF_OUTPUT_DIR": str(traces), "OMP_NUM_THREADS": "1"}
        if preload:
            env |= {"LD_PRELOAD": str(self.library), **settings}
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
        stderr = self.out / f"{name}.stderr"
        stderr.write_text(done.stderr)
        return Run(done.returncode, done.stdout, stderr, traces)

    def train(self, name: str, script: str, *args: str, preload: bool = True, **settings: str) -> Run:
        command = launch.without_agent(script, self.ranks, args, devices=self.gpus)
        return self.run(name, command, preload, settings)


def check_same(plain: Run, traced: Run) -> None:
    for run, how in ((plain, "without"), (traced, "with")):
        require(run.code == 0, f"exits {run.code} {how} the preload, see {run.stderr}")
    # Ranks write in any order, so the order of lines means nothing.
    ours, theirs = sorted(traced.stdout.splitlines()), sorted(plain.stdout.splitlines())
    require(ours == theirs, f"another standard output: {set(ours) ^ set(theirs)}")


def pair(machine: Machine, script: str, *args: str) -> Run:
    """Returns the traced one of two runs that must not differ in anything the user sees."""
    name = pathlib.Path(script).stem
    plain = machine.train(f"{name}-plain", script, *args, preload=False)
    traced = machine.train(name, script, *args)
    check_same(plain, traced)
    files = traced.ranks()
    require(len(files) == machine.ranks, f"{len(files)} rank files of {machine.ranks} ranks")
    for file in files:
        require(file.footer is not None and file.footer["complete"], f"{file.path} is incomplete")
        direct = {k: v for k, v in figures.of_ledger(file).items() if k[-1] == "direct"}
        kinds = ("D2D", "H2H", "MANAGED")  # counted, but no lines unless asked for
        direct = {k: v for k, v in direct.items() if k[0] not in kinds}
        wrong = figures.difference(direct, figures.of_lines(file))
        require(not wrong, f"{file.path}: ledger and lines differ:\n{wrong}")
    return traced


def tally(file: rankfile.RankFile, function: str) -> dict[int, int]:
    """Returns count -> calls."""
    named = (event for event in file.events if event["name"] == function)
    return dict(collections.Counter(event["args"]["count"] for event in named))


# ---- The checks. Each returns what it saw.


def plain_python(machine: Machine) -> str:
    code = "import torch; x = torch.ones(64, 64).cuda(); print(float((x @ x).sum()))"
    command = [sys.executable, "-c", code]
    plain = machine.run("python-plain", command, preload=False, settings={})
    check_same(plain, machine.run("python", command, preload=True, settings={}))
    return f"both print {plain.stdout.strip()}"


def copies_and_collectives(machine: Machine) -> str:
    sizes = [str(size) for size in COPY_BYTES]
    traced = pair(
        machine,
        "counted.py",
        *("--copy-bytes", *sizes, "--elements", str(ELEMENTS), "--repeat", str(REPEAT)),
    )
    require("LOST" not in traced.stdout, "a copy lost its data")
    for file in traced.ranks():
        copies = collections.Counter(
            (event["cat"], event["args"]["bytes"], event["args"].get("host_memory"))
            for event in file.events
            if event["args"]["bytes"] in COPY_BYTES and event["cat"] in ("H2D", "D2H")
        )
        expected = {
            (direction, size, memory): REPEAT
            for direction in ("H2D", "D2H")
            for size in COPY_BYTES
            for memory in ("pageable", "pinned")
        }
        require(copies == expected, f"{file.path}: copies {dict(copies)}")
        for function, broadcast in (
            ("ncclAllGather", False), ("ncclReduceScatter", False),
            ("ncclAllReduce", False), ("ncclBroadcast", True),
        ):  # fmt: skip
            calls = tally(file, function).get(ELEMENTS, 0)
            if broadcast:
                calls += tally(file, "ncclBcast").get(ELEMENTS, 0)
            if function == "ncclReduceScatter" and machine.ranks == 1 and not calls:
                # PyTorch copies on one rank, where nothing is to be reduced.
                calls = sum(r["calls"] for r in file.ledger_rows() if (r["bucket"], r["bytes"]) == ("D2D", 4 * ELEMENTS * REPEAT))
            require(calls == REPEAT, f"{file.path}: {function} {calls} times, not {REPEAT}")
    return f"{len(expected)} kinds of copies and 4 collectives, {REPEAT} times each, all found"


def fsdp2(machine: Machine) -> str:
    steps, model = 3, formulas.Model()
    root, block = (
        formulas.shard_by_rows(shapes, machine.ranks) for shapes in (model.root(), model.block())
    )
    wanted = formulas.gathers_and_scatters(root, block, steps, reshard_after_forward=True)
    for file in pair(machine, "fsdp2.py", "--steps", str(steps)).ranks():
        seen = (tally(file, "ncclAllGather"), tally(file, "ncclReduceScatter"))
        # On one rank newer versions of PyTorch issue neither.
        none = machine.ranks == 1 and seen == ({}, {})
        require(none or seen == wanted, f"{file.path}: {seen}, the formula says {wanted}")
        losses = sum(e["cat"] == "D2H" and e["args"]["bytes"] == 4 for e in file.events)
        require(losses == steps, f"{file.path}: {losses} losses copied back, not {steps}")
    if none:
        return "one rank: no all-gather and no reduce-scatter, as PyTorch does there"
    return f"all-gathers and reduce-scatters as the formula says: {wanted}"


def unchanged(script: str):
    def check(machine: Machine) -> str:
        calls = sum(len(file.events) for file in pair(machine, script).ranks())
        return f"same output and exit code; {calls} events"

    return check


def cuda_graph(machine: Machine) -> str:
    for file in pair(machine, "cuda_graph.py").ranks():
        modes = collections.Counter()
        for row in file.ledger_rows():
            if row["name"] == "ncclAllGather":
                modes[row["mode"]] += row["calls"]
        # cuda_graph.py: one in the first graph, two in the second, which are launched 10 and 3 times.
        wanted = {"direct": 1, "captured": 1 + 2, "replayed": 10 * 1 + 3 * 2}
        require(modes == wanted, f"{file.path}: all-gathers {dict(modes)}, not {wanted}")
    return f"all-gathers: {wanted}"


def profiled(machine: Machine, name: str, preload: bool, **settings: str) -> tuple[Run, list[list[gpu_times.Work]]]:
    """Returns a run under torch.profiler, and what its device did on each rank."""
    out = machine.out / f"{name}-kineto"
    out.mkdir()
    size = () if machine.standin else ("--width", "2048", "--hidden", "8192", "--depth", "8", "--steps", "20")
    run = machine.train(name, "kineto.py", "--out", str(out), *size, preload=preload, **settings)
    require(run.code == 0, f"exits {run.code}, see {run.stderr}")
    return run, [gpu_times.of_kineto(out / f"kineto-{rank}.json") for rank in range(machine.ranks)]


# Clients that run under Kineto, with arguments.
UNDER_KINETO = (
    ("counted.py",), ("dataloader.py",), ("ddp.py",), ("fsdp1.py",), ("fsdp2.py", "--steps", "3"), ("cuda_graph.py",),
)  # fmt: skip


def calls_beside_cuptis(machine: Machine) -> str:
    """Compares what is counted with what Kineto has of the same run: copies by direction and host memory, and
    NCCL's kernels. On one rank NCCL's work is copies, so that its own are among Kineto's."""
    seen = 0
    for script, *args in UNDER_KINETO:
        name = f"kineto-{pathlib.Path(script).stem}"
        out = machine.out / f"{name}-kineto"
        out.mkdir()
        run = machine.train(name, "under_kineto.py", str(out), script, *args)
        require(run.code == 0, f"exits {run.code}, see {run.stderr}")
        for file in run.ranks():
            ours = gpu_times.moved_by_ledger(file.ledger_rows())
            theirs = gpu_times.moved(gpu_times.of_kineto(out / f"kineto-{file.rank}.json"))
            if machine.ranks == 1:
                ours, theirs = ({k: v for k, v in of.items() if k[1]} for of in (ours, theirs))
            require(ours == theirs, f"{file.path}: {ours}, by CUPTI {theirs}")
            seen += sum(calls for calls, _ in ours.values())
    return f"{seen} copies and NCCL kernels of {len(UNDER_KINETO)} jobs, calls and bytes the same"


def times_beside_cuptis(machine: Machine) -> str:
    """Compares the times by events with Kineto's kernels of the same run, which come from CUPTI."""
    run, kinetos = profiled(machine, "events", True, TPROF_TIMING="events", TPROF_SCHEDULE="profiler")
    texts = []
    for file, work in zip(run.ranks(), kinetos):
        ours, theirs = gpu_times.of_ledger(file.ledger_rows()), gpu_times.by_bucket(work)
        lost = file.footer.get("timing_lost", {})
        for bucket in gpu_times.NAMES.values():
            calls = theirs[bucket].calls
            # On one rank NCCL's work is no kernel.
            require(
                machine.ranks == 1 or 0 <= calls - ours[bucket].calls <= sum(lost.values()),
                f"{file.path}: {bucket} {ours[bucket].calls} timed, {lost} not, of {calls} that ran",
            )
        texts.append(
            f"rank {file.rank}: {gpu_times.compared(ours, theirs)}; {gpu_times.exposed(ours, work)}; not known of"
            f" {file.footer.get('exposure_lost', {})}"
        )
    return "; ".join(texts) + " (reported, not judged)"


# Widths of a model whose host launches about as fast as its kernels run on an H200, and of one whose host runs ahead.
OFFLOADED = (1024, 4096)


def copies_beside_kernels(machine: Machine) -> str:
    """Compares what was exposed of copies on streams of their own with Kineto's copies and kernels of the same run.
    One process, since kernels of several on one GPU wait for each other."""
    texts = []
    size = 100_003 if machine.standin else 16 * 1024 * 1024 + 3  # nothing else is copied in these sizes
    for width in (64,) if machine.standin else OFFLOADED:
        name = f"offloaded-{width}"
        out = machine.out / f"{name}.kineto.json"
        client = [sys.executable, str(launch.CLIENTS / "offloaded.py"), "--out", str(out)]
        run = machine.run(name, [*client, "--width", str(width), "--copy-bytes", str(size)], True, {"TPROF_TIMING": "events"})
        require(run.code == 0, f"exits {run.code}, see {run.stderr}")
        (file,) = run.ranks()
        ours = gpu_times.of_ledger(file.ledger_rows())
        work = gpu_times.of_kineto(out)
        for bucket in gpu_times.COPIES.values():
            hidden, whole = gpu_times.hidden_and_whole(work, lambda w: (w.bucket, w.bytes) == (bucket, size))
            known = ours[bucket].known_ns
            require(whole > 0 and known > 0, f"{bucket}: {known} ns are known, by CUPTI {whole}")
            share, by_cupti = ours[bucket].exposed_ns / known, 1 - hidden / whole
            text = f"{bucket} {share:.2f} exposed, by CUPTI {by_cupti:.2f}"
            require(abs(share - by_cupti) < 0.2, f"width {width}: {text}")
            texts.append(text)
    return "; ".join(texts)


def overlap(machine: Machine) -> str:
    """Measures whether timing events take communication out from under computation."""
    if machine.standin:
        return "not measured on the stand-in"
    shares: dict[str, list[float]] = {"without": [], "events": []}
    for turn in range(machine.turns):
        for how in shares:
            _, kinetos = profiled(machine, f"overlap-{turn}-{how}", how != "without", TPROF_TIMING="events")
            hidden, whole = (sum(part) for part in zip(*map(gpu_times.hidden_and_whole, kinetos)))
            shares[how].append(hidden / whole if whole else 0)
    said = (f"{how} {100 * statistics.median(share):.1f} %" for how, share in shares.items())
    return f"NCCL's kernels under others: {', '.join(said)} of their time, median of {machine.turns} (reported, not judged)"


# Steps that keep a GPU busy for some 50 ms: the hosts of small ones are what is measured, and vary by a quarter.
STEPS = ("--steps", "40", "--dim", "1024", "--layers", "8", "--length", "512")
# Settings that a user may ask for, beside none; the goals are shares of a step.
STEP_SETTINGS = {
    "host": ("host", "0.1 %"), "events": ("events", "0.5 %"), "events:16": ("events:16", "0.1 %"), "cupti": ("cupti", "2 %"),
}  # fmt: skip


def step_time(machine: Machine) -> str:
    """Runs with and without take turns, so that a drift of the machine's speed hits all."""
    if machine.standin:
        return "not measured on the stand-in"
    medians: dict[str, list[float]] = {"without": []} | {how: [] for how in STEP_SETTINGS}
    for turn in range(machine.turns):
        for how, seen in medians.items():
            timing = STEP_SETTINGS.get(how, ("host", ""))[0]
            name = f"steps-{turn}-{how.replace(':', '-')}"
            run = machine.train(name, "demo_gpt.py", *STEPS, preload=how != "without", TPROF_TIMING=timing)
            require(run.code == 0, f"exits {run.code}, see {run.stderr}")
            steps = [float(ms) for ms in re.findall(r"([0-9.]+) ms", run.stdout)]
            # The first third is warm-up.
            seen.append(statistics.median(steps[len(steps) // 3 :]))
    plain = medians.pop("without")
    texts = []
    for how, seen in medians.items():
        ratios = sorted(b / a - 1 for a, b in zip(plain, seen))
        texts.append(
            f"{how} {100 * statistics.median(ratios):+.2f} % ({100 * ratios[0]:+.2f} to {100 * ratios[-1]:+.2f},"
            f" goal < {STEP_SETTINGS[how][1]})"
        )
    return f"median step {statistics.median(plain):.2f} ms without; {', '.join(texts)}; {machine.turns} turns (reported, not judged)"


def lanes_of_gpus(machine: Machine) -> str:
    """Checks what NVML tells beside a training job, for each device that nvidia-smi lists."""
    if machine.standin:
        return "not measured on the stand-in"
    lanes = machine.out / "lanes"
    lanes.mkdir(exist_ok=True)
    ours, theirs = socket.socketpair()
    command = [machine.library.parent / "tprof-node", lanes, "gpu-check", "node", "boot", "100ms,gpus", "0"]
    with subprocess.Popen(command, stdin=theirs, stderr=theirs) as node:
        theirs.close()
        run = machine.train("gpus", "demo_gpt.py", "--steps", "200")
        ours.shutdown(socket.SHUT_WR)
        said = ours.makefile().read()
    require((run.code, node.returncode, said) == (0, 0, ""), f"exits {run.code}, see {run.stderr}; {said}")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.count("GPU ")
    most: dict[str, float] = {}
    for line in rankfile.parsed(lanes / "node.node.json"):
        if line.get("cat") == "COUNTER" and line["name"].startswith("GPU "):
            for key, value in line["args"].items():
                lane = f"{line['name']}: {key}"
                most[lane] = max(most.get(lane, 0), value)
    for gpu in range(min(listed, 16)):
        for lane in ("utilization, %: kernels", "memory, bytes: used", "power, W: power"):
            require(f"GPU {gpu} {lane}" in most, f"no lane {lane} of GPU {gpu} of {listed}")
    return "highest: " + ", ".join(f"{lane} {value:.4g}" for lane, value in sorted(most.items())) + " (not judged)"


CHECKS = {
    "python with one CUDA call": plain_python,
    "copies and collectives": copies_and_collectives,
    "FSDP2": fsdp2,
    "FSDP1": unchanged("fsdp1.py"),
    "DDP": unchanged("ddp.py"),
    "DataLoader with pinned memory": unchanged("dataloader.py"),
    "CUDA graph": cuda_graph,
    "calls beside CUPTI's": calls_beside_cuptis,
    "times beside CUPTI's": times_beside_cuptis,
    "copies beside kernels": copies_beside_kernels,
    "overlap": overlap,
    "step time": step_time,
    "lanes of GPUs": lanes_of_gpus,
}


def describe(torch, standin: bool) -> str:
    version = ctypes.c_int()  # torch.cuda.nccl.version() is the one that PyTorch was built with
    ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(version))
    nccl = f"{version.value // 10000}.{version.value // 100 % 100}.{version.value % 100}"
    gpus = {torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())}
    where = "ON THE STAND-IN, NOT ON A GPU: " if standin else ""
    return (
        f"{where}{torch.cuda.device_count()} x {', '.join(sorted(gpus))}; PyTorch {torch.__version__},"
        f" NCCL {nccl}, Python {sys.version.split()[0]}"
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--standin", action="store_true")
    parser.add_argument(
        "--ranks-per-gpu", type=int, default=1, metavar="N",
        help="ranks that share a GPU, which NCCL does from 2.30 on: collectives of several ranks on one GPU",
    )  # fmt: skip
    parser.add_argument(
        "--turns", type=int, default=5, metavar="N", help="'overlap' and 'step time' compare N runs of each kind"
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    args = parser.parse_args()
    if unknown := set(args.checks) - set(CHECKS):
        parser.error(f"no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    chosen = {name: check for name, check in CHECKS.items() if not args.checks or name in args.checks}

    import torch  # after the arguments: it takes seconds

    if not torch.cuda.is_available():
        print("gpu-check: PyTorch sees no GPU; nothing was checked", file=sys.stderr)
        return 2
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    if args.ranks_per_gpu > 1:
        os.environ["NCCL_MULTI_RANK_GPU_ENABLE"] = "1"
    gpus = min(2 if args.standin else 4, torch.cuda.device_count())
    machine = Machine(args.library.resolve(), args.out.resolve(), gpus, args.ranks_per_gpu, args.turns, args.standin)
    print(f"gpu-check: {describe(torch, args.standin)}; {machine.ranks} ranks")

    failed = 0
    for name, check in chosen.items():
        try:
            verdict, text = "ok", check(machine)
        except Exception as error:  # whatever it is, the next check still runs
            verdict, text = "FAILED", f"{type(error).__name__}: {error}"
            failed += 1
        print(f"{verdict:6} {name}: {text}", flush=True)
    print(f"gpu-check: {len(chosen) - failed} of {len(chosen)} ok; output and traces in {args.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
