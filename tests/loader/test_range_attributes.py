"""Category, colour and payload of the program's NVTX ranges are in its lines and tables as it gave them."""

import collections
import ctypes
import itertools
import math
import signal

import pytest
from lib.nvtx import event, ranges, run
from lib.tool import SUMMARY_SCHEMA, told, tprof

# nvtxPayloadType_t: 64 bits without and with a sign, double, 32 bits, float; and others.
NONE, UINT64, INT64, DOUBLE, UINT32, INT32, FLOAT, NEWER = range(8)
REAL = (DOUBLE, FLOAT)
VALUES = [
    (NONE, "0"), (UINT64, "0"), (UINT64, str(2**64 - 1)), (INT64, str(-(2**63))), (DOUBLE, "0.1"), (DOUBLE, "-1e300"),
    (DOUBLE, "12"), (DOUBLE, "4.9406564584124654e-324"), (UINT32, str(2**32 - 1)), (INT32, str(-(2**31))),
    (FLOAT, "2.5"), (FLOAT, "0.1"), (DOUBLE, "nan"), (DOUBLE, "-inf"), (NEWER, "0"),
]  # fmt: skip


def as_the_program_has_it(kind, value):
    """Returns the payload, or None if there is none. NaN stands for all that is no number of JSON's."""
    if kind in (NONE, NEWER):
        return None
    if kind not in REAL:
        return int(value)
    number = ctypes.c_float(float(value)).value if kind == FLOAT else float(value)
    return number if math.isfinite(number) else math.nan


def attributes(line):
    return {key: value for key, value in line["args"].items() if key in ("category", "color", "payload")}


def same(found, made):
    """Returns whether all is equal to the last bit; a payload that is no number is null."""
    made = {key: None if value != value else value for key, value in made.items()}
    return found == made and all(type(found[key]) is not bool for key in found)


def by_range(folder):
    found = told("summary", folder / "traces", "--by", "range")[1]
    assert [error.message[:300] for error in SUMMARY_SCHEMA.iter_errors(found)] == []
    return found["ranges"]


# Ranges are made in every way and with every payload. Their names end on both sides of the ends of records,
# with attributes (16 bytes) and without.
LENGTHS = itertools.cycle([6, 15, 16, 17, 31, 32, 33, 48, 49, 112, 113, 127, 128])
CATEGORIES = itertools.cycle([0, 1, 2, 0xFFFFFFFF, 1, 0, 0xFFFFFFFF])
COLORS = itertools.cycle(["", "ff00ff00", "0", "80abcdef"])
NAMED = {("", 1): "weights", ("", 0xFFFFFFFF): "another", ("cu dom", 1): "other"}
WAYS = itertools.product(["push", "mark", "start"], ["", "cu dom"], VALUES)
MADE = [
    ("".join(itertools.islice(itertools.cycle(f"{n:04d} "), length)), what, domain, category, color, payload)
    for n, ((what, domain, payload), length, category, color) in enumerate(zip(WAYS, LENGTHS, CATEGORIES, COLORS))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attributes") / "run"
    script = [
        f"category\t{domain}\t{number:x}\t{name}"
        for (domain, number), name in NAMED.items()
    ]
    script.append("category\t\t1\ttoo late")
    end = {"push": "pop\t{}", "start": "end"}
    for name, what, domain, category, color, payload in MADE:
        script.append(event(what, name, domain, category, color, payload))
        if what in end:
            script.append(end[what].format(domain))
    run(folder, ["copy", *script])
    return folder


def expected(domain, category, color, payload):
    made = {}
    if category != 0:
        made["category"] = NAMED.get((domain, category), category)
    if color:
        made["color"] = "#" + color.zfill(8)[2:]
    value = as_the_program_has_it(*payload)
    return made if value is None else made | {"payload": value}


def test_every_range_has_what_its_event_said_to_the_last_bit(folder):
    phases = {"push": "X", "mark": "i", "start": "be"}
    found = collections.defaultdict(list)
    for line in ranges(folder):
        found[line["name"]].append(line)
    assert len(MADE) == len(found) == 90
    for name, what, domain, *rest in MADE:
        assert "".join(line["ph"] for line in found[name]) == phases[what]
        for line in found[name]:
            assert line["args"].get("domain", "") == domain
            assert same(attributes(line), expected(domain, *rest)), (line, rest)


def test_a_killed_process_keeps_what_its_open_ranges_had(tmp_path):
    """This holds also where the file was closed by `tprof recover`."""
    first = {"category": 1, "color": "ff102030", "payload": (INT64, "-7")}
    second = {"category": 2, "payload": (DOUBLE, "0.25")}
    long = "a name that takes more than one record of 32 bytes"
    done = run(tmp_path, [
        "copy", "category\t\t1\tdata", "category\tmine\t2\tother",
        event("push", "ended", **first), "pop\t",
        event("push", "outer", **first), event("push", "plain"), event("push", long, "mine", **second),
        event("start", "loading", "mine", **second), "kill",
    ])  # fmt: skip
    assert done.code == -signal.SIGKILL
    of_first = {"category": "data", "color": "#102030", "payload": -7}
    of_second = {"category": "other", "payload": 0.25}
    made = [
        ("X", "ended", of_first), ("B", "outer", of_first), ("B", "plain", {}), ("B", long, of_second),
        ("b", "loading", of_second),
    ]  # fmt: skip
    assert [(x["ph"], x["name"], attributes(x)) for x in ranges(tmp_path)] == made
    rows = by_range(tmp_path)
    assert tprof("recover", tmp_path / "traces").returncode == 0
    assert [(x["ph"], x["name"], attributes(x)) for x in ranges(tmp_path)] == made
    assert by_range(tmp_path) == rows
    open_ones = {row["name"]: (row["open"], row["category"], row["payload"]["sum"]) for row in rows if row["payload"]}
    assert open_ones == {
        "ended": (0, "data", -7), "outer": (1, "data", -7), long: (1, "other", 0.25), "loading": (1, "other", 0.25),
    }  # fmt: skip


def test_a_forked_child_has_the_names_of_categories_from_before(tmp_path):
    run(tmp_path, [
        "copy", "category\t\t1\tdata", event("push", "before", category=1), "pop\t", "fork",
        "category\t\t2\tlater", event("push", "behind", category=1, payload=(UINT32, "5")), "pop\t",
        event("mark", "later", category=2),
    ])  # fmt: skip
    of_process = collections.defaultdict(list)
    for line in ranges(tmp_path):
        of_process[line["pid"]].append((line["name"], attributes(line)))
    behind = [("behind", {"category": "data", "payload": 5}), ("later", {"category": "later"})]
    parent = [("before", {"category": "data"}), *behind]
    assert sorted(of_process.values(), key=len) == [behind, parent]
    (row,) = (row for row in by_range(tmp_path) if row["name"] == "behind")
    assert row["payload"] == {"count": 2, "sum": 10, "mean": 5, "min": 5, "max": 5}


def test_events_of_other_sizes_and_versions(tmp_path):
    """Only the message is taken of an event that says that it ends before its payload does."""
    given = {"category": 1, "color": "ff102030", "payload": (UINT64, "3")}
    script = [event("mark", f"{size}", **given, size=size) for size in (0, 16, 31, 32, 48, 96)]
    script += [event("mark", f"version {version}", **given, version=version) for version in (1, 2, 3, 4)]
    run(tmp_path, ["copy", *script])
    taken = {"category": 1, "color": "#102030", "payload": 3}
    found = {line["name"]: attributes(line) for line in ranges(tmp_path)}
    assert found == (
        {"0": {}, "16": {}, "31": {}, "32": taken, "48": taken, "96": taken}
        | {f"version {version}": taken for version in (1, 2, 3, 4)}
    )  # fmt: skip


def test_names_of_categories_are_bounded_and_the_first_one_stays(tmp_path):
    script = [f"category\t\t{n:x}\tname {n} {'long' * 30}" for n in range(1, 301)]
    script += ["category\t\t3\tanother", "category\tmine\t3\tof a domain behind the 256th"]
    script += [event("mark", "m", category=n) for n in (3, 256, 257)] + [event("mark", "m", "mine", category=3)]
    run(tmp_path, ["copy", *script])
    names = [attributes(line)["category"] for line in ranges(tmp_path)]
    assert names == [f"name {n} {'long' * 30}"[:58] for n in (3, 256)] + [257, 3]
