"""The middle of a rank file is not read where its two ends tell all. Communicators that were made
there are known, too, of a rank that closed and of one that did not."""

import json

import pytest
from lib.jobs import snapshot
from lib.tool import big_job, tprof

EDGE = 1 << 16  # bytes that are read at each end
RANKS, LINES = 9, 4000
COMMANDS = (["check", "--no-lines"], ["summary"])


@pytest.fixture
def job(tmp_path):
    """Returns job(kind), which gives a folder with rank files of 0.8 MB, each with groups born in its middle."""

    def make(kind):
        big_job(tmp_path, RANKS, LINES, kind)
        return tmp_path

    return make


def said(folder, command):
    result = tprof(*command, folder, "--json")
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return json.loads(result.stdout)


def wipe(file, begin, end):
    """Overwrites the bytes between the two, so that none of them is a line any more."""
    with open(file, "r+b") as f:
        f.seek(begin)
        f.write(bytes(end - begin))


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_closed_file_the_two_ends_are_read(job, command):
    folder = job("closed")
    whole = said(folder, command)
    for file in folder.iterdir():
        wipe(file, EDGE, file.stat().st_size - EDGE)
    assert said(folder, command) == whole


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_file_with_a_snapshot_the_beginning_is_read(job, command):
    folder = job("closed")
    for file in list(folder.iterdir()):
        text = file.read_text()
        cut = text.rindex('{"name":"tprof_ledger"')
        rest = text[cut:].removesuffix("]\n").replace('"complete":true', '"complete":false')
        header = json.loads(text.split("\n")[2].removesuffix(","))["args"]
        file.write_text(text[:cut])
        (folder / f".{file.stem}.snapshot").write_bytes(
            snapshot(header["base_time_ns"], cut, rest.encode())
        )
    whole = tprof(*command, folder, "--json")
    assert '"snapshot"' in whole.stdout
    for file in folder.glob("*.json"):
        wipe(file, EDGE, file.stat().st_size - EDGE)
    assert tprof(*command, folder, "--json").stdout == whole.stdout
