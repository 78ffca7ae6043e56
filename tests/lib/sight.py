"""Makes a client's report on itself comparable between two runs, and separates what is the library's."""

import dataclasses
import re

from lib.launch import Run

OF_THE_RUN = re.compile(
    r"(LD_PRELOAD|TORCHELASTIC_RUN_ID|TORCHELASTIC_ERROR_FILE|MASTER_PORT)=|used: "
)


@dataclasses.dataclass(frozen=True)
class Sight:
    lines: list[str]  # as a program without a tracer would print them
    threads: list[str]  # the library's
    files: list[str]

    def difference(self, other: "Sight") -> list[str]:
        """Returns the lines that one has more often than the other."""
        mine, theirs = sorted(self.lines), sorted(other.lines)
        extra = [f"with: {line}" for line in _left_over(mine, theirs)]
        return extra + [f"without: {line}" for line in _left_over(theirs, mine)]


def _left_over(these: list[str], those: list[str]) -> list[str]:
    those = list(those)
    return [line for line in these if not (line in those and those.remove(line) is None)]


def of(run: Run) -> Sight:
    """Returns the output of `run`, without the numbers and folders that differ from run to run."""
    text = run.stdout.replace(str(run.traces.parent), "FOLDER")
    lines, threads, files = [], [], []
    for line in text.splitlines():
        if re.search(r"thread: tprof ", line):
            threads.append(line)
        elif re.search(r"file: .*(FOLDER/traces/|/\.tprof-.*\.ring)", line):
            files.append(line)
        elif not OF_THE_RUN.search(line):
            # Replaces process ids, ports, inodes and addresses.
            lines.append(re.sub(r"(0x[0-9a-f]+|[0-9a-f]*\d[0-9a-f]{3,}(?![0-9a-f]{8}))", "N", line))
    return Sight(lines, threads, files)
