"""Measures the bytes of a line in the trace of a simulated hour of FSDP2 training."""

import subprocess
import zlib
from collections.abc import Iterator

from figures import Figure, NotMeasured
from place import Place, dropped, last_lines

WHAT_IS_READ = 32 << 20  # the hour's last minutes, where numbers are long
GZIP_LEVEL = 6


def figures(place: Place) -> Iterator[Figure]:
    traces = place.empty_folder("traces")
    subprocess.run(
        [place.build / "bench_simulated_hour"],
        env=place.environment(
            traces, TPROF_QUOTA="0", RANK="3", WORLD_SIZE="8", LOCAL_RANK="3"
        ),
        check=True,
    )
    if dropped(traces):
        raise NotMeasured(f"lines are missing: {dropped(traces)}")
    (file,) = traces.glob("*.json")
    lines = [line + "\n" for line in last_lines(file, WHAT_IS_READ)[1:] if '"ph":"X"' in line]
    collectives = [len(line) for line in lines if '"name":"nccl' in line]
    copies = [len(line) for line in lines if '"name":"cuda' in line]
    gzipped = len(zlib.compress("".join(lines).encode(), GZIP_LEVEL))

    def average(sizes):
        return [sum(sizes) / len(sizes)]

    yield Figure("line of a collective", "bytes", average(collectives), limit=220)
    yield Figure("line of a copy", "bytes", average(copies), limit=170)
    yield Figure("line, gzip -6", "bytes", [gzipped / len(lines)], limit=25)
