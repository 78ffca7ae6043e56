"""tprof run with TPROF_METRICS: lanes of the node and its GPUs, read by a program beside the command (tprof-node),
and where `tprof merge` puts them. The GPUs are those that the stand-in of NVML makes up (tests/standin/nvml); it
stops whoever uses it as NVML can't be used."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest
from lib import launch
from lib.build import BUILD, LIBTPROF, TPROF
from lib.contract import not_as_the_contract_says
from lib.rankfile import lines_of, named, parsed, parsed_so_far
from lib.runs import threads, until
from lib.tool import merged, summary_of, tprof

NVML = BUILD / "standin-nvml"
USES = BUILD / "user_uses"
LEVELS = ("utilization, %", "memory, bytes", "power, W")
RATES = {"GPU 0 PCIe, bytes/s", "GPU 1 PCIe, bytes/s", "GPU 0 NVLink, bytes/s"}
HOST = socket.gethostname()


def waiting(folder, rank=0):
    """Returns the command of a rank that moves nothing and ends when folder/over is there."""
    return ["env", f"RANK={rank}", "WORLD_SIZE=4", f"LOCAL_RANK={rank}", USES, "wait", folder / "over"]


def run_of(folder, *command, options=("--quiet",)):
    return [TPROF, "run", *options, "--run-id", "mine", "--out", folder / "traces", "--", *command]


def running(folder, *command, **settings):
    settings = {"TPROF_METRICS": "100ms"} | settings
    return launch.running(run_of(folder, *command), folder, preload=False, **settings)


def ends(folder, process):
    (folder / "over").touch()
    _, said = process.communicate(timeout=launch.TIME_LIMIT_S)
    return process.returncode, said


def node_files(folder):
    return sorted(path.name for path in (folder / "traces").glob("*.node*.json"))


def so_far(folder):
    file = folder / f"traces/{HOST}.node.json"
    return parsed_so_far(file) if file.exists() else []


def lanes(lines):
    """Returns name -> the values of the counters that are no process's, in their order."""
    found = {}
    for line in lines:
        if line.get("cat") == "COUNTER" and not line["name"].startswith("process "):
            assert (line["ph"], line["tid"]) == ("C", 0)
            found.setdefault(line["name"], []).append(line["args"])
    return found


def seen(folder, lane, times=2):
    return len(lanes(so_far(folder)).get(lane, [])) >= times


def about(**rates):
    """The counters are read a moment before the clock, and a busy machine stretches it."""
    return {key: pytest.approx(rate, 0.4) for key, rate in rates.items()}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Ranks 1 and 2 of one command on one node, with GPUs."""
    folder = tmp_path_factory.mktemp("run")
    both = " & ".join(" ".join(map(str, waiting(folder, rank))) for rank in (2, 1))
    with running(folder, "sh", "-c", both + "; wait", TPROF_METRICS="100ms,gpus", libraries=NVML) as process:
        until(lambda: lanes(so_far(folder)).keys() >= RATES and seen(folder, "host CPU, %"))
        assert ends(folder, process) == (0, "")
    return folder


def test_one_file_holds_what_the_kernel_says_of_the_host(run):
    assert node_files(run) == [f"{HOST}.node.json"]
    file = run / "traces" / node_files(run)[0]
    assert isinstance(json.loads(file.read_text()), list)  # it was closed
    assert not_as_the_contract_says(lines_of(file)) == []
    of = lanes(parsed(file))
    with open("/proc/meminfo") as info:
        memory = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in info}
    for values in of["host memory, bytes"]:
        assert values.keys() == {"available", "cached", "dirty"}
        assert memory["MemAvailable"] / 4 <= values["available"] <= memory["MemTotal"]
        assert 0 <= values["dirty"] <= memory["MemTotal"] and 0 < values["cached"] <= memory["MemTotal"]
    busy = [values["busy"] for values in of["host CPU, %"]]
    assert all(0 <= share <= 100 for share in busy) and max(busy) > 0


def test_the_lanes_of_each_device_are_what_nvml_told(run):
    of = {name: values for name, values in lanes(parsed(run / "traces" / node_files(run)[0])).items() if "GPU" in name}
    assert of.keys() == RATES | {f"GPU {i} {what}" for i in (0, 1) for what in LEVELS}
    for i in (0, 1):
        assert all(values == {"kernels": 10 * i + 7, "memory": 10 * i + 3} for values in of[f"GPU {i} utilization, %"])
        assert all(values == {"used": ((i + 1) << 30) + 5} for values in of[f"GPU {i} memory, bytes"])
        assert all(values == {"power": 100 * (i + 1) + 0.5} for values in of[f"GPU {i} power, W"])
        for values in of[f"GPU {i} PCIe, bytes/s"]:  # a byte a microsecond; twice as much is sent
            assert values == about(received=1e6 * (i + 1), sent=2e6 * (i + 1))
    for values in of["GPU 0 NVLink, bytes/s"]:  # a KiB a millisecond
        assert values == about(received=2 * 1024e3, sent=1024e3)


def test_merge_puts_them_behind_the_lowest_rank_on_its_clock(run, tmp_path):
    lines = merged(run / "traces", tmp_path / "merged.json")
    assert not_as_the_contract_says(lines_of(tmp_path / "merged.json")) == []
    file = parsed(run / "traces" / node_files(run)[0])
    (node,), headers = named(file, "tprof_node"), named(lines, "tprof_header")
    assert {header["rank"] for header in headers} == {1, 2}
    ranks = [parsed(path) for path in sorted((run / "traces").glob("rank-*.json"))]
    first = min(header["monotonic_ns"] for rank in ranks for header in named(rank, "tprof_header"))
    expected = []  # what was read since the first rank began, by CLOCK_MONOTONIC
    for line in file:
        if line.get("cat") == "COUNTER":
            ns = round(line["ts"] * 1000) + node["monotonic_ns"] - first
            expected += [(line["name"], ns, line["args"])] if ns >= 0 else []
    ours = [line for line in lines if line.get("cat") == "COUNTER" and not line["name"].startswith("process ")]
    assert {line["pid"] for line in ours} == {1}
    assert [(line["name"], round(line["ts"] * 1000), line["args"]) for line in ours] == expected != []
    # Whoever reads the merged trace takes them for that rank's, so that it can be merged again.
    again = merged(tmp_path / "merged.json", tmp_path / "again.json")
    assert [line for line in again if line in ours] == ours
    alone = merged(run / "traces/rank-00002.json", tmp_path / "alone.json")
    assert {line["pid"] for line in alone if line["name"] == "host CPU, %"} == {2}


def test_whatever_reads_ranks_leaves_the_file_aside(run, tmp_path):
    files = list((run / "traces").glob("*.json"))
    assert len(files) == 3
    ranks = summary_of(*sorted((run / "traces").glob("rank-*.json")))["ranks"]
    assert summary_of(run / "traces")["ranks"] == summary_of(*files)["ranks"] == ranks
    alone = tprof("summary", run / "traces" / node_files(run)[0])
    assert alone.returncode == 2 and "lanes of a node" in alone.stderr and alone.stderr.count("\n") == 1


def test_a_file_cut_anywhere_is_read_up_to_there(run, tmp_path):
    whole = merged(run / "traces", tmp_path / "whole.json")
    text = (run / "traces" / node_files(run)[0]).read_bytes()
    for size in (0, 1, 100, 500, len(text) // 2, len(text) - 1):
        cut = tmp_path / f"cut-{size}"
        shutil.copytree(run / "traces", cut)
        (cut / node_files(run)[0]).write_bytes(text[:size])
        lines = merged(cut, tmp_path / "cut.json")
        there = lanes(lines)
        assert [line for line in whole if line in lines] == lines
        assert sum(map(len, there.values())) <= text[:size].count(b"\n")


def test_two_commands_of_one_run_on_a_node_have_one_reader_and_one_file(tmp_path):
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(running(tmp_path, *waiting(tmp_path, rank))) for rank in (0, 1)]
        until(lambda: seen(tmp_path, "host CPU, %", 3))
        assert node_files(tmp_path) == [f"{HOST}.node.json"]
        (tmp_path / "over").touch()
        for process in both:
            assert (process.communicate(timeout=launch.TIME_LIMIT_S)[1], process.returncode) == ("", 0)


def test_when_the_command_with_the_reader_ends_another_goes_on(tmp_path):
    (tmp_path / "one").mkdir()
    with running(tmp_path, *waiting(tmp_path / "one", 0)) as first:
        until(lambda: seen(tmp_path, "host CPU, %"))
        with running(tmp_path, *waiting(tmp_path, 1)) as second:
            until(lambda: (tmp_path / "traces/rank-00001.json").exists())
            assert ends(tmp_path / "one", first) == (0, "")
            next_one = tmp_path / f"traces/{HOST}.node.r1.json"
            until(lambda: next_one.exists() and len(lanes(parsed_so_far(next_one)).get("host CPU, %", [])) >= 2)
            assert ends(tmp_path, second) == (0, "")
    lines = merged(tmp_path / "traces", tmp_path / "merged.json")
    times = [line["ts"] for line in lines if line["name"] == "host memory, bytes"]
    each = [len(lanes(parsed(tmp_path / "traces" / name))["host memory, bytes"]) for name in node_files(tmp_path)]
    assert len(each) == 2 and sum(each) - 2 <= len(times) <= sum(each)


def readers(folder):
    """Returns the processes that read for this folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/tprof-node") and words[1] == os.fsencode(folder / "traces"):
                found.append(int(entry.name))
    return found


def test_the_reader_ends_with_tprof_run_however_that_ends(tmp_path):
    with running(tmp_path, *waiting(tmp_path)) as process:
        until(lambda: seen(tmp_path, "host CPU, %"))
        (reader,) = readers(tmp_path)
        assert os.getsid(reader) == reader  # no signal of the command's terminal or group reaches it
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: readers(tmp_path) == [])
        (tmp_path / "over").touch()
        until(lambda: '"tprof_footer"' in (tmp_path / "traces/rank-00000.json").read_text())
        assert seen(tmp_path, "host CPU, %")
        assert "host CPU, %" in lanes(merged(tmp_path / "traces", tmp_path / "merged.json"))


def test_a_killed_reader_leaves_a_file_that_is_read(tmp_path):
    with running(tmp_path, *waiting(tmp_path)) as process:
        until(lambda: seen(tmp_path, "host CPU, %"))
        os.kill(*readers(tmp_path), signal.SIGKILL)
        until(lambda: readers(tmp_path) == [])
        assert ends(tmp_path, process) == (0, "")
    assert not (tmp_path / f"traces/{HOST}.node.json").read_text().endswith("]\n")
    assert "host CPU, %" in lanes(merged(tmp_path / "traces", tmp_path / "merged.json"))


def test_a_driver_that_hangs_keeps_neither_the_command_nor_the_other_lanes(tmp_path):
    with running(
        tmp_path, *waiting(tmp_path), TPROF_METRICS="100ms,gpus", STANDIN_NVML_HANG="1", libraries=NVML
    ) as process:
        until(lambda: seen(tmp_path, "host CPU, %", 3))
        assert ends(tmp_path, process) == (0, "")
    assert not [name for name in lanes(so_far(tmp_path)) if "GPU" in name]


def test_without_nvml_one_line_says_so_and_the_host_has_its_lanes(tmp_path):
    with running(tmp_path, *waiting(tmp_path), TPROF_METRICS="100ms,gpus", libraries=None) as process:
        until(lambda: seen(tmp_path, "host CPU, %"))
        code, said = ends(tmp_path, process)
    assert code == 0 and re.fullmatch(r"tprof: TPROF_METRICS: no lanes of GPUs: [^\n]+\n", said)


def test_nvml_is_not_loaded_unless_it_is_asked_for(tmp_path):
    with running(tmp_path, *waiting(tmp_path), libraries=None) as process:
        until(lambda: seen(tmp_path, "host CPU, %"))
        assert ends(tmp_path, process) == (0, "")


def test_the_training_process_opens_nothing_of_the_host_and_no_nvml(tmp_path):
    with running(tmp_path, *waiting(tmp_path), TPROF_METRICS="100ms,gpus", libraries=NVML) as process:
        until(lambda: seen(tmp_path, "GPU 0 power, W"))
        (pid,) = (h["pid"] for p in (tmp_path / "traces").glob("rank*") for h in named(parsed_so_far(p), "tprof_header"))
        opened = {os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        assert not opened & {"/proc/stat", "/proc/meminfo", "/proc/diskstats", "/sys/block", "/sys/class/net"}
        assert "libnvidia-ml" not in pathlib.Path(f"/proc/{pid}/maps").read_text()
        assert "tprof-gpus" not in threads(pid).values()
        assert ends(tmp_path, process) == (0, "")


@pytest.mark.parametrize(
    "settings", [{"TPROF_METRICS": None}, {"TPROF_EVENTS": "off"}, {"TPROF_DISABLE": "1"}, {"TPROF_METRICS": "off"}]
)
def test_nobody_reads_where_no_lanes_are_wanted(settings, tmp_path):
    with running(tmp_path, *waiting(tmp_path), **settings) as process:
        assert readers(tmp_path) == []
        assert ends(tmp_path, process) == (0, "")
    assert node_files(tmp_path) == []


def test_a_command_that_makes_no_call_leaves_nothing(tmp_path):
    env = launch.environment(tmp_path, preload=False, TPROF_METRICS="100ms")
    done = subprocess.run(
        [TPROF, "run", "--", "sleep", "0.3"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "no NCCL or CUDA call was seen" in done.stderr) == (0, True)
    assert os.listdir(env["TPROF_OUTPUT_DIR"]) == []


def test_a_quota_bounds_the_file(tmp_path):
    """A run without one, in another folder, tells how long to wait."""
    with running(tmp_path, *waiting(tmp_path), TPROF_QUOTA="2000") as process:
        until(lambda: seen(tmp_path, "host CPU, %"))
        with running(tmp_path / "other", *waiting(tmp_path)) as other:
            until(lambda: seen(tmp_path / "other", "host CPU, %", 10))
            assert ends(tmp_path, process) == (0, "")
            other.wait()
    file, unbounded = (folder / f"traces/{HOST}.node.json" for folder in (tmp_path, tmp_path / "other"))
    assert file.stat().st_size <= 2000 + len("]\n") < unbounded.stat().st_size


def test_a_missing_program_costs_the_lanes_of_the_host_and_one_line(tmp_path):
    (tmp_path / "bin").mkdir()
    for file in (TPROF, LIBTPROF):
        shutil.copy(file, tmp_path / "bin")
    command = [tmp_path / "bin/tprof", *run_of(tmp_path, "true")[1:]]
    done = launch.start(command, tmp_path, preload=False, TPROF_METRICS="100ms")
    assert done.code == 0
    assert re.fullmatch(r"tprof: TPROF_METRICS: no lanes of the host: \S+/tprof-node: No such file[^\n]+\n", done.stderr)
