"""Compares what programs tell through tprof.h (tests/user/tells.cpp) with their own count of it."""

import bisect
import collections
import json
import random
import string
import subprocess

import pytest
from lib import rankfile
from lib.build import BUILD, REPO
from lib.contract import not_as_the_contract_says
from lib.launch import start
from lib.rankfile import lines_of
from lib.tool import merged, summary_of, tprof

PROGRAMS = ["user_tells", "user_tells_fixed"]
NOT_OPEN, BAD_ARGUMENT = -1, -2


def tells(folder, *words, program="user_tells", code=0, **variables):
    ours = {"RANK": "3", "WORLD_SIZE": "4"}
    done = start([BUILD / program, *words], folder, libraries=None, **(ours | variables))
    assert (done.code, done.stderr) == (code, ""), done
    return done


def says(folder, *scripts, **options):
    """Runs a thread for each list of lines, and returns the results of each."""
    folder.mkdir(exist_ok=True)
    files = [folder / f"script{n}" for n in range(len(scripts))]
    for file, script in zip(files, scripts):
        file.write_text("".join(line + "\n" for line in script))
    return [list(map(int, line.split())) for line in tells(folder, "script", *files, **options).stdout.splitlines()]


def lines(folder):
    found = merged(folder / "traces", folder / "merged.json")
    assert not_as_the_contract_says(lines_of(folder / "merged.json")) == []
    return found


def scopes(found):
    return [line for line in found if line.get("cat") == "NVTX" and line["args"].get("domain") == "tprof"]


def ranges(folder):
    return {r["name"]: r for r in summary_of(folder / "traces", "--by", "range")["ranges"]}


COUNTERS = "\t".join(f"{key}=0" for key in "abcdefghi")
# A line that cannot be, and its result.
WRONG = [
    ("pop\tnothing", NOT_OPEN), ("push\tNULL", BAD_ARGUMENT), ("push", BAD_ARGUMENT), ("instant", BAD_ARGUMENT),
    ("instant\tNULL", BAD_ARGUMENT), ("phase\tsleeping", BAD_ARGUMENT), ("step\t-3", BAD_ARGUMENT),
    (f"counter\tmany\t{COUNTERS}", BAD_ARGUMENT), ("counter\tnone", BAD_ARGUMENT), ("counter\ttwice\ta=0\ta=0", BAD_ARGUMENT),
    (f"counter\t{126 * 'n'}\ta=0", BAD_ARGUMENT), ("end\t12345", NOT_OPEN), ("pop\tthere", 0), ("pop\tNULL", NOT_OPEN), ("end\t0", 0),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_the_preload_every_function_does_nothing(program, tmp_path):
    done = tells(tmp_path, "once", program=program, preload=False)
    assert done.stdout == "sum 0 enabled 0 rank -1 totals 0\n"
    assert not done.traces.exists()
    assert says(tmp_path, [line for line, _ in WRONG], program=program, preload=False) == [[0] * 15]


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_function_once_is_in_the_trace(program, tmp_path):
    assert tells(tmp_path, "once", program=program).stdout == "sum 0 enabled 1 rank 3 totals 1\n"
    found = lines(tmp_path)
    outer = {"domain": "tprof", "category": "io,checkpoint", "elements": 10, "bytes": 40, "error": "Bad"}
    told = [(line["ph"], line["name"], line["args"]) for line in scopes(found)]
    ours = {"domain": "tprof"}
    assert sorted(told, key=str) == sorted(
        [
            ("X", "outer", outer), ("X", "inner", ours), ("b", "moves", ours), ("e", "moves", ours), ("i", "now", ours),
            ("b", "step 7", ours), ("e", "step 7", ours), ("X", "forward", ours | {"category": "phase"}),
        ],
        key=str,
    )  # fmt: skip
    counters = [line for line in found if line.get("cat") == "COUNTER"]
    assert [(line["ph"], line["name"], line["args"]) for line in counters] == [("C", "queue", {"full": 3, "empty": 0.5})]
    (step,) = [line["args"] for line in found if line["name"] == "tprof_step"]
    assert step["step"] == 7


def test_what_can_not_be_is_the_callers_to_know(tmp_path):
    (results,) = says(tmp_path, ["push\tthere", *(line for line, _ in WRONG)])
    assert results == [0, *(result for _, result in WRONG)]
    assert [line["name"] for line in scopes(lines(tmp_path))] == ["there"]


class Speaker:
    """A thread that speaks at random, with fewer scopes open than there is room for: nothing may be dropped."""

    MOST = {"push": 16, "start": 4}

    def __init__(self, seed, turns):
        self.random, self.lines, self.results = random.Random(seed), [], []
        self.scopes = collections.defaultdict(lambda: [0, 0, 0, 0])  # count, elements, bytes, errors
        self.counters = collections.defaultdict(list)
        self.open = {"push": [], "start": []}  # (K, name, elements, bytes)
        for turn in range(turns):
            self.random.choice([self.begin, self.begin, self.begin, self.end, self.end, self.end, self.instant, self.counter])()
            if turn % 200 == 199:
                self.say("flush")  # the ring never fills up
        while any(self.open.values()):
            self.end()

    def say(self, *words, result=0):
        self.lines.append("\t".join(map(str, words)))
        self.results.append(result)

    def amounts(self):
        return [self.random.randrange(1000) * self.random.randrange(2), self.random.randrange(1 << 44) * self.random.randrange(2)]

    def tell(self, name, *figures):
        self.scopes[name] = [a + b for a, b in zip(self.scopes[name], figures, strict=True)]

    def begin(self):
        how = self.random.choice(["push", "push", "start"])
        if len(self.open[how]) < self.MOST[how]:
            name, key = f"{'scope' if how == 'push' else 'async'} {self.random.randrange(5)}", len(self.lines)
            amounts, category = self.amounts(), "NULL"
            if self.random.random() < 1 / 3:
                category = "low" if name[-1] < "3" else "high,odd"
            self.say(how, *([key] if how == "start" else []), name, *amounts, category)
            self.open[how].append((key, name, *amounts))

    def end(self):
        if not (ways := [how for how, of in self.open.items() if of]):
            return
        how = self.random.choice(ways)
        of, amounts, error = self.open[how], self.amounts(), self.random.random() < 0.25
        at, by_name = (len(of) - 1, "NULL") if how == "push" else (self.random.randrange(len(of)), None)
        if how == "push" and self.random.random() < 0.25:  # the innermost one of a name
            by_name = self.random.choice(of)[1]
            at = max(i for i, (_, name, *_) in enumerate(of) if name == by_name)
        key, name, *begun = of.pop(at)
        which = ("pop", by_name) if how == "push" else ("end", key)
        self.say(*which, *amounts, "std::runtime_error" if error else "NULL")
        if how == "start" and self.random.random() < 0.25:
            self.say("end", key, result=NOT_OPEN)
        self.tell(name, 1, *map(sum, zip(begun, amounts)), error)

    def instant(self):
        self.say("instant", "instant")
        self.tell("instant", 1, 0, 0, False)

    def counter(self):
        values = [self.random.choice([self.random.randrange(1000), self.random.random() * 2**61]) for _ in range(self.random.randrange(1, 9))]
        self.say("counter", f"counter {len(values)}", *(f"{key}={value!r}" for key, value in zip("abcdefgh", values)))
        self.counters[f"counter {len(values)}"] += values


@pytest.mark.parametrize(("program", "seed"), [("user_tells", 1), ("user_tells", 2), ("user_tells_fixed", 3)])
def test_random_scopes_of_many_threads_are_all_there(program, seed, tmp_path):
    speakers = [Speaker(f"{seed} {thread}", 600) for thread in range(4)]
    assert says(tmp_path, *(s.lines for s in speakers), program=program) == [s.results for s in speakers]
    truth = collections.defaultdict(lambda: [0, 0, 0, 0])
    counters = collections.defaultdict(list)
    for speaker in speakers:
        for name, figures in speaker.scopes.items():
            truth[name] = [a + b for a, b in zip(truth[name], figures, strict=True)]
        for name, values in speaker.counters.items():
            counters[name] += values
    found = lines(tmp_path)
    told = collections.defaultdict(lambda: [0, 0, 0, 0])
    for line in scopes(found):
        if line["ph"] == "b":  # its end has the same
            continue
        args = line["args"]
        figures = [1, args.get("elements", 0), args.get("bytes", 0), "error" in args]
        told[line["name"]] = [a + b for a, b in zip(told[line["name"]], figures, strict=True)]
    assert dict(told) == truth
    summed = collections.defaultdict(lambda: [0, 0, 0, 0])
    for r in summary_of(tmp_path / "traces", "--by", "range")["ranges"]:  # a row for each category
        figures = [r["count"], r["elements"], r["bytes"], r["errors"]]
        summed[r["name"]] = [a + b for a, b in zip(summed[r["name"]], figures, strict=True)]
    assert dict(summed) == truth
    categories = {line["name"]: line["args"].get("category") for line in scopes(found) if "category" in line["args"]}
    assert {name: "low" if name[-1] < "3" else "high,odd" for name in categories} == categories != {}
    counted = collections.defaultdict(list)
    for line in found:
        if line.get("cat") == "COUNTER":
            assert list(line["args"]) == list("abcdefgh")[: len(line["args"])]
            counted[line["name"]] += line["args"].values()
    assert {name: sorted(values) for name, values in counted.items()} == {
        name: sorted(values) for name, values in counters.items()
    }


def test_scopes_are_told_apart_by_the_whole_name_and_the_category(tmp_path):
    names = [f"name{letter}" for letter in string.ascii_lowercase]
    says(tmp_path, [line for name in names for line in (f"push\t{name}", "pop\tNULL", f"push\t{name}\t0\t0\tone", "pop\tNULL")])
    told = summary_of(tmp_path / "traces", "--by", "range")["ranges"]
    assert sorted((r["name"], r["category"] or "", r["count"]) for r in told) == [
        (name, category, 1) for name in names for category in ("", "one")
    ]


def test_scopes_deeper_than_there_is_room_for_are_counted_as_dropped(tmp_path):
    assert says(tmp_path, 40 * ["push\tdeep"] + 41 * ["pop\tdeep"]) == [80 * [0] + [NOT_OPEN]]
    found = lines(tmp_path)
    assert len(scopes(found)) == 32
    (footer,) = [line["args"] for line in found if line["name"] == "tprof_footer"]
    assert footer["ranges_dropped"] == {"open": 8}


@pytest.mark.parametrize("settings", [{"TPROF_QUOTA": "1M"}, {"TPROF_EVENTS": "off"}, {"TPROF_QUOTA": "0"}])
def test_sums_and_histogram_are_exact_whatever_has_a_line(settings, tmp_path):
    n = 300_000
    durations = [1 + i * 7919 % 1_000_003 for i in range(n)]  # as tells.cpp says them
    elements = sum(i % 3 for i in range(n))
    (told,) = json.loads(tells(tmp_path, "many", n, **settings).stdout)["scopes"]
    assert (told["scope"], told["count"], told["total_ns"], told["elements"]) == ("many", n, sum(durations), elements)
    found = ranges(tmp_path)["many"]
    figures = (found["count"], found["total_ns"], found["max_ns"], found["mean_ns"], found["elements"])
    assert figures == (n, sum(durations), max(durations), round(sum(durations) / n), elements)
    without = found["without_line"]
    assert without > 0 or settings == {"TPROF_QUOTA": "0"}
    if without:
        assert found["std_ns"] is None and found["min_ns"] is None  # nobody knows them
    hist = summary_of(tmp_path / "traces", "--hist", "many", "--bins", "40")["hist"]
    assert (hist["count"], hist["kind"]) == (n, "range")
    edges = hist["edges_ns"]
    truth = collections.Counter(min(bisect.bisect_right(edges, ns), len(edges) - 1) - 1 for ns in durations)
    assert hist["bins"] == [truth[i] for i in range(len(edges) - 1)]
    text = tprof("summary", tmp_path / "traces", "--by", "range").stdout
    assert ("std and min are unknown" in text) == (without > 0)


def test_a_killed_program_has_told_all_that_it_told(tmp_path):
    says(tmp_path, [*500 * ["push\tdone", "pop\tNULL"], "push\topen", "step\t3", "kill"], code=-9)
    found = ranges(tmp_path)
    assert (found["done"]["count"], found["done"]["open"]) == (500, 0)
    assert (found["open"]["count"], found["open"]["open"]) == (0, 1)
    assert found["step 3"]["open"] == 1


def test_a_child_does_not_end_what_its_parent_began(tmp_path):
    child = ["end\t1", "pop\tNULL", "push\tchild's", "pop\tNULL", "pop\tNULL"]  # the first two are not its own
    script = ["push\tparent's", "start\t1\tparent's own", f"fork\t{len(child)}", *child, "end\t1", "pop\tNULL"]
    assert says(tmp_path, script) == [[0, 0, 0, 0, 0, 0, NOT_OPEN], [0, 0, 0, 0]]
    told = {}
    for file in rankfile.read_folder(tmp_path / "traces"):
        pushed = [line["name"] for line in file.lines if line.get("cat") == "NVTX" and line["ph"] == "X"]
        told["child" if file.header.get("forked_from") else "parent"] = pushed
    assert told == {"parent": ["parent's"], "child": ["child's"]}


def test_a_program_that_only_speaks_leaves_nothing_where_tracing_is_off(tmp_path):
    done = tells(tmp_path, "once", TPROF_DISABLE="1")
    assert done.stdout == "sum 0 enabled 0 rank 3 totals 1\n"
    assert not done.traces.exists()


def test_the_header_is_all_that_a_program_needs(tmp_path):
    """It is compiled as a user does, with nothing of ours to link, by C and C++ of any age that we claim."""
    source = tmp_path / "main.c"
    source.write_text('#include "interpose/user/tprof.h"\nint main(void) { return tprof_push("x"); }\n')
    for compiler, standard in (("cc", "c99"), ("c++", "c++11"), ("c++", "c++98")):
        language = ["-x", "c++"] if compiler == "c++" else []
        flags = [f"-std={standard}", "-pedantic", "-Wall", "-Werror", "-Wno-long-long", "-O2"]
        out = tmp_path / standard
        subprocess.run([compiler, *flags, "-I", REPO, *language, source, "-o", out], check=True)
        assert start([out], tmp_path / f"run-{standard}", libraries=None).code == 0
        assert len(list((tmp_path / f"run-{standard}" / "traces").iterdir())) == 1
