"""The program's own NVTX ranges have a line each, on lanes of their own."""

import collections
import itertools
import signal

import pytest
from lib import nvtx
from lib.nvtx import event, lines, ranges
from lib.tool import tprof

LANE = 1 << 22
TEXTS = [
    "", "tprof_footer", "process_name", '"quoted\\"\n\x01', "not utf-8: \udcff\udcc3 end", "x" * 5000,
    "y" * 127 + "\u00e9 is cut", "z" * 126 + "\u00e9", "v" * 33,
]  # fmt: skip


def within(name, *inner):
    return [f"pushA\t{name}", *inner, "pop"]


NAMES = [f"step {i}" for i in range(10000)]
# The program does this; a copy begins a session.
SCENARIOS = {
    "nested": ["copy", *within("outer", *itertools.chain(*(within(f"inner {i}", "copy") for i in range(3))))],
    "every_kind": [
        "copy", event("push", "of an event"), "pop", "pushW", "pop", "pushR\tPython\tregistered", "pop\tPython",
        "markA\tmark", event("mark", "of an event"), "markW", "markR\tPython\tregistered",
        "startA\tstarted", "end", "startW", "end", event("start", "of an event"), "end", "startR\tPython\tregistered", "end",
        event("push", "", size=0, version=0), "pop",
    ],
    # The first is ended by another thread, the second twice; pushed ones are popped crosswise, and once too often.
    "overlapping": [
        "copy", "startA\tfirst", "startA\tsecond", "end\t0\tbeside", "end\t1", "end\t1",
        event("push", "below", "a"), event("push", "above", "b"), "pop\ta", "pop\tb", "pop\tb",
    ],
    "any_name": ["copy", *itertools.chain(*(within(text) for text in TEXTS))],
    "threads": ["copy", "threads\t4\t250"],
    "flood": ["copy", *itertools.chain(*(within(name, *["copy"] * (i % 100 == 0)) for i, name in enumerate(NAMES)))],
    "killed": ["copy", "pushA\tstep 1", *within("forward"), "startA\tloading", "startA\tloaded", "end", "pushA\tlayer 3", "kill"],
    "forked": [
        "copy", "pushA\tparent", "startA\tparent's", "fork\t6", *within("child"), "pop", "end", *within("child too"), "end", "pop",
    ],
    "before": [
        *within("over before"), "pushA\touter", event("push", "popped from under another"), event("push", "inner", "early"),
        "pop", "copy", "pop\tearly", *within("next"), "pop",
    ],
    "no_calls": 100 * within("alone", "markA\talone", "startA\talone", "end"),
    # There is room for 32 in each other, and 64 started.
    "too_many": ["copy", *40 * ["pushA\tdeep"], *40 * ["pop"], *70 * ["startA\tstarted"], *(f"end\t{n}" for n in range(70))],
    "new_strings": [
        "copy", "register\tmany\t30000", *(f"register\tdomain {i}\t0" for i in range(100)),
        *(word for name in ("name 0", "one too many") for word in (f"pushR\tmany\t{name}", "pop\tmany")),
        event("push", "in no domain", "one too many"), "pop\tone too many",
    ],
}  # fmt: skip


def run(folder, scenario, **variables):
    return nvtx.run(folder, SCENARIOS[scenario], **variables)


def named(found, phase="X"):
    """Returns how many there are of each name."""
    return collections.Counter(line["name"] for line in found if line["ph"] == phase)


def dropped(folder):
    footers = [line["args"] for line in lines(folder) if line["name"] == "tprof_footer"]
    return footers[0].get("ranges_dropped", {})


def inside(inner, outer):
    return (
        outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    )  # fmt: skip


def test_pushed_ranges_are_lines_on_a_lane_beside_their_thread(tmp_path):
    run(tmp_path, "nested")
    everything = lines(tmp_path)
    found = {line["name"]: line for line in everything if line.get("cat") == "NVTX"}
    assert set(found) == {"outer", "inner 0", "inner 1", "inner 2"}
    assert {line["ph"] for line in found.values()} == {"X"}
    assert all(inside(line, found["outer"]) for line in found.values())
    copies = [line for line in everything if line.get("cat") == "H2D"]
    assert [sum(inside(copy, found[f"inner {i}"]) for copy in copies) for i in range(3)] == [1] * 3
    lanes = {line["tid"]: line["args"]["name"] for line in everything if line["name"] == "thread_name"}  # fmt: skip
    thread = copies[0]["tid"]
    assert {line["tid"] for line in found.values()} == {LANE + thread}
    assert lanes == {thread: "nvtx_script", LANE + thread: "NVTX nvtx_script"}


def test_every_kind_of_range_and_mark_has_its_line(tmp_path):
    run(tmp_path, "every_kind")
    found = ranges(tmp_path)
    event, python = ("of an event", None), ("registered", "Python")

    def of(phase):
        return [(x["name"], x["args"].get("domain")) for x in found if x["ph"] == phase]

    nameless = ("(no name)", None)  # wide characters, or no name
    assert of("X") == [event, nameless, python, nameless]
    assert of("i") == [("mark", None), event, nameless, python]
    assert of("b") == of("e") == [("started", None), nameless, event, python]


def test_ranges_that_overlap_are_pairs_of_lines(tmp_path):
    """Two started ranges overlap, one of which another thread ends; so do two pushed ones, popped crosswise."""
    run(tmp_path, "overlapping")
    found = ranges(tmp_path)
    pairs = {}
    for line in found:
        if "id2" in line:
            pairs.setdefault((line["name"], line["id2"]["local"]), []).append(line)
    assert {name for name, _ in pairs} == {"first", "second", "below"} and len(pairs) == 3
    for begin, end in pairs.values():
        assert (begin["ph"], end["ph"]) == ("b", "e") and begin["ts"] < end["ts"]
    assert named(found) == {"above": 1}
    assert len({line["tid"] for line in found}) == 1  # the lane of the thread that began them


def test_any_name_arrives_as_valid_text_cut_between_characters(tmp_path):
    run(tmp_path, "any_name")
    assert [line["name"] for line in ranges(tmp_path)] == [
        "(no name)", "tprof_footer", "process_name", '"quoted\\"\n\x01',
        "not utf-8: \ufffd\ufffd end", "x" * 128, "y" * 127, "z" * 126 + "\u00e9", "v" * 33,
    ]  # fmt: skip


def test_ranges_of_many_threads_are_there_to_the_last(tmp_path):
    run(tmp_path, "threads")
    found = ranges(tmp_path)
    assert named(found) == {f"thread {t} step {i}": 1 for t in range(4) for i in range(250)}
    lanes = collections.defaultdict(set)
    for line in found:
        lanes[line["name"].split()[1]].add(line["tid"])
    assert sorted(map(len, lanes.values())) == [1, 1, 1, 1]
    assert len(set.union(*lanes.values())) == 4


@pytest.mark.parametrize("settings", [{}, {"TPROF_RING": "1024"}, {"TPROF_QUOTA": "40KiB"}])
def test_ranges_without_a_line_are_counted_and_cost_no_call_its_line(tmp_path, settings):
    """The program makes thousands of names, each new."""
    run(tmp_path, "flood", **settings)
    everything = lines(tmp_path)
    found = named([line for line in everything if line.get("cat") == "NVTX"])
    assert set(found) <= set(NAMES) and set(found.values()) == {1}
    lost = dropped(tmp_path)
    assert set(lost) <= {"quota", "ring"}
    assert len(found) + sum(lost.values()) == len(NAMES)
    footer = everything[-1]["args"]
    assert sum(line.get("cat") == "H2D" for line in everything) == 101 and footer["dropped"] == {}
    if "TPROF_QUOTA" in settings:
        assert lost["quota"] > 0
        of_ranges = [x for x in (tmp_path / "merged.json").read_text().splitlines() if "NVTX" in x]
        assert 9000 < sum(map(len, of_ranges)) < 10240 + 200  # a quarter, and the lane's name


def test_a_killed_process_shows_what_it_was_within(tmp_path):
    assert run(tmp_path, "killed").code == -signal.SIGKILL
    found = ranges(tmp_path)
    assert [x["name"] for x in found if x["ph"] == "B"] == ["step 1", "layer 3"]
    assert named(found) == {"forward": 1}
    begun, ended = named(found, "b"), named(found, "e")
    assert (begun, ended) == ({"loaded": 1, "loading": 1}, {"loaded": 1})
    unfinished = [x["name"] for x in found if x["args"].get("unfinished")]
    assert unfinished == ["step 1", "layer 3", "loading"]


def test_a_forked_child_has_ranges_of_its_own(tmp_path):
    run(tmp_path, "forked")
    of_process = collections.defaultdict(set)
    for line in ranges(tmp_path):
        of_process[line["pid"]].add(line["name"])
    assert sorted(map(sorted, of_process.values())) == [
        ["child", "child too"], ["parent", "parent's"],
    ]  # fmt: skip


def test_what_is_open_when_the_session_begins_has_no_line(tmp_path):
    run(tmp_path, "before")
    found = ranges(tmp_path)
    assert [(x["ph"], x["name"], x["args"]) for x in found] == [("X", "next", {})]


def test_ranges_begin_no_session(tmp_path):
    run(tmp_path, "no_calls")
    assert not (tmp_path / "traces").exists()


def test_more_ranges_at_a_time_than_there_is_room_for_are_counted(tmp_path):
    run(tmp_path, "too_many")
    found = ranges(tmp_path)
    assert (named(found), named(found, "b")) == ({"deep": 32}, {"started": 64})
    assert dropped(tmp_path) == {"open": 40 - 32 + 70 - 64}
    note = "14 NVTX ranges of rank 0 have no line in the timeline (by reason: 14 open)"
    assert note in tprof("check", tmp_path / "traces").stdout


def test_names_and_domains_that_come_without_end_use_bounded_room(tmp_path):
    run(tmp_path, "new_strings")
    assert [(x["name"], x["args"]["domain"]) for x in ranges(tmp_path)] == [
        ("name 0", "many"), ("(no name)", "many"), ("in no domain", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [{"TPROF_NVTX": "nccl"}, {"TPROF_NVTX": "off"}, {"TPROF_EVENTS": "off"}, {"TPROF_RANKS": "1"}],
)
def test_settings_leave_ranges_out(tmp_path, settings):
    run(tmp_path, "nested", **settings)
    assert ranges(tmp_path) == [] and dropped(tmp_path) == {}


def test_a_users_own_tool_keeps_its_place(tmp_path):
    run(tmp_path, "nested", NVTX_INJECTION64_PATH="/opt/nsight/libToolsInjection64.so")
    assert ranges(tmp_path) == []
