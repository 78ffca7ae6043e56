"""Scores what `tprof report` says of synthetic jobs against their truth: by cause how many were
found, how wrong their costs are, and what was said that is not so.

A case with a cause counts where that costs enough to be said (COUNTS of a step), by the truth. A
finding's claim of a habit of the program, which may be wanted, is held against one more simulation
of the job without the habit.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import statistics
import subprocess

from generator.causes import LAYOUTS, ONLY_IN, case, steps_ns
from generator.habits import Case, measured
from generator.judgement import WITHOUT, ranks_of
from generator.rank_files import write

# The kinds of findings that are right about a case's cause.
KINDS = {
    "slow_gpu": ("slow_gpu",),
    "slow_sometimes": ("slow_input", "slow_cpu"),  # the host stalls behind the step's mark
    "slow_host": ("slow_gpu",),
    "slow_link": ("slow_link",),
    "slow_loader": ("slow_input",),
    "late_prefetch": ("late_prefetch",),
    "gathers_behind": ("gathers_behind",),
    "pageable_copies": ("blocking_h2d",),
    "item_each_layer": ("blocking_d2h",),
    "gather_twice": ("gathered_again",),
    "reduce_each_micro_batch": ("reduced_again",),
    "fp32": ("wide_dtype",),
}
COUNTS = 0.02  # of a step
# Where every communicator has the same ranks, no rank's link can be told from the network.
LINKS_COMPARE_IN = ("fsdp_tp", "hsdp")


@dataclasses.dataclass
class Judged:
    cause: str | None
    name: str
    counts: bool = False  # has to be found
    found: bool = False
    claimed_ns: float | None = None
    doubt_ns: float = 0  # as claimed, too
    true_ns: float | None = None
    false: list[str] = dataclasses.field(default_factory=list)


SIZES = ((16, 6), (32, 8), (8, 10))  # ranks and steps; seeds take turns


def jobs(seeds: int):
    """Yields (layout, cause, seed, ranks, steps) of all performance causes, and as many without one."""
    for seed in range(seeds):
        ranks, steps = SIZES[seed % len(SIZES)]
        for layout in LAYOUTS:
            yield layout, None, seed, ranks, steps
            for cause in KINDS:
                if layout in ONLY_IN.get(cause, LAYOUTS):
                    yield layout, cause, seed, ranks, steps


def judge(job, made: Case, findings: list[dict]) -> Judged:
    layout, cause, seed, ranks, steps = job
    truth = made.truth
    step = steps_ns(made.traces)
    out = Judged(cause, f"{layout} {cause} {seed}", true_ns=truth.cost_ns_per_step)
    if cause is not None and truth.cost_ns_per_step >= COUNTS * step:
        alike = cause == "slow_host" and len(truth.ranks) == len(made.traces)  # there is no other host
        out.counts = not alike and (cause != "slow_link" or layout in LINKS_COMPARE_IN)
    for f in findings:
        kind, claimed = f["kind"], (f.get("cost") or {}).get("ns_per_step")
        right = kind in KINDS.get(cause, ())
        if right and truth.ranks:
            right = set(truth.ranks) == set(f["ranks"]) or (
                kind == "slow_link" and set(truth.ranks) <= set(f["ranks"])
            )
        if right:
            out.found = True
            out.claimed_ns = (out.claimed_ns or 0) + claimed
            out.doubt_ns += f["cost"].get("doubt_ns", 0) / steps
            if truth.cost_ns_per_step < claimed / 3:
                out.false.append(f"{kind}: {claimed / 1e6:.2f} ms for {truth.cost_ns_per_step / 1e6:.2f}")
        elif kind in ("periodic_steps", "long_steps") and made.loop.checkpoint_every:
            pass  # in a short job there is one checkpoint
        elif kind in WITHOUT:
            gain = step - measured(made.loop.but(**WITHOUT[kind]), steps_ns)
            if gain < claimed / 3:
                out.false.append(f"{kind}: {claimed / 1e6:.2f} ms, and {gain / 1e6:.2f} are to be had")
        elif claimed is not None:
            out.false.append(f"{kind} of {f['ranks']}")
    return out


def table(judged: list[Judged]) -> list[str]:
    """Returns the lines of cause × cases × found × false × error of cost."""
    lines = [f"{'cause':24} {'cases':>6} {'count':>6} {'found':>6} {'false':>6}  error of cost, median and worst"]
    for cause in (None, *KINDS):
        mine = [j for j in judged if j.cause == cause]
        if not mine:
            continue
        counting = [j for j in mine if j.counts]
        found = [j for j in counting if j.found]
        errors = sorted(abs(j.claimed_ns / j.true_ns - 1) for j in found)
        error = f"{100 * statistics.median(errors):3.0f} % {100 * errors[-1]:3.0f} %" if errors else ""
        false = sum(bool(j.false) for j in mine)
        lines.append(f"{cause or 'none':24} {len(mine):6} {len(counting):6} {len(found):6} {false:6}  {error}")
    return lines


def said_by(tprof: pathlib.Path, folder: pathlib.Path) -> list[dict]:
    """Returns the findings of `tprof report` that have a cost."""
    out = subprocess.run([tprof, "report", "--json", folder], capture_output=True, text=True, check=False)
    assert out.returncode in (0, 1) and out.stderr == "", out.stderr
    found = [f for f in json.loads(out.stdout)["findings"] if f.get("cost")]
    return [f | {"ranks": ranks_of(f["ranks"])} for f in found]


def score(tprof: pathlib.Path, folder: pathlib.Path, wanted) -> list[Judged]:
    judged = []
    for job in wanted:
        layout, cause, seed, ranks, steps = job
        made = case(layout, ranks, cause, seed, steps)
        place = folder / f"{layout}-{cause}-{seed}"
        write(made, place, seed)
        judged.append(judge(job, made, said_by(tprof, place)))
        shutil.rmtree(place)
    return judged
