"""Reads the report of `tprof summary --by layer`."""

import collections

from lib.tool import summary_of

OPS = ("forward", "backward", "scattered", "reduced")


def layers_of(folder, *more):
    report = summary_of(folder, "--by", "layer", *more)
    assert_adds_up(report)
    return report["layers"]


def assert_adds_up(report):
    """Asserts that the rows and what is left over make up exactly all calls of the three buckets."""
    buckets = {"forward": "ALLGATHER", "backward": "ALLGATHER", "scattered": "RESHARDING", "reduced": "ALLREDUCE"}
    for figure in ("calls", "count", "elements", "bytes", "host_ns"):
        found = collections.Counter({row["bucket"]: 0 for row in report["layers"]["left"]})
        for row in report["layers"]["left"]:
            found[row["bucket"]] += row[figure]
        for group in report["layers"]["groups"]:
            for row in group["rows"]:
                for op, bucket in buckets.items():
                    found[bucket] += row[op][figure] if row[op] else 0
        expected = {b: report["buckets"][b][figure] for b in set(buckets.values())}
        assert dict(found) == {b: n for b, n in expected.items() if n or b in found}, figure


def rows_of(layers, kind="unit"):
    """Returns (count, calls by operation) for the rows of the only group of ranks."""
    (group,) = layers["groups"]
    rows = [row for row in group["rows"] if row["kind"] == kind]
    assert [row["place"] for row in rows] == list(range(1, len(rows) + 1))
    return [(row["count"], {op: row[op]["calls"] if row[op] else 0 for op in OPS}) for row in rows]


def left_of(layers):
    return {(row["why"], row["bucket"]): row["calls"] for row in layers["left"]}
