#!/usr/bin/env python3
"""Runs all benchmarks, or the named ones. Each figure has its floor or peer of the same run beside it.

Times are judged only if others left the machine alone meanwhile. The exit status is 0 if all judged
figures are within their limits. It is 1 if a limit is exceeded, or if a part could not be measured
on a quiet machine.
"""

import argparse
import json
import os
import pathlib
import sys

import causes
import ctl
import hot_path
import metrics
import opt_in
import paced
import pytorch
import scale
import tool
from busy import QUIET, Used
from figures import NotMeasured, table
from place import Place

PARTS = {
    "hot_path": hot_path,
    "paced": paced,
    "opt_in": opt_in,
    "metrics": metrics,
    "ctl": ctl,
    "tool": tool,
    "causes": causes,
    "scale": scale,
    "pytorch": pytorch,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--skip", action="append", default=[], choices=PARTS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    place = Place(args.build.resolve())

    load = os.getloadavg()[0]
    print(f"bench: {os.cpu_count()} processors, load average {load:.1f} at the start", flush=True)
    everything, failed = [], False
    for name in args.parts or PARTS:
        if name in args.skip:
            continue
        before = Used.now()
        figures, not_measured = [], None
        try:
            figures.extend(PARTS[name].figures(place))
        except NotMeasured as error:
            not_measured = error
        after = Used.now()
        others = after.others_since(before)
        busy = others > QUIET
        if not_measured:
            failed = failed or not busy
            print(f"\n{name}: NOT MEASURED: {not_measured}")
        print(f"\n{name}, {after.wall - before.wall:.0f} s", end="")
        print(f"; others kept {others:.1f} processors busy: times are not judged" if busy else "")
        print(table(figures, busy), flush=True)
        for figure in figures:
            if figure.ok(busy) is False:
                failed = True
        everything += [{"part": name} | figure.as_json(busy) for figure in figures]

    report = {"processors": os.cpu_count(), "load": load, "figures": everything}
    output = place.build / "bench.json"
    output.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nbench: {'FAILED' if failed else 'passed'}; all samples are in {output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
