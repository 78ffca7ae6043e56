"""A pid that is one of a container's is not given to the host's tools without a word."""

import json
import os

import pytest
from lib import runs
from lib.tool import tprof

HOSTS = 4026531836  # Linux's number of the host's own pid namespace
OURS = os.stat("/proc/self/ns/pid").st_ino


def py_spy(folder):
    done = tprof("check", folder, "--stuck-after", "0.1", "--json")
    return [f["next"] for f in json.loads(done.stdout)["findings"] if "py-spy" in (f["next"] or "")]


@pytest.mark.parametrize("namespace, said", [
    (HOSTS, ""),
    (OURS, ""),
    (4026532999, " (inside its container: not the host's pid)"),
    (None, " (inside its container, if it has one, which is unknown)"),
])  # fmt: skip
def test_where_a_pid_is_valid_is_said_with_it(namespace, said, tmp_path):
    """The client stands in a call; what its header says of its namespace is changed, in place."""
    with runs.standing(tmp_path, runs.client("calls", 400, 1), "inside", INSTANT_GATE="20", RANK="0", WORLD_SIZE="1"):
        file = runs.rank_file(tmp_path / "traces")
        header = runs.header_of(tmp_path / "traces")
        assert header["pid_namespace"] == OURS
        before = f',"pid_namespace":{OURS},'
        after = "," if namespace is None else f',"pid_namespace":{namespace},'
        with file.open("r+") as written:  # by the process, too: nothing but these bytes may change
            written.seek(file.read_text().index(before))
            written.write(after.ljust(len(before)))
        advice = runs.until(lambda: py_spy(tmp_path / "traces"))
        assert len(advice) == 1 and advice[0].endswith(f"--pid {header['pid']} on {header['host']}{said}")
