"""The report says first what is wrong, its data are those of the other commands, and its page is one safe file."""

import html.parser
import json
import statistics

import pytest
from generator import causes, habits, rank_files
from lib import evil, faults, jobs
from lib.tool import summary_of, told, tprof

RANKS = 8


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A job of which one rank is slow: its folder, and what is true of it."""
    folder = tmp_path_factory.mktemp("slow") / "job"
    made = causes.case("fsdp", RANKS, "slow_gpu", 1, 6)
    rank_files.write(made, folder, 1)
    return folder, made


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More ranks than a page has places beside each other."""
    folder = tmp_path_factory.mktemp("many") / "job"
    return jobs.healthy(300, 40, 1).write(folder)


class Page(html.parser.HTMLParser):
    """The page as a browser would see it: tags with their attributes, and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, text):
        if self.cdata_elem == "script":
            self.scripts[-1] += text


def page_of(folder, to):
    done = tprof("report", folder, "-o", to)
    assert done.returncode in (0, 1) and done.stdout == "" and done.stderr.endswith("; open it in a browser\n"), done
    return to.read_text()


@pytest.mark.parametrize(
    ("slow", "named"), [((3, 7, 8, 9, 13), "3,7-9,13"), ((3, 5, 8, 10, 13, 16, 19, 21, 23), "3,5,8,10,13,16,19,21,…")]
)
def test_a_rank_that_is_slow_now_and_then_has_the_steps_named(tmp_path, slow, named):
    loop = habits.Loop(ranks=8, steps=24, gpu={5: 2.0}, gpu_steps=slow)
    rank_files.write(habits.run(loop), tmp_path / "job")
    (found,) = [f for f in told("report", tmp_path / "job")[1]["findings"] if f["kind"] == "slow_gpu"]
    assert found["ranks"] == "5"
    assert f" in {len(slow)} of 23 steps, {named}: " in found["text"]


def test_that_ranks_did_not_close_is_told_before_what_costs_less_than_the_verdict(tmp_path):
    """All ranks were killed between two calls of a job with several causes of slow steps."""
    loop = habits.Loop(shape="fsdp", ranks=8, steps=24, gpu={5: 2.0}, gpu_steps=(3, 7, 8, 9, 13),
                       loader={6: 20_000_000}, loader_every=5)  # fmt: skip
    made = habits.run(loop)
    made.killed = True
    rank_files.write(made, tmp_path / "job")
    found = told("report", tmp_path / "job")[1]
    assert [f["kind"] for f in found["findings"]][0] == "not_closed" and len(found["findings"]) >= 3
    assert found["findings"][found["verdict"]["finding"]]["cost"]
    shown = tprof("report", tmp_path / "job").stdout.split("\n\n")[0]
    assert "note: ranks 0-7 ended without closing: killed by a signal" in shown
    assert "  -> the launcher's output tells how each rank ended" in shown


# ---- The screen


def test_an_error_comes_before_all_else_and_is_the_exit_code(tmp_path):
    faults.plant_elsewhere(jobs.healthy(24, 200, 1), 8, 0, 20)[0].write(tmp_path / "job")
    done = tprof("report", tmp_path / "job")
    assert done.returncode == 1
    assert done.stdout.startswith("Rank 8 never came to collective"), done.stdout


def test_a_healthy_job_is_said_to_be_one(many):
    done = tprof("report", many)
    assert done.returncode == 0
    made = [c["collectives"] for c in summary_of(many)["comms"] if c["collectives"]]
    same = f"did the same {made[0]:,} collectives" if len(made) == 1 else (
        f"agreed on {sum(made):,} collectives of {len(made):,} communicators"
    )  # fmt: skip
    said = f"The ranks did nothing wrong: 300 ranks {same}"
    assert " ".join(done.stdout.split()).startswith(said)


# ---- The data


def test_buckets_and_operations_are_those_of_the_summary(slow):
    summary, (_, data) = summary_of(slow[0]), told("report", slow[0])
    assert data["schema"] == "tprof-report/1"
    for bucket in data["buckets"]:
        expected = summary["buckets"][bucket.pop("bucket")]
        assert {key: expected[key] for key in bucket} == bucket
    assert sum(b["calls"] for b in data["buckets"]) == summary["buckets"]["ALL"]["calls"]

    def sums(rows):
        return {(o["bucket"], o["name"], o["bytes_class"], o["dtype"]): (o["calls"], o["bytes"]) for o in rows}

    assert sums(data["ops"]) == sums(summary["ops"])  # there is one communicator
    calls = {(o["bucket"], o["name"]): o["calls"] for o in data["ops"]}
    assert {(h["bucket"], h["name"]): sum(h["counts"]) for h in data["hist"] if h["on"] == "device"} == calls


def test_bins_of_ranks_have_their_means_and_extremes(many):
    (_, data), summary = told("report", many), summary_of(many)
    for measure in ("bytes", "calls", "host_ns"):
        of = data["per_rank"]["measures"][measure]
        for at, (first, last) in enumerate(data["per_rank"]["bins"]):
            ranks = range(first, last + 1)
            totals = [summary["buckets"]["ALL"]["per_rank"][measure][r] for r in ranks]
            assert (of["least"][at], of["most"][at]) == (min(totals), max(totals))
            for bucket, means in of["buckets"].items():
                values = [summary["buckets"][bucket]["per_rank"][measure][r] for r in ranks]
                assert means[at] == pytest.approx(statistics.mean(values), abs=0.51)
    covered = [r for first, last in data["per_rank"]["bins"] for r in range(first, last + 1)]
    assert covered == list(range(300))


def test_the_heat_map_has_the_truth_of_each_rank_and_step(slow):
    folder, made = slow
    heat = told("report", folder)[1]["heat"]
    assert heat["rows"] == [[r, r] for r in range(RANKS)] and len(heat["columns"]) == 6
    metrics = {m["key"]: m for m in heat["metrics"]}
    truth = json.loads(folder.with_name("job.truth.json").read_text())["steps_ns"]
    cells = metrics["length_ns"]["most"]
    for rank in range(RANKS):
        # The last step has no next one: it ends with its mark.
        of_rank = cells[rank * 6 : rank * 6 + len(truth[str(rank)])]
        assert of_rank == pytest.approx(truth[str(rank)], rel=0.01)
    late = metrics["late_ns"]["most"]
    by_rank = {rank: sum(late[rank * 6 : rank * 6 + 6]) for rank in range(RANKS)}
    assert max(by_rank, key=by_rank.get) == made.truth.ranks[0]
    expected = summary_of(folder, "--by", "rank")["lateness"]["ranks"]
    assert sum(by_rank.values()) == sum(row["sum_ns"] for row in expected)


def test_binned_rows_of_the_heat_map_say_which_rank_is_the_worst(tmp_path):
    made = causes.case("hsdp", 192, "slow_gpu", 1, 3)
    rank_files.write(made, tmp_path / "job", 1)
    heat = told("report", tmp_path / "job")[1]["heat"]
    late = next(m for m in heat["metrics"] if m["key"] == "late_ns")
    assert len(heat["rows"]) < 192
    worst = max(range(len(late["most"])), key=lambda at: late["most"][at])
    (rank,) = made.truth.ranks
    first, last = heat["rows"][worst // len(heat["columns"])]
    assert first < rank <= last and late["worst"][worst] == rank


def test_the_timeline_has_the_calls_of_the_step(slow):
    folder, _ = slow
    data = told("report", folder)[1]
    slowest = data["timelines"][0]
    lengths = dict(zip([b[0] for b in data["step"]["bins"]], data["step"]["longest_ns"], strict=True))
    del lengths[min(lengths)]  # programs warm up in it
    assert slowest["step"] == max(lengths, key=lengths.get)
    step = next(s for s in summary_of(folder, "--by", "step")["steps"] if s["step"] == slowest["step"])
    names = slowest["names"]
    for bucket in ("ALLGATHER", "RESHARDING"):
        bars = [b for r in slowest["ranks"] for b in r["bars"] if names[b[0]]["bucket"] == bucket]
        assert len(bars) == step["buckets"][bucket]["calls"]
        assert sum(b[3] for b in bars) == step["buckets"][bucket]["bytes"]


# ---- The page


def test_the_page_holds_the_data_and_asks_the_network_for_nothing(slow, tmp_path):
    text = page_of(slow[0], tmp_path / "r.html")
    page = Page(text)
    assert json.loads(page.scripts[0]) == told("report", slow[0])[1]
    asked = [(tag, a) for tag, a in page.tags for key in ("src", "href", "data", "action", "srcset") if key in a]
    assert asked == []
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style and "@import" not in style
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'") and "http" not in policy
    nonces = {a.get("nonce") for tag, a in page.tags if tag == "script" and "type" not in a}
    assert len(nonces) == 1 and f"'nonce-{nonces.pop()}'" in policy


def test_no_name_of_a_trace_becomes_markup(tmp_path):
    evil.write(tmp_path / "job")
    text = page_of(tmp_path / "job", tmp_path / "r.html")
    plain = page_of_plain(tmp_path)
    assert [tag for tag, _ in Page(text).tags] == [tag for tag, _ in Page(plain).tags]
    data = json.loads(Page(text).scripts[0])
    assert data["run"]["command"] == evil.EVIL  # as it was
    assert evil.EVIL not in text


def page_of_plain(tmp_path):
    rank_files.write(causes.case("fsdp", 8, "hang", 1), tmp_path / "plain", 1)
    return page_of(tmp_path / "plain", tmp_path / "plain.html")


def test_a_page_makes_way_for_the_next_and_nothing_else_does(slow, tmp_path):
    to = tmp_path / "r.html"
    page_of(slow[0], to)
    page_of(slow[0], to)
    to.write_text("mine")
    done = tprof("report", slow[0], "-o", to)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "is no page of tprof report" in done.stderr
    assert to.read_text() == "mine" and [f.name for f in tmp_path.iterdir()] == ["r.html"]
    done = tprof("report", slow[0], "-o", tmp_path / "none" / "r.html")
    assert done.returncode == 2 and "none" in done.stderr
    done = tprof("report", slow[0], "--json", "-o", to)
    assert done.returncode == 2 and "expected one of --json and -o" in done.stderr


def test_the_page_of_many_ranks_is_small(many, tmp_path):
    assert len(page_of(many, tmp_path / "r.html")) < 600_000
