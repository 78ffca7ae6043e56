"""A program sees the same of itself with the preload: a native one, and FSDP2."""

import shutil

import pytest
from lib import needs, runs, sight
from lib.build import BUILD, INSTANT, STANDIN
from lib.launch import start, without_agent

GUEST = BUILD / "guest"


@pytest.fixture
def twice(tmp_path, node):
    """Returns a function: twice("walk") gives the run without and the run with the preload."""

    def run(*arguments, **variables):
        command = [str(GUEST), *map(str, arguments)]
        variables = {"TPROF_RING_DIR": str(node)} | variables
        return (
            start(command, tmp_path / "plain", preload=False, **variables),
            start(command, tmp_path / "traced", **variables),
        )

    return run


@pytest.fixture
def left_rings(node, tmp_path):
    """Leaves so many ring files that a process that starts there is busy with them for a while.
    They are of processes whose traces are gone."""
    killed = runs.run(tmp_path / "killed", runs.client("end", "kill"), TPROF_RING_DIR=str(node))
    assert killed.code < 0
    (ring,) = node.iterdir()
    for n in range(300):
        shutil.copy(ring, node / f".tprof-other-{n}-1-rank-00000.ring")
    shutil.rmtree(tmp_path / "killed")


def figures(run):
    pairs = (line.split() for line in run.stdout.splitlines())
    return {words[0]: int(words[1]) for words in pairs}


def test_calls_and_what_surrounds_them_are_as_without_us(twice):
    """Compares last error, errno and rounding after every call; signals, files, limits, memory, streams."""
    plain, traced = twice("walk")
    assert (plain.code, traced.code) == (7, 7)
    assert (traced.stderr, plain.stderr) == (plain.stderr, "guest: a line of its own\n")
    assert sight.of(traced).difference(sight.of(plain)) == []
    assert len(sight.of(plain).lines) > 150
    assert list(traced.traces.glob("*.json"))


def kinds(files):
    return sorted(line.rpartition(".")[2] for line in files)


def expected_kinds(files):
    """Where the ring file is not beside the rank file, a snapshot is."""
    beside = any("/traces/.rank" in line and line.endswith(".ring") for line in files)
    return ["json", "ring"] if beside else ["json", "ring", "snapshot"]


def test_one_thread_and_two_or_three_files_are_ours(twice):
    _, traced = twice("walk")
    ours = sight.of(traced)
    states = ("after the first calls", "with threads", "after the graph", "at the end")
    # The thread blocks all signals but those that nobody can block, may use every core, and is
    # nice.
    about = "thread: tprof blocked fffffffe7ffbfeff pending 0000000000000000 cores"
    assert len(ours.threads) == len(states)
    for state, line in zip(states, ours.threads, strict=True):
        assert line.startswith(f"{state}: {about}") and line.endswith("nice 10 policy 0")
    assert kinds(ours.files) == sorted(expected_kinds(ours.files) * len(states))
    for line in ours.files:
        number = int(line.split("file: ")[1].split()[0])
        assert number > 9 and "closed on exec" in line


def test_closed_standard_files_are_not_taken(twice):
    plain, traced = twice("closed")
    assert "files of its own: 0 2 3" in plain.stdout
    assert traced.stdout == plain.stdout


@pytest.mark.parametrize("what, libraries", [(("closed",), STANDIN), (("forks", 90), INSTANT)])
def test_nor_are_they_while_left_ring_files_are_looked_at(what, libraries, twice, left_rings):
    plain, traced = twice(*what, LD_LIBRARY_PATH=str(libraries))
    assert plain.code == 0
    assert (traced.code, traced.stdout, traced.stderr) == (plain.code, plain.stdout, plain.stderr)


def test_children_get_the_same_environment_and_files(twice):
    plain, traced = twice("children")
    assert sight.of(traced).difference(sight.of(plain)) == []
    assert plain.stdout.count("LD_LIBRARY_PATH=") == 3
    assert traced.stdout.count("LD_PRELOAD=") == 3


def test_children_forked_while_we_write_can_do_everything(twice):
    """The children have none of their parent's trace files."""
    plain, traced = twice("forks", 90, LD_LIBRARY_PATH=INSTANT)
    assert traced.stdout == plain.stdout == "90 children left well\n"
    assert traced.stderr == ""
    # The parent has a file, and so have the children that made calls.
    assert len(list(traced.traces.glob("*.json"))) >= 31


def test_children_forked_while_we_start_can_do_everything(twice):
    """They find no lock that nobody holds any more, and no half-made session."""
    plain, traced = twice("forkstart", 60, LD_LIBRARY_PATH=INSTANT)
    assert traced.stdout == plain.stdout == "60 children left well\n"
    assert traced.stderr == ""


def test_a_full_disk_and_a_closed_standard_error_raise_no_signal(twice):
    plain, traced = twice("starved", LD_LIBRARY_PATH=INSTANT, TPROF_EVENTS="nonsense")
    assert (traced.code, traced.stdout) == (plain.code, plain.stdout) == (7, "0 signals\n")


@pytest.mark.parametrize("how", ["exit", "_exit", "quick_exit", "abort", "segv", "throw"])
def test_every_end_is_the_same_to_whoever_waits(how, twice):
    plain, traced = twice("end", how)
    assert (traced.code, traced.stdout, traced.stderr) == (plain.code, plain.stdout, plain.stderr)


@pytest.mark.parametrize("threads", [1, 8])
def test_use_of_the_machine_is_bounded(threads, twice):
    """Checks the bounds of README, "What it costs", with room for what the system does besides."""
    plain, traced = twice("usage", threads, 50_000, LD_LIBRARY_PATH=INSTANT)
    before, after = figures(plain), figures(traced)
    more = {name: after[name] - before[name] for name in before}
    assert more["resident_kb"] <= (5 + 1.25 * threads) * 1024
    assert more["faults"] <= 1300 + 320 * threads
    assert after["major_faults"] <= before["major_faults"] + 5
    assert more["voluntary_switches"] + more["involuntary_switches"] <= 100 + 30 * threads


def test_fsdp2_finds_itself_as_without_us(tmp_path, node):
    needs.package("torch")
    command = without_agent("guest_fsdp2.py", 2)
    plain = start(command, tmp_path / "plain", preload=False, TPROF_RING_DIR=str(node))
    traced = start(command, tmp_path / "traced", TPROF_RING_DIR=str(node))
    assert plain.code == 0, plain.stderr
    assert (traced.code, traced.stderr) == (plain.code, plain.stderr)
    assert sight.of(traced).difference(sight.of(plain)) == []
    assert len(sight.of(traced).threads) == 2  # one a rank
    files = sight.of(traced).files
    assert kinds(files) == sorted(2 * expected_kinds(files))

    def used(run, name):
        lines = [line.split() for line in run.stdout.splitlines() if "used: " in line]
        return max(int(words[words.index(name) + 1]) for words in lines)

    assert used(traced, "resident_kb") - used(plain, "resident_kb") <= 16 * 1024
