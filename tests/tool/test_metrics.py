"""Compares tprof metrics, as Prometheus' own parser reads it, with the stand-in's tally."""

import collections
import os
import resource
import signal
import socket
import urllib.error
import urllib.request

import pytest
from lib import live
from lib.launch import start
from lib.runs import until
from lib.tool import tprof
from prometheus_client.parser import text_string_to_metric_families


def samples(text):
    """Returns name -> {labels: value}; no labels may be there twice."""
    found = collections.defaultdict(dict)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            assert labels not in found[sample.name]
            found[sample.name][labels] = sample.value
    return found


def operations(text, name):
    """Returns (rank, bucket, function) -> value."""
    return {
        (int(of["rank"]), of["bucket"], of["operation"]): value
        for of, value in ((dict(labels), value) for labels, value in samples(text)[name].items())
    }


def expected(folder, figure):
    return {key: amounts[figure] for key, amounts in live.counted(folder).items()}


def states(text):
    return {dict(labels)["state"]: n for labels, n in samples(text)["tprof_ranks"].items()}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stuck")
    with live.standing_still(folder):
        yield folder


def test_a_file_has_what_the_stand_in_has_counted_so_far(stuck):
    file = stuck / "tprof.prom"

    def written():
        assert tprof("metrics", stuck / "traces", "--textfile", file).returncode == 0
        return file.read_text()

    until(lambda: operations(written(), "tprof_calls_total") == expected(stuck, "calls") != {})
    for figure in ("elements", "bytes"):
        assert operations(written(), f"tprof_{figure}_total") == expected(stuck, figure)
    assert states(written()) == {"running": 2, "closed": 0, "killed": 0, "lost": 0, "snapshot": 0}
    assert not file.with_suffix(".prom.part").exists()


def test_standard_output_has_the_same_without_an_option(stuck, tmp_path):
    done = tprof("metrics", stuck / "traces")
    assert (done.returncode, done.stderr) == (0, "")
    assert operations(done.stdout, "tprof_calls_total") == expected(stuck, "calls") != {}
    empty = tprof("metrics", tmp_path)
    assert (empty.returncode, empty.stdout, len(empty.stderr.splitlines())) == (2, "", 1)
    without_file = tprof("metrics", stuck / "traces", "--interval", "1")
    assert (without_file.returncode, "only with --textfile FILE" in without_file.stderr) == (2, True)


def test_a_scrape_has_the_same(stuck):
    with live.tool("metrics", stuck / "traces", "--listen", "0") as server:
        url = server.stderr.readline().split()[-1]
        assert url.startswith("http://127.0.0.1:") and url.endswith("/metrics")
        with urllib.request.urlopen(url) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            calls = operations(answer.read().decode(), "tprof_calls_total")
        assert calls == expected(stuck, "calls")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url.removesuffix("metrics"))
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def test_a_visitor_for_whom_there_is_no_descriptor_is_turned_away(stuck):
    """A visitor that the server left standing would keep it busy for ever."""
    with live.tool("metrics", stuck / "traces", "--listen", "0") as server:
        url = server.stderr.readline().split()[-1]
        port = int(url.split(":")[2].split("/")[0])
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        in_use = len(os.listdir(f"/proc/{server.pid}/fd"))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (in_use, limits[1]))
        with socket.create_connection(("127.0.0.1", port)) as visitor:
            assert visitor.recv(1) == b""
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
        with urllib.request.urlopen(url) as answer:
            assert operations(answer.read().decode(), "tprof_calls_total") == expected(stuck, "calls")


def test_a_port_in_use_is_one_line_and_2(stuck):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = tprof("metrics", stuck / "traces", "--listen", port)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{port}: Address already in use" in done.stderr


def test_device_time_is_there_where_calls_were_timed_and_the_file_is_written_until_the_end(tmp_path):
    traces, file = tmp_path / "traces", tmp_path / "tprof.prom"
    traces.mkdir()
    with live.tool("metrics", traces, "--textfile", file, "--interval", "0.1") as writer:
        run = start([*live.TRAINER, "10"], tmp_path, TPROF_TIMING="events")
        assert writer.wait() == 0
    text = file.read_text()
    assert states(text)["closed"] == 2
    timed = collections.Counter()
    device_ns = collections.Counter()
    for rank in run.ranks():
        for row in rank.ledger_rows():
            key = (rank.rank, row["bucket"], row["name"])
            timed[key] += row["device_timed"]
            device_ns[key] += row["device_ns"]
    assert operations(text, "tprof_device_timed_calls_total") == +timed != {}
    seconds = operations(text, "tprof_device_seconds_total")
    assert {key: round(value * 1e9) for key, value in seconds.items()} == {key: device_ns[key] for key in +timed}
    assert operations(text, "tprof_calls_total") == expected(tmp_path, "calls")
