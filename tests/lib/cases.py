"""The training runs that tests share: script, ranks, arguments."""

import dataclasses
import pathlib

from lib.launch import Run, start, without_agent
from lib.thorough import ALL


@dataclasses.dataclass(frozen=True)
class Case:
    script: str
    ranks: int
    args: tuple[str, ...] = ()
    compared: bool = True  # also runs without the preload; the others do so only in `make test-all`
    forked: bool = True  # from a process that has imported PyTorch; else compared from the first instruction on


STEPS = 7  # one more than it takes to be sure that they are steps
FSDP = ("--steps", str(STEPS))
ODD = (*FSDP, "--width", "65", "--hidden", "251")  # shards are padded on 2 ranks and on 4

CASES = {
    "fsdp1-2": Case("fsdp1.py", 2, FSDP),
    "fsdp1-4-padded": Case("fsdp1.py", 4, ODD, compared=False),
    "fsdp1-2-grad-op": Case(
        "fsdp1.py", 2, (*FSDP, "--strategy", "SHARD_GRAD_OP"), compared=False
    ),
    "fsdp1-4-hybrid": Case(
        "fsdp1.py", 4, (*FSDP, "--strategy", "HYBRID_SHARD", "--shard-ranks", "2"), compared=False
    ),
    "fsdp1-2-checkpoint": Case("fsdp1_checkpoint.py", 2),
    "fsdp2-2": Case("fsdp2.py", 2, FSDP),
    "fsdp2-4-padded": Case("fsdp2.py", 4, ODD, compared=False),
    "fsdp2-2-kept": Case("fsdp2.py", 2, (*FSDP, "--keep-parameters", "--bfloat16"), compared=False),
    "fsdp2-4-hsdp": Case("fsdp2.py", 4, (*FSDP, "--shard-ranks", "2"), compared=False),
    "fsdp2-2-offload": Case("fsdp2.py", 2, (*FSDP, "--cpu-offload"), compared=False),
    "mesh-4-fsdp": Case("mesh.py", 4, FSDP, compared=False),
    "mesh-4-sequence": Case("mesh.py", 4, (*FSDP, "--sequence"), compared=False),
    "mesh-4-ddp": Case("mesh.py", 4, (*FSDP, "--across", "ddp"), compared=False),
    "ddp-2": Case("ddp.py", 2),
    "dataloader-2": Case("dataloader.py", 2, forked=False),
    "point-to-point-4": Case("point_to_point.py", 4),
    "collectives-2": Case("collectives.py", 2),
    "objects-4": Case("objects.py", 4, compared=False),
    "split-groups-4": Case("split_groups.py", 4, compared=False),
    "shrunk-group-4": Case("shrunk_group.py", 4, compared=False),
    "cuda-graph-2": Case("cuda_graph.py", 2),
    "zero3-2": Case("zero3.py", 2),
}
if ALL:
    CASES["fsdp1-2-offload"] = Case("fsdp1.py", 2, (*FSDP, "--cpu-offload"))
    CASES["collectives-4"] = Case("collectives.py", 4)
    CASES["zero3-4"] = Case("zero3.py", 4)

COMPARED = [name for name, case in CASES.items() if case.compared or ALL]


@dataclasses.dataclass(frozen=True)
class Pair:
    """The same program without and with the preload; `plain` is None if the case is not compared."""

    plain: Run | None
    traced: Run


def make_pair(name: str, folder: pathlib.Path) -> Pair:
    case = CASES[name]
    command = without_agent(case.script, case.ranks, case.args)
    if not case.forked:
        command = list(command)  # a plain list is started
    plain = start(command, folder / "plain", preload=False) if name in COMPARED else None
    return Pair(plain, start(command, folder / "traced"))
