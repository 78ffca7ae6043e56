"""--ranks, --steps, --ops, --sizes, --comm and --phase leave the same calls in every command: those of the truth."""

import collections
import csv
import re

import pytest
from lib.build import GOLDEN
from lib.filtered import KIB, LAYERS, add_copies_within, chosen, leave_step_lines, sums, training, write
from lib.loops import Loop
from lib.rankfile import parsed
from lib.tool import generate, summary_of, told, tprof

EXACT = 4 * 4 * LAYERS[0]  # bytes of the first layer's gather, on four ranks: 256 KiB
# The words that are typed, and the same for the truth.
FILTERS = {
    "ranks": (("--ranks", "0-1,3"), {"ranks": {0, 1, 3}}),
    "steps": (("--steps", "3-5"), {"steps": {3, 4, 5}}),
    "open steps": (("--steps", "6-"), {"steps": {6, 7, 8}}),
    "a list of steps": (("--steps", "2,5-6"), {"steps": {2, 5, 6}}),
    "a bucket": (("--ops", "allgather"), {"ops": {"ALLGATHER"}}),
    "functions": (("--ops", "ncclAllReduce,H2D"), {"ops": {"ncclAllReduce", "H2D"}}),
    "a pattern": (("--ops", "nccl*Reduce*"), {"ops": {"ncclAllReduce", "ncclReduceScatter"}}),
    "powers of two": (("--sizes", "64K-"), {"sizes": (64 * KIB, 1 << 60)}),
    "other borders": (("--sizes", "100K-300K"), {"sizes": (100 * KIB, 300 * KIB)}),
    "one size": (("--sizes", str(EXACT)), {"sizes": (EXACT, EXACT)}),
    "small ones": (("--sizes", "-4K"), {"sizes": (0, 4 * KIB)}),
    "two ranges": (("--sizes", "-1K,600K-"), {}),
    "phase": (("--phase", "backward"), {"phases": {"backward"}}),
    "phases": (("--phase", "load,forward,other"), {"phases": {"load", "forward", "other"}}),
    "all but a communicator": (
        ("--ranks", "0-2", "--steps", "2-7", "--ops", "ALLGATHER,RESHARDING", "--sizes", "200K-",
         "--phase", "backward"),
        {"ranks": {0, 1, 2}, "steps": range(2, 8), "ops": {"ALLGATHER", "RESHARDING"}, "sizes": (200 * KIB, 1 << 60),
         "phases": {"backward"}},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write(tmp_path_factory.mktemp("filters") / "job")


@pytest.fixture(params=FILTERS, ids=FILTERS)
def case(request, made):
    """Returns the folder, the options, and the calls that they leave."""
    _, calls, folder = made
    options, truth = FILTERS[request.param]
    if request.param == "two ranges":
        left = [c for c in calls if c.bytes <= KIB or c.bytes >= 600 * KIB]
    else:
        left = chosen(calls, **truth)
    assert 0 < len(left) < len(calls)
    return folder, options, left


def buckets_of(report):
    named = {name: b for name, b in report["buckets"].items() if b and name != "ALL"}
    return {name: (b["calls"], b["bytes"]) for name, b in named.items() if b["calls"]}


def words(options):
    return {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}


def test_summary(case):
    folder, options, left = case
    report = summary_of(folder, *options, "--per-rank")
    assert buckets_of(report) == sums(left)
    assert report["only"] == words(options) | {"notes": []}
    ranks = collections.Counter(c.rank for c in left)
    assert report["buckets"]["ALL"]["per_rank"]["calls"] == [ranks[rank] for rank in report["ranks"]]
    ops = collections.Counter()
    for op in report["ops"]:
        ops[op["name"], op["nranks"]] += op["calls"]
    nranks = {None: None, 0: 4, 1: 2, 2: 2}
    assert ops == collections.Counter((c.op, nranks[c.comm]) for c in left)
    assert sum(c["calls"] for c in report["comms"]) == sum(c.comm is not None for c in left)
    assert sum(c["bytes"] for c in report["comms"]) == sum(c.bytes for c in left if c.comm is not None)


def test_summary_says_its_filters_in_its_first_lines(case):
    folder, options, left = case
    head = tprof("summary", folder, *options).stdout.splitlines()[:3]
    assert "filter" in head[1]
    assert all(f"{name} {value}" in head[1] for name, value in words(options).items())


@pytest.mark.one_of(4)
@pytest.mark.parametrize("by", ["op", "comm", "dtype", "step", "phase", "site", "size"])
def test_no_table_of_summary_has_more(case, by):
    folder, options, left = case
    report = summary_of(folder, *options, "--by", by)
    assert buckets_of(report) == sums(left)
    if by == "step":
        steps = {c.step for c in left} - {None}
        told_of = {s["step"]: sum(b["calls"] for b in s["buckets"].values()) for s in report["steps"]}
        of_steps = collections.Counter(c.step for c in left if c.step)
        assert {step: n for step, n in told_of.items() if n} == dict(of_steps)
        assert steps <= set(told_of)
    if by == "site":
        assert sum(row["calls"] for row in report["sites"]) == len(left)
    if by == "op":
        assert sum(op["times"]["count"] for op in report["ops"] if op["times"]) == len(left)


def test_slowest_calls_and_histograms(case):
    folder, options, left = case
    report = told("summary", folder, *options, "--top", 1000)[1]
    assert report["slowest"]["looked"] == len(left)
    longest = collections.Counter((c["function"], c["bytes"]) for c in report["slowest"]["calls"])
    assert set(longest) == {(c.op, c.bytes) for c in left}
    op = left[0].op
    report = told("summary", folder, *options, "--hist", op)[1]
    assert report["hist"]["count"] == sum(c.op == op for c in left)


def test_merge(case, tmp_path):
    folder, options, left = case
    done = tprof("merge", folder, "-o", tmp_path / "all.json", *options)
    assert done.returncode == 0, done.stderr
    assert "note: only " in done.stderr
    lines = parsed(tmp_path / "all.json")
    events = [e for e in lines if e["ph"] == "X" and e["cat"] != "LANE"]
    calls = collections.Counter((e["pid"], e["args"]["op"], e["args"]["bytes"]) for e in events)
    assert calls == collections.Counter((c.rank, c.op, c.bytes) for c in left)
    # A reader of the merged trace knows that lines are missing.
    in_all = collections.Counter(c.rank for c in training()[1])
    for footer in (line for line in lines if line["name"] == "tprof_footer"):
        kept = sum(c.rank == footer["pid"] for c in left)
        assert footer["args"]["dropped"].get("filter", 0) == in_all[footer["pid"]] - kept


def test_export(case, tmp_path):
    folder, options, left = case
    done = tprof("export", folder, "--csv", tmp_path / "csv", *options)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((tmp_path / "csv/calls.csv").open()))
    assert collections.Counter((int(r["rank"]), r["function"], int(r["bytes"])) for r in rows) == collections.Counter(
        (c.rank, c.op, c.bytes) for c in left
    )
    ledger = list(csv.DictReader((tmp_path / "csv/ledger.csv").open()))
    assert sum(int(r["calls"]) for r in ledger) == len(left)
    assert sum(int(r["bytes"]) for r in ledger) == sum(c.bytes for c in left)
    (job,) = csv.DictReader((tmp_path / "csv/job.csv").open())
    assert job["chosen"].startswith("only ")


def test_replay(case):
    folder, options, left = case
    report = told("replay", folder, *options)[1]
    assert report["only"] == words(options) | {"notes": []}
    made = sum(run["calls"] for run in report["lines"]) + sum(row["calls"] for row in report["left"])
    assert made == sum(c.comm is not None for c in left)


def test_report_filters_calls_and_judges_the_whole_job(case, tmp_path):
    folder, options, left = case
    report = told("report", folder, *options)[1]
    whole = told("report", folder)[1]
    assert {b["bucket"]: (b["calls"], b["bytes"]) for b in report["buckets"]} == sums(left)
    assert sum(op["calls"] for op in report["ops"]) == len(left)
    assert sum(h["calls"] for h in report["hist"]) == len(left)
    per_rank = report["per_rank"]["measures"]["calls"]["most"]
    assert sum(per_rank) == len(left)
    for key in ("verdict", "findings", "step", "heat", "late", "timelines", "unseen"):
        assert report[key] == whole[key], key
    assert whole["only"] is None
    assert report["only"]["of"] == ["buckets", "per_rank", "ops", "hist", "comms"]
    text = tprof("report", folder, *options).stdout
    assert text.startswith("only ")
    tprof("report", folder, *options, "-o", tmp_path / "page.html")
    assert f'<p id="only">{report["only"]["text"]}</p>' in (tmp_path / "page.html").read_text()


def test_diff_sees_a_change_in_what_is_left_and_no_other(case, tmp_path):
    folder, options, left = case
    assert told("diff", folder, folder, *options)[1]["same"]
    loop, calls = training()
    # The changed call is the last gather of step 4's backward pass, on all ranks.
    changed = set()
    at = {}
    for rank, of_rank in enumerate(loop.job.ranks):
        mine = [c for c in calls if c.rank == rank]
        place = max(i for i, c in enumerate(mine) if (c.op, c.step, c.phase) == ("ncclAllGather", 4, "backward"))
        at[rank] = mine[place]
        changed.add(mine[place].bytes)
        del of_rank.ops[place]
    assert len(changed) == 1
    other = loop.job.write(tmp_path / "other")
    lines = {"--steps", "--sizes", "--phase"} & set(options)
    report = told("diff", folder, other, *options, *([] if lines else ["--no-lines"]))[1]
    touched = any(c in left for c in at.values())
    lost = [(c["kind"]["name"], c["per"], c["a"]["calls"] - c["b"]["calls"]) for c in report["counts"]]
    assert [(name, calls) for name, _, calls in lost] == [("ncclAllGather", 1)] * touched, lost


def test_communicators_by_id_its_beginning_and_number(made):
    loop, calls, folder = made
    job = loop.job
    two = f"{job.id(1)},{job.id(2)}"
    for word, comms in [(job.id(0), {0}), (job.id(1)[:9], {1}), (two, {1, 2}), (job.id(2).upper(), {2})]:
        report = summary_of(folder, "--comm", word)
        assert buckets_of(report) == sums(chosen(calls, comms=comms))
        assert sorted(c["id"] for c in report["comms"]) == sorted(job.id(c) for c in comms)
    # Number 2 is the second of each rank: its own replicas.
    assert buckets_of(summary_of(folder, "--comm", "2")) == sums(chosen(calls, comms={1, 2}))


def test_counts_of_ledgers_need_no_line(tmp_path):
    loop, calls = training()
    for rank in loop.job.ranks:
        rank.lines = False
    folder = loop.job.write(tmp_path / "job")
    for name in ("a bucket", "functions", "powers of two"):
        options, truth = FILTERS[name]
        report = summary_of(folder, *options)
        assert buckets_of(report) == sums(chosen(calls, **truth))
        assert report["only"]["notes"] == []
    report = summary_of(folder, "--sizes", "300K-")
    sure = [c for c in calls if c.bytes >= 512 * KIB]
    open_ = [c for c in calls if 256 * KIB < c.bytes < 512 * KIB]
    assert open_
    assert buckets_of(report)["H2D"] == sums(sure)["H2D"]
    (note,) = report["only"]["notes"]
    assert "without a line are left out, as their exact size is unknown" in note


@pytest.mark.parametrize("lines", [True, False])
def test_calls_of_two_threads_are_counted_once(lines, tmp_path):
    """Both threads reduce 1024 to 2047 bytes: of the one that reduces once the ledger tells how many, of the
    other the lines do."""
    loop = Loop([[0, 1]])
    for rank in loop.job.ranks:
        rank.lines = lines
    loop.step()
    loop.reduce(2000 // 4)
    with loop.backward():
        for size in (1100, 1600, 1700):
            loop.reduce(size // 4)
    report = summary_of(loop.job.write(tmp_path / "job"), "--sizes", "1500-")
    assert buckets_of(report).get("ALLREDUCE") == ((6, 2 * (2000 + 1600 + 1700)) if lines else None)
    said = ["8 calls without a line are left out, as their exact size is unknown (8 ALLREDUCE)"]
    assert report["only"]["notes"] == ([] if lines else said)


def test_a_step_leaves_out_calls_without_a_line_and_says_so(tmp_path):
    loop, calls = training()
    lost = [place for place, op in enumerate(loop.job.ranks[2].ops) if op.function == "ncclAllReduce"][-3:]
    loop.job.ranks[2].no_line = set(lost)
    loop.job.ranks[2].dropped = {"ring": len(lost)}
    report = summary_of(loop.job.write(tmp_path / "job"), "--steps", "2-4", "--ops", "ALLREDUCE")
    assert buckets_of(report) == sums(chosen(calls, steps={2, 3, 4}, ops={"ALLREDUCE"}))
    assert report["only"]["notes"] == [
        "3 calls without a line are left out, as their step is unknown (3 ALLREDUCE)"
    ]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["steps", "open steps", "a list of steps"])
@pytest.mark.parametrize("more", [(), ("--ops", "ncclAllReduce,H2D"), ("--sizes", "512K-"), ("--ranks", "1-2")])
def test_steps_that_the_writers_counted_need_no_line(tmp_path, name, more):
    loop, calls, folder = write(tmp_path / "job")
    leave_step_lines(loop, folder)
    options, truth = FILTERS[name]
    of_more = {
        "--ops": {"ops": {"ncclAllReduce", "H2D"}},
        "--sizes": {"sizes": (512 * KIB, 1 << 60)},
        "--ranks": {"ranks": {1, 2}},
    }
    left = chosen(calls, **truth, **(of_more[more[0]] if more else {}))
    report = summary_of(folder, *options, *more, "--by", "step")
    assert buckets_of(report) == sums(left)
    assert (report["steps_exact"], report["only"]["notes"]) == (True, [])
    told_of = {s["step"]: sum(b["calls"] for b in s["buckets"].values()) for s in report["steps"]}
    assert {k: n for k, n in told_of.items() if n} == collections.Counter(c.step for c in left)


def test_check_of_ranks_misses_none(made, tmp_path):
    loop, _, folder = made
    code, report = told("check", folder, "--ranks", "0-1")
    assert (code, report["ranks"], report["missing_ranks"]) == (0, [0, 1], [])
    assert report["only"]["ranks"] == "0-1"
    (folder.parent / "few").mkdir()
    for rank in (0, 1):
        name = f"rank-{rank:05}.json"
        (folder.parent / "few" / name).write_text((folder / name).read_text())
    assert told("check", folder.parent / "few")[0] == 1  # two are missing there
    assert told("check", folder.parent / "few", "--ranks", "0")[0] == 0


def test_check_of_a_communicator(tmp_path):
    loop, _ = training()
    job = loop.job
    place = [i for i, op in enumerate(job.ranks[3].ops) if op.comm == 2][5]
    op = job.ranks[3].ops[place]
    job.ranks[3].ops[place] = type(op)(**{**op.__dict__, "count": op.count + 1})
    folder = job.write(tmp_path / "job")
    code, report = told("check", folder)
    assert code == 1
    code, report = told("check", folder, "--comm", job.id(1))
    assert (code, [c["id"] for c in report["communicators"]]) == (0, [job.id(1)])
    code, report = told("check", folder, "--comm", job.id(2))
    assert (code, [c["same"] for c in report["communicators"]]) == (1, [False])
    assert tprof("check", folder, "--comm", job.id(2)).stdout.startswith(f"only comm {job.id(2)}\n")


def test_copies_without_lines_are_in_the_phase_that_their_thread_tells(tmp_path):
    """Copies within a device: the ledger alone has them, by kind of thread."""
    _, _, folder = write(tmp_path / "job")
    for file in folder.glob("rank-*.json"):
        add_copies_within(file, autograd=(5, 500), other=(3, 30))
    whole = summary_of(folder, "--by", "phase")
    assert whole["phases"]["backward"]["D2D"]["calls"] == 4 * 5
    assert whole["phases"]["rest"]["D2D"]["calls"] == 4 * 3
    note = "12 calls without a line are counted as phase other, as their phase is unknown (12 D2D)"
    both = ("other,backward", (32, 2120))
    for phase, left in (("backward", (20, 2000)), ("other", (12, 120)), ("forward", None), both):
        report = summary_of(folder, "--phase", phase)
        assert buckets_of(report).get("D2D") == left
        assert report["only"]["notes"] == [note]
    # Where a step is asked for, nothing tells.
    report = summary_of(folder, "--phase", "backward", "--steps", "2-3")
    assert "D2D" not in buckets_of(report)
    assert report["only"]["notes"] == ["32 calls without a line are left out, as their step is unknown (32 D2D)"]


def test_budget_of_some_ranks(made, tmp_path):
    _, _, folder = made
    done = tprof("budget", folder, "--write", tmp_path / "b.json")
    assert done.returncode == 0, done.stderr
    report = told("budget", folder, "--budget", tmp_path / "b.json", "--ranks", "1-2")[1]
    assert report["only"] == {"ranks": "1-2", "notes": []}
    text = tprof("budget", folder, "--budget", tmp_path / "b.json", "--ranks", "1-2").stdout
    assert text.startswith("filter: only ranks 1-2\nEach of ranks 1,2 in a step")


def test_ranks_that_are_not_here_are_said(tmp_path):
    generate(tmp_path / "job", 3, 10)
    note = "--ranks 1-9: only ranks 1,2 are here"
    assert note in tprof("summary", tmp_path / "job", "--ranks", "1-9").stdout
    assert note in tprof("merge", tmp_path / "job", "--ranks", "1-9", "-o", tmp_path / "m.json").stderr
    assert told("summary", tmp_path / "job", "--ranks", "1-9")[1]["only"]["notes"] == [note]
    assert "are here" not in tprof("summary", tmp_path / "job", "--ranks", "0,1-2,1").stdout


def test_merge_tells_findings_of_the_summary_as_notes(tmp_path):
    said = tprof("merge", GOLDEN / "two_ranks", "-o", tmp_path / "m.json").stderr.splitlines()
    shown = tprof("summary", GOLDEN / "two_ranks").stdout.splitlines()
    findings = [line for line in shown if line.startswith(("error: ", "warning: ", "note: ", "  -> "))]
    findings = [re.sub("^(error|warning): ", "note: ", line) for line in findings]
    assert [line for line in said if line in findings] == findings


# Where a setting keeps calls from getting lines, that is the reason for everything that is then not known.
@pytest.fixture(params=[("TPROF_EVENTS", "off", "TPROF_EVENTS=off"), ("TPROF_RANKS", "8-15", "TPROF_RANKS")])
def without_lines(request, tmp_path):
    name, value, by = request.param
    loop, _ = training()
    for rank in loop.job.ranks:
        rank.dropped, rank.header = {"window": len(rank.ops)}, {"config": {name: value}}
    folder = loop.job.write(tmp_path / "job")
    leave_step_lines(loop, folder)
    return folder, by


@pytest.mark.parametrize("by", ["layer", "range"])
def test_tables_of_lines_name_the_setting(without_lines, by):
    folder, setting = without_lines
    text = tprof("summary", folder, "--by", by).stdout
    assert f"has a line ({setting})" in text and "did not arrive" not in text and "common order" not in text


def test_so_do_the_counts_of_calls_without_a_line(without_lines):
    folder, setting = without_lines
    (finding,) = [f for f in told("summary", folder)[1]["findings"] if f["kind"] == "dropped"]
    assert setting in finding["text"] and "window" not in finding["text"]
