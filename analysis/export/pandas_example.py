#!/usr/bin/env python3
"""Durations of a run by name, with pandas; needs pandas, and matplotlib for a picture.

    tprof export traces --sqlite run.db
    pandas_example.py run.db ncclAllGather --skip 5 --picture gathers.png
"""

import argparse
import contextlib
import sqlite3

import pandas

# The name is that of a function, of a bucket, or of NVTX ranges.
QUERY = """
SELECT rank, ts_ns, {time} AS ns FROM calls
WHERE (function = :name OR bucket = :name) AND outcome = 'executed' AND {time} IS NOT NULL
UNION ALL SELECT rank, ts_ns, ns FROM ranges WHERE name = :name AND ns IS NOT NULL
ORDER BY rank, ts_ns
"""


def durations(file, name, device=False):
    """A row each, those of a rank in the order of time: rank, ts_ns, ns."""
    query = QUERY.format(time="device_ns" if device else "host_ns")
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        return pandas.read_sql_query(query, db, params={"name": name})


def part(rows, which):
    """Takes those rows of each rank, such as slice(5, None): all but its first 5."""
    return rows.groupby("rank", group_keys=False).nth[which]


def statistics(rows):
    """Sums up all ranks together; std is of all of them, not of a sample."""
    ns = rows["ns"]
    figures = {
        "count": len(ns), "rank_count": rows["rank"].nunique(), "sum": ns.sum(), "mean": ns.mean(),
        "std": ns.std(ddof=0), "min": ns.min(), "max": ns.max(),
    }  # fmt: skip
    return pandas.Series(figures, dtype=object)  # whole numbers stay so


def by_rank(rows):
    return rows.groupby("rank")["ns"].agg(["count", "sum", "mean", "min", "max"])


def histogram(rows, title, picture, bins=20):
    import matplotlib

    matplotlib.use("agg")  # no display
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    ranks = {f"rank {rank}": ns / 1e3 for rank, ns in rows.groupby("rank")["ns"]}
    counts, edges, _ = axes.hist(list(ranks.values()), bins=bins, stacked=True, label=list(ranks))
    axes.set(title=title, xlabel="µs", ylabel="calls")
    axes.legend()
    figure.savefig(picture)
    pyplot.close(figure)
    return counts, edges


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file")
    parser.add_argument("name", help="of a function, a bucket or an NVTX range")
    parser.add_argument("--skip", type=int, default=0, help="so many of each rank, the first ones")
    parser.add_argument("--device", action="store_true", help="the device's times")
    parser.add_argument("--picture", help="a histogram, to this file")
    given = parser.parse_args()
    rows = part(durations(given.file, given.name, given.device), slice(given.skip, None))
    if rows.empty:
        parser.error(f"nothing is called {given.name}")
    print(statistics(rows).to_string(float_format="{:.1f}".format))
    print(by_rank(rows).to_string(float_format="{:.1f}".format))
    if given.picture:
        histogram(rows, given.name, given.picture)


if __name__ == "__main__":
    main()
