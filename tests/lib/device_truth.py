"""Computes device and exposed time by definition, from the stand-in's own record of what ran on its devices
(STANDIN_SCHEDULE, tests/standin/engine/schedule.h):

- The device time of a call is the time during which it ran on its device. It excludes the time for which its
  stream waited before, and for which NCCL held it back: calls of one communicator run one after the other.
- Its exposed time (as HTA defines it) is the part of that during which no computation ran on the same device:
  no kernel or graph of the program, and no copy on a stream that computes."""

import dataclasses
import pathlib

from lib.rankfile import RankFile
from lib.spans import covered, union


@dataclasses.dataclass(frozen=True)
class Work:
    stream: int
    what: str
    reached: int  # ns of CLOCK_MONOTONIC, like the next two
    began: int
    ended: int
    device: int
    calls: int
    in_graph: bool
    way: str  # a copy's direction: H2D, …

    @property
    def took(self) -> int:
        return self.ended - self.began


@dataclasses.dataclass(frozen=True)
class Call:
    """A collective, a group of them, or a copy, that the program made itself."""

    work: Work
    exposed: int  # ns
    # Time for which the host was away between an event right before the call and the call itself, and
    # between the call's end and an event right after it. A pair of events measures this as well.
    host_ns: int
    computes: bool  # a copy on a stream that computes: it is computation, and nobody asks what of it was exposed

    @property
    def names(self) -> list[str]:
        return self.work.what.split("+")

    @property
    def took(self) -> int:
        return self.work.took


def work_of(path: pathlib.Path) -> list[Work]:
    found = []
    for line in path.read_text().splitlines():
        stream, what, reached, began, ended, device, calls, in_graph, way = line.split()
        times = (int(reached), int(began), int(ended))
        found.append(Work(int(stream), what, *times, int(device), int(calls), in_graph == "1", way))
    return sorted(found, key=lambda work: (work.began, work.ended))


def ran_of(folder: pathlib.Path, file: RankFile) -> list[Work]:
    """Returns what ran for the process of a rank file, by the schedule in a folder of lib/timed.py's."""
    return work_of(folder / "schedule" / f"schedule-{file.header['pid']}")


def is_copy(work: Work) -> bool:
    return work.what.startswith("cu") and work.calls > 0 or work.what in ("copies", "memset")


def computation(ran: list[Work], device: int) -> list[tuple[int, int]]:
    """Returns when computation ran on a device, as sorted spans that do not touch."""
    here = [work for work in ran if work.device == device]
    computes = {work.stream for work in here if work.what in ("kernel", "graph") and not work.in_graph}
    return union(
        [
            (work.began, work.ended)
            for work in here
            if work.what in ("kernel", "graph") or (is_copy(work) and work.stream in computes)
        ]
    )


def calls_of(ran: list[Work]) -> list[Call]:
    """Returns the calls in order of their beginning, without those that a graph executes."""
    spans = {device: computation(ran, device) for device in {work.device for work in ran}}
    computing = {(work.device, work.stream) for work in ran if work.what in ("kernel", "graph") and not work.in_graph}
    away = host_away(ran)
    calls = []
    for work in ran:
        if work.calls == 0 or work.in_graph:
            continue
        hidden = covered(work.began, work.ended, spans[work.device])
        computes = is_copy(work) and (work.device, work.stream) in computing
        calls.append(Call(work, work.took - hidden, away[id(work)], computes))
    return calls


def host_away(ran: list[Work]) -> dict[int, int]:
    """Returns Call.host_ns by the id() of each work."""
    streams: dict[int, list[Work]] = {}
    for work in ran:
        streams.setdefault(work.stream, []).append(work)
    away = {}
    for works in streams.values():
        works.sort(key=lambda work: (work.ended, work.began))
        nobody = [None]
        for before, work, after in zip(nobody + works, works, works[1:] + nobody):
            away[id(work)] = 0
            if before and before.what == "marker":
                away[id(work)] += max(0, work.reached - before.ended)
            if after and after.what == "marker":
                away[id(work)] += max(0, after.reached - work.ended)
    return away
