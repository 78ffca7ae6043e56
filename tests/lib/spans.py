"""Intervals of time: [begin, end)."""

import bisect


def union(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns what at least one of the intervals covers, in order and apart."""
    joined: list[list[int]] = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return [(b, e) for b, e in joined]


def covered(begin: int, end: int, joined: list[tuple[int, int]]) -> int:
    """Returns how much of [begin, end) the intervals cover, which are in order and apart."""
    total = 0
    for b, e in joined[max(0, bisect.bisect(joined, (begin,)) - 1) :]:
        if b >= end:
            break
        total += max(0, min(end, e) - max(begin, b))
    return total
