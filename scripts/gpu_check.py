"""What only a GPU can show: real libcudart, libnccl and frameworks, with and without libtprof.so.

Run by scripts/gpu-check. Every check is reported, whatever the ones before it did. What is
expected comes from the programs' own arguments and shapes, never from tprof.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

from lib import figures, formulas, launch, rankfile

TIME_LIMIT_S = 300
COPY_BYTES = (4099, 1000003)  # sizes that nothing else copies
ELEMENTS = 1009
REPEAT = 3
PAIRS = 5  # step times are compared in this many pairs of runs


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
    """Where and with what the programs run."""

    def __init__(self, library: pathlib.Path, out: pathlib.Path, ranks: int, standin: bool):
        self.library, self.out, self.ranks, self.standin = library, out, ranks, standin

    def run(self, name: str, command: list[str], preload: bool) -> Run:
        traces = self.out / name
        env = {k: v for k, v in os.environ.items() if not k.startswith("TPROF_")}
        env.pop("LD_PRELOAD", None)
        env |= {"TPROF_OUTPUT_DIR": str(traces), "OMP_NUM_THREADS": "1"}
        if preload:
            env["LD_PRELOAD"] = str(self.library)
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
        stderr = self.out / f"{name}.stderr"
        stderr.write_text(done.stderr)
        return Run(done.returncode, done.stdout, stderr, traces)

    def train(self, name: str, script: str, *args: str, preload: bool = True) -> Run:
        return self.run(name, launch.without_agent(script, self.ranks, args), preload)


def check_same(plain: Run, traced: Run) -> None:
    for run, how in ((plain, "without"), (traced, "with")):
        require(run.code == 0, f"exits {run.code} {how} the preload, see {run.stderr}")
    # Ranks write whenever they get there, so the order of lines means nothing.
    ours, theirs = sorted(traced.stdout.splitlines()), sorted(plain.stdout.splitlines())
    require(ours == theirs, f"another standard output: {set(ours) ^ set(theirs)}")


def pair(machine: Machine, script: str, *args: str) -> Run:
    """The traced one of two runs that must not differ in anything the user sees."""
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
    """count -> calls."""
    named = (event for event in file.events if event["name"] == function)
    return dict(collections.Counter(event["args"]["count"] for event in named))


# ---- The checks. Each returns what it saw.


def plain_python(machine: Machine) -> str:
    code = "import torch; x = torch.ones(64, 64).cuda(); print(float((x @ x).sum()))"
    command = [sys.executable, "-c", code]
    plain = machine.run("python-plain", command, preload=False)
    check_same(plain, machine.run("python", command, preload=True))
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
            (event["cat"], event["args"]["bytes"], event["args"].get("host_memory") == "pinned")
            for event in file.events
            if event["args"]["bytes"] in COPY_BYTES and event["cat"] in ("H2D", "D2H")
        )
        expected = {
            (direction, size, pinned): REPEAT
            for direction in ("H2D", "D2H")
            for size in COPY_BYTES
            for pinned in (False, True)
        }
        require(copies == expected, f"{file.path}: copies {dict(copies)}")
        for function, broadcast in (
            ("ncclAllGather", False), ("ncclReduceScatter", False),
            ("ncclAllReduce", False), ("ncclBroadcast", True),
        ):  # fmt: skip
            calls = tally(file, function).get(ELEMENTS, 0)
            if broadcast:
                calls += tally(file, "ncclBcast").get(ELEMENTS, 0)
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


def step_time(machine: Machine) -> str:
    """Runs with and without take turns, so that a drift of the machine's speed hits both."""
    if machine.standin:
        return "not measured on the stand-in"
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(PAIRS):
        for preload in (False, True):
            name = f"steps-{turn}-{'traced' if preload else 'plain'}"
            run = machine.train(name, "demo_gpt.py", "--steps", "40", preload=preload)
            require(run.code == 0, f"exits {run.code}, see {run.stderr}")
            steps = [float(ms) for ms in re.findall(r"([0-9.]+) ms", run.stdout)]
            # The first half is warm-up.
            seconds[preload].append(statistics.median(steps[len(steps) // 2 :]))
    plain, traced = seconds[False], seconds[True]
    ratios = sorted(b / a for a, b in zip(plain, traced))
    return (
        f"median step {statistics.median(plain):.2f} ms without, {statistics.median(traced):.2f} ms"
        f" with; ratio {statistics.median(ratios):.3f}, of {PAIRS} pairs {ratios[0]:.3f} to"
        f" {ratios[-1]:.3f} (reported, not judged)"
    )


CHECKS = {
    "python with one CUDA call": plain_python,
    "copies and collectives": copies_and_collectives,
    "FSDP2": fsdp2,
    "FSDP1": unchanged("fsdp1.py"),
    "DDP": unchanged("ddp.py"),
    "DataLoader with pinned memory": unchanged("dataloader.py"),
    "CUDA graph": cuda_graph,
    "step time": step_time,
}


def describe(torch, standin: bool) -> str:
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
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
    args = parser.parse_args()

    import torch  # after the arguments: it takes seconds

    if not torch.cuda.is_available():
        print("gpu-check: PyTorch sees no GPU; nothing was checked", file=sys.stderr)
        return 2
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    ranks = min(2 if args.standin else 4, torch.cuda.device_count())
    machine = Machine(args.library.resolve(), args.out.resolve(), ranks, args.standin)
    print(f"gpu-check: {describe(torch, args.standin)}; {machine.ranks} ranks")

    failed = 0
    for name, check in CHECKS.items():
        try:
            verdict, text = "ok", check(machine)
        except Exception as error:  # whatever it is, the next check still runs
            verdict, text = "FAILED", f"{type(error).__name__}: {error}"
            failed += 1
        print(f"{verdict:6} {name}: {text}", flush=True)
    print(f"gpu-check: {len(CHECKS) - failed} of {len(CHECKS)} ok; output and traces in {args.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
