"""The contents of a merged trace as viewers see them: slices by lane, arrows by id."""

import collections
import dataclasses
import pathlib

from lib.rankfile import parsed

UNITS = ["B", "KiB", "MiB", "GiB", "TiB"]
COPIES = ("H2D", "D2H", "D2D", "H2H")


def ns(micros: float) -> int:
    return round(micros * 1000)


def name_of(function: str, bucket: str, size: int) -> str:
    """Returns what a call of so many bytes is called."""
    unit = 0
    while size >= 1024 ** (unit + 1):
        unit += 1
    number = str(size) if unit == 0 else f"{size / 1024**unit:.2f}".removesuffix(".00")
    return f"{bucket if bucket in COPIES else function.removeprefix('nccl')} {number} {UNITS[unit]}"


@dataclasses.dataclass(frozen=True)
class Merged:
    lines: list[dict]

    def of(self, category: str) -> list[dict]:
        return [line for line in self.lines if line.get("cat") == category]

    def calls(self) -> list[dict]:
        return [line for line in self.lines if line["name"] and "bytes" in line.get("args", {}) and line["ph"] == "X"
                and line["cat"] not in ("NVTX", "DEVICE", "COUNTER")]  # fmt: skip

    def lane(self, name: str) -> dict[int, list[dict]]:
        """Returns the slices of each rank's lane of that name."""
        lanes = {
            (line["pid"], line["tid"])
            for line in self.of("LANE")
            if line["name"] == "thread_name" and line["args"]["name"] == name
        }
        found = {pid: [] for pid, _ in lanes}
        for line in self.of("LANE"):
            if line["ph"] == "X" and (line["pid"], line["tid"]) in lanes:
                found[line["pid"]].append(line)
        return found

    def arrows(self, kind: str) -> dict[str, list[dict]]:
        """Returns the ends of each arrow, in the order of time, of equal ones in that of the file."""
        found = collections.defaultdict(list)
        for line in self.of("FLOW"):
            if line["name"] == kind:
                found[line["id"]].append(line)
        return {id: sorted(ends, key=lambda end: end["ts"]) for id, ends in found.items()}

    def slices(self) -> dict[tuple, list[tuple[int, int, dict]]]:
        found = collections.defaultdict(list)
        for line in self.lines:
            if line["ph"] == "X":
                begin = ns(line["ts"])
                found[line["pid"], line["tid"]].append((begin, begin + ns(line["dur"]), line))
        return found


def merged(file: pathlib.Path) -> Merged:
    return Merged(parsed(file))
