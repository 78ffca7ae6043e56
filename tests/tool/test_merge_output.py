"""`merge -o`: what is there under the name of the output decides how the output gets there."""

import gzip
import os
import stat
import subprocess
import threading

import pytest
from lib.build import BUILD
from lib.tool import generate, tprof


@pytest.fixture
def traces(tmp_path):
    generate(tmp_path / "run", 2, 20)
    return tmp_path / "run"


@pytest.fixture
def merged(traces, tmp_path):
    """Returns the merged trace of `traces`."""
    expected = tmp_path / "expected.json"
    assert tprof("merge", traces, "-o", expected).returncode == 0
    return expected.read_bytes()


def merge_into(traces, output, **options):
    command = [BUILD / "tprof", "merge", traces, "-o", output]
    return subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False, **options)


def test_a_dash_is_standard_output(traces, merged, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    done = merge_into(traces, "-", stdout=subprocess.PIPE, cwd=folder)
    assert (done.returncode, done.stdout) == (0, merged)
    assert done.stderr.startswith(b"standard output: 2 processes, ")
    assert list(folder.iterdir()) == []


def test_a_file_that_is_standard_output_is_written_to_where_it_stands(traces, merged, tmp_path):
    """It is not renamed over: what the shell appends afterwards would go into the file that was there."""
    file = tmp_path / "log"
    file.write_bytes(b"before\n")
    # This stands for /dev/stdout, which would be lost to the machine if this failed as root.
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    with file.open("ab") as appended:
        assert merge_into(traces, link, stdout=appended).returncode == 0
        appended.write(b"after\n")
    assert file.read_bytes() == b"before\n" + merged + b"after\n"


def test_a_fifo_stays_one_and_its_reader_gets_the_trace(traces, merged, tmp_path):
    fifo = tmp_path / "pipe.json.gz"
    os.mkfifo(fifo)
    # It is held open, so that neither end waits for the other where nobody writes.
    held = os.open(fifo, os.O_RDWR)
    got = []
    reader = threading.Thread(target=lambda: got.append(gzip.open(fifo).read()), daemon=True)
    reader.start()
    done = merge_into(traces, fifo)
    assert (done.returncode, stat.S_ISFIFO(fifo.lstat().st_mode)) == (0, True)
    os.close(held)
    reader.join(timeout=60)
    assert got == [merged]


def test_a_device_stays_one(traces, tmp_path):
    """Root could rename over /dev/null, and must not."""
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert merge_into(traces, device).returncode == 0
    assert stat.S_ISCHR(device.lstat().st_mode)


@pytest.mark.parametrize("there", (True, False), ids=("a-file", "nothing-yet"))
def test_a_symlink_is_followed(traces, merged, tmp_path, there):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "trace.json"
    if there:
        target.write_bytes(merged[:-2])  # an older one
    links = [tmp_path / "first.json", tmp_path / "second.json"]
    links[0].symlink_to("second.json")
    links[1].symlink_to("elsewhere/trace.json")
    assert merge_into(traces, links[0]).returncode == 0
    assert [link.is_symlink() for link in links] == [True, True]
    assert target.read_bytes() == merged
    assert list(elsewhere.iterdir()) == [target]


def test_links_in_a_circle_are_no_output(traces, tmp_path):
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    done = merge_into(traces, tmp_path / "a.json")
    assert done.returncode == 2
    assert done.stderr.decode() == f"tprof: {tmp_path}/a.json: can't be written: Too many levels of symbolic links\n"
    assert (tmp_path / "a.json").is_symlink()


def test_a_folder_is_no_output(traces, tmp_path):
    (tmp_path / "folder").mkdir()
    done = merge_into(traces, tmp_path / "folder")
    assert done.returncode == 2
    assert done.stderr.decode() == f"tprof: {tmp_path}/folder: can't be written: Is a directory\n"


@pytest.mark.parametrize("command", [
    "anonymize -o", "export --csv", "export --parquet", "export --kineto -o", "export --inspector -o", "export --sqlite",
])  # fmt: skip
def test_what_needs_a_name_is_no_standard_output(traces, tmp_path, command):
    name, *option = command.split()
    done = tprof(name, traces, *option, "-", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    what = "file" if "--sqlite" in option else "folder"
    assert done.stderr == f"tprof: -: the output is a {what}, not standard output\n"
    assert list(tmp_path.iterdir()) == [traces]
