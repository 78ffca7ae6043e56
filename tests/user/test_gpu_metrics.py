"""TPROF_METRICS=…,gpus: compares the lanes of the devices with the numbers that the stand-in of NVML
makes up (tests/standin/nvml). It stops whoever uses it as NVML can't be used."""

import re

import pytest
from lib import launch
from lib.build import BUILD
from lib.contract import not_as_the_contract_says
from lib.rankfile import lines_of, parsed_so_far
from lib.runs import until
from lib.tool import merged, tprof

NVML = BUILD / "standin-nvml"
OURS = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "TPROF_METRICS": "100ms,gpus"}
LEVELS = ("utilization, %", "memory, bytes", "power, W")
RATES = {"GPU 0 PCIe, bytes/s", "GPU 1 PCIe, bytes/s", "GPU 0 NVLink, bytes/s"}


def lanes(lines):
    """Returns name -> the values of a GPU's counters, in their order."""
    found = {}
    for line in lines:
        if line.get("cat") == "COUNTER" and line["name"].startswith("GPU "):
            found.setdefault(line["name"], []).append(line["args"])
    return found


def about(**rates):
    """The counters are read a moment before the clock, and a busy machine stretches it."""
    return {key: pytest.approx(rate, 0.4) for key, rate in rates.items()}


def seen(traces):
    files = list(traces.glob("*.json"))
    return lanes(parsed_so_far(files[0])) if files else {}


def run(folder, enough, **settings):
    """Runs a process until its file has enough. Returns its exit status, what it said, and its traces."""
    words = [BUILD / "user_uses", "wait", folder / "over"]
    with launch.running(words, folder, libraries=NVML, **(OURS | settings)) as process:
        until(lambda: enough(seen(folder / "traces")))
        (folder / "over").touch()
        _, said = process.communicate(timeout=launch.TIME_LIMIT_S)
    return process.returncode, said, folder / "traces"


def test_the_lanes_of_each_device_are_what_nvml_told(tmp_path):
    code, said, traces = run(tmp_path, lambda of: RATES <= of.keys())
    assert (code, said) == (0, "")
    lines = merged(traces, tmp_path / "merged.json")
    assert not_as_the_contract_says(lines_of(tmp_path / "merged.json")) == []
    of = lanes(lines)
    assert of.keys() == RATES | {f"GPU {i} {what}" for i in (0, 1) for what in LEVELS}
    for i in (0, 1):
        assert all(values == {"kernels": 10 * i + 7, "memory": 10 * i + 3} for values in of[f"GPU {i} utilization, %"])
        assert all(values == {"used": ((i + 1) << 30) + 5} for values in of[f"GPU {i} memory, bytes"])
        assert all(values == {"power": 100 * (i + 1) + 0.5} for values in of[f"GPU {i} power, W"])
        for values in of[f"GPU {i} PCIe, bytes/s"]:  # a byte a microsecond; twice as much is sent
            assert values == about(received=1e6 * (i + 1), sent=2e6 * (i + 1))
    for values in of["GPU 0 NVLink, bytes/s"]:  # a KiB a millisecond
        assert values == about(received=2 * 1024e3, sent=1024e3)


def test_a_public_copy_keeps_the_names_of_the_lanes(tmp_path):
    _, _, traces = run(tmp_path, lambda of: RATES <= of.keys())
    (file,) = traces.glob("*.json")
    assert tprof("anonymize", traces, "-o", tmp_path / "out").returncode == 0
    (copy,) = (tmp_path / "out").glob("*.json")
    assert lanes(parsed_so_far(copy)) == lanes(parsed_so_far(file))


def test_a_driver_that_hangs_keeps_neither_the_process_nor_its_other_lanes(tmp_path):
    def others(_):
        text = "".join(file.read_text() for file in (tmp_path / "traces").glob("*.json"))
        return text.count('"process CPU, % of a core"') >= 3

    code, said, traces = run(tmp_path, others, STANDIN_NVML_HANG="1")
    assert (code, said) == (0, "")
    assert seen(traces) == {}


def test_a_forked_child_leaves_nvml_alone(tmp_path):
    words = [BUILD / "user_uses", "fork", tmp_path / "file"]
    done = launch.start(words, tmp_path, libraries=NVML, **OURS)
    assert (done.code, done.stderr) == (0, "")
    (child,) = [file for file in done.ranks() if file.header.get("forked_from")]
    assert lanes(child.lines) == {}


def test_without_nvml_one_line_says_so(tmp_path):
    done = launch.start([BUILD / "user_uses", "all", tmp_path / "file"], tmp_path, libraries=None, **OURS)
    assert done.code == 0
    assert re.fullmatch(r"tprof: TPROF_METRICS: no lanes of GPUs: [^\n]+\n", done.stderr)


@pytest.mark.parametrize("setting", [{"TPROF_METRICS": "100ms"}, {"LOCAL_RANK": "1"}])
def test_nvml_is_not_loaded_unless_it_is_asked_for_on_the_process_that_tells_of_the_host(setting, tmp_path):
    done = launch.start([BUILD / "user_uses", "all", tmp_path / "file"], tmp_path, libraries=None, **(OURS | setting))
    assert (done.code, done.stderr) == (0, "")
