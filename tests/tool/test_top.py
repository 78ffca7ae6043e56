"""tprof top: compares a running job's ranks with what the stand-in has counted of them."""

import collections
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest
from lib import launch, live
from lib.build import GOLDEN, TPROF
from lib.runs import TIME_LIMIT_S, until
from lib.tool import tprof


def top(traces, *options):
    done = tprof("top", traces, "--once", "--json", *options)
    return {rank["rank"]: rank for rank in json.loads(done.stdout)["ranks"]} if done.stdout else {}


def shown(ranks):
    """Returns (rank, bucket) -> calls, elements and bytes, where there are calls."""
    return {
        (rank, name): {key: bucket[key] for key in ("calls", "elements", "bytes")}
        for rank, found in ranks.items()
        for name, bucket in found["buckets"].items()
        if bucket["calls"]
    }


def tallied(folder):
    total = collections.defaultdict(collections.Counter)
    for (rank, bucket, _), amounts in live.counted(folder).items():
        total[rank, bucket].update(amounts)
        total[rank, "ALL"].update(amounts)
    return {key: dict(amounts) for key, amounts in total.items()}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory):
    """Yields the folder of a job that stands still, and runs."""
    folder = tmp_path_factory.mktemp("stuck")
    with live.standing_still(folder, TPROF_STEP="call:ncclReduceScatter"):
        yield folder


def test_once_shows_what_the_stand_in_has_counted_so_far(stuck):
    until(lambda: shown(top(stuck / "traces")) == tallied(stuck) and tallied(stuck))


def test_a_call_that_does_not_return_is_shown_with_its_age(stuck):
    (call,) = until(lambda: top(stuck / "traces").get(1, {}).get("open"))
    assert (call["function"], call["bucket"]) == ("ncclReduceScatter", "RESHARDING")
    (later,) = top(stuck / "traces")[1]["open"]
    assert later["age_ns"] > call["age_ns"] > 0 and later["seq"] == call["seq"]
    text = tprof("top", stuck / "traces", "--once").stdout
    place = f"rank 1: ncclReduceScatter, collective {call['seq']} of {call['communicator']}, for "
    assert place in text and all(len(line) <= 80 for line in text.splitlines())


def quiet_s(traces):
    head = tprof("top", traces, "--once").stdout.splitlines()[0]
    found = re.search(r": (\d) of \1 ranks? run, no call for (\d+\.\d{3}) s$", head)
    return found and float(found[2])


def test_the_head_says_for_how_long_nobody_has_made_a_call(stuck):
    """Neither before the call in which rank 1 stands, nor since another that returned."""
    first = until(lambda: quiet_s(stuck / "traces"))
    (call,) = top(stuck / "traces")[1]["open"]
    assert 3 <= first <= call["age_ns"] / 1e9
    assert quiet_s(stuck / "traces") > first


def test_the_step_is_the_last_that_ended(stuck):
    """Each reduce-scatter ends a step here."""
    until(lambda: top(stuck / "traces")[1]["step"] == live.SCATTERS_BEFORE_THE_HANG)
    assert top(stuck / "traces")[1]["step_ns"] > 0


def test_rates_are_of_the_interval_and_totals_need_none(stuck):
    until(lambda: shown(top(stuck / "traces")) == tallied(stuck))
    assert top(stuck / "traces")[0]["buckets"]["ALL"]["calls_per_s"] is None
    still = top(stuck / "traces", "--interval", "0.05")[0]["buckets"]["ALL"]
    assert (still["calls_per_s"], still["bytes_per_s"]) == (0, 0)


def test_a_job_that_calls_has_rates_and_one_that_was_killed_is_said_to_be(tmp_path):
    with launch.running([*live.TRAINER, "1000000"], tmp_path) as job:
        until(lambda: len(list((tmp_path / "traces").glob("*.json"))) == 2)

        def calls_per_s():
            found = top(tmp_path / "traces", "--interval", "0.05").get(0)
            return found and found["buckets"]["ALLGATHER"]["calls_per_s"]

        assert until(calls_per_s) > 0
        launch.kill(job)
    until(lambda: {rank["state"] for rank in top(tmp_path / "traces").values()} == {"killed"})
    assert shown(top(tmp_path / "traces")) == tallied(tmp_path)


def test_without_ranks_or_a_folder_it_is_one_line_and_2(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing"):
        done = tprof("top", folder, "--once")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


class Screen:
    """A terminal of 80 columns, and the tool in it."""

    def __init__(self, traces, *options):
        self.main, self.side = pty.openpty()
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.side)
        self.process = subprocess.Popen(
            [TPROF, "top", traces, "--interval", "0.05", *options],
            stdin=self.side, stdout=self.side, stderr=self.side, start_new_session=True,
        )  # fmt: skip
        self.text = ""

    def shows(self, what):
        """Reads until this stands somewhere on a picture made from now on."""
        self.text = ""
        until(lambda: self.read() or re.search(what, self.text))

    def read(self):
        while select.select([self.main], [], [], 0)[0]:
            self.text += os.read(self.main, 65536).decode()

    def type(self, keys):
        os.write(self.main, keys.encode())

    def end(self):
        """Returns its exit status; reads what it writes until then."""
        deadline = time.monotonic() + TIME_LIMIT_S
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < deadline
        self.read()
        return self.process.returncode


@pytest.fixture
def screen(tmp_path):
    with contextlib.ExitStack() as stack:

        def start(traces, *options):
            made = Screen(traces, *options)
            stack.callback(made.process.kill)
            stack.callback(os.close, made.main)
            stack.callback(os.close, made.side)
            return made

        yield start


def test_the_view_lives_and_obeys_its_keys(screen, tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    view = screen(traces)
    view.shows("no rank has begun yet")
    shutil.copy(GOLDEN / "two_ranks/rank-00000.json", traces)
    view.shows("0 of 1 rank run")
    shutil.copy(GOLDEN / "two_ranks/rank-00001.json", traces)
    view.shows("0 of 2 ranks run")
    view.type("5")
    view.shows("sort: bytes/s")
    view.type("ss")
    view.shows("sort: bytes ")
    view.type("b")
    view.shows("bucket: ALLGATHER")
    view.type("r")
    view.shows(r"ALL +- +- +0 +0 B")
    view.type("q")
    assert view.end() == 0


ENDS = {"q": 0, "\x03": 0, signal.SIGINT: -2, signal.SIGTERM: -15, signal.SIGHUP: -1}


@pytest.mark.parametrize("how", ENDS, ids=repr)
def test_the_terminal_is_put_back_however_it_ends(screen, how):
    view = screen(GOLDEN / "two_ranks")
    view.shows("sort: rank")
    assert termios.tcgetattr(view.side) != view.before
    view.type(how) if isinstance(how, str) else view.process.send_signal(how)
    assert view.end() == ENDS[how]
    assert view.text.endswith("\x1b[?25h\x1b[?1049l")
    assert termios.tcgetattr(view.side) == view.before
