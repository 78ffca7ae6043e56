"""tprof doctor DIR: what was traced, and what moved data past it."""

import json
import shutil
import subprocess

import pytest
from lib import faults, jobs
from lib.build import INSTANT, LIBTPROF
from lib.doctor import CALLER, PLANT, kinds, only, script
from lib.tool import generate, tprof


@pytest.fixture
def traced(tmp_path):
    """Returns traced(argument..., variable=value...), which gives the folder of a traced program's rank file."""

    def run(*arguments, **variables):
        env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(INSTANT)}
        env |= {"LD_PRELOAD": str(LIBTPROF), "TPROF_OUTPUT_DIR": str(tmp_path / "traces")}
        command = [str(CALLER), *map(str, arguments)]
        subprocess.run(command, env=env | variables, check=True, timeout=60)
        return tmp_path / "traces"

    return run


def test_a_healthy_trace_has_no_findings(doctor, traced):
    report = doctor(traced())
    assert (report["about"], report["findings"], report["tools"]) == ("trace", [], [])
    calls = {f["name"]: (f["calls"], f["library"], f["ranks"]) for f in report["functions"]}
    assert calls["ncclAllGather"] == (1, str(INSTANT / "libnccl.so.2"), [])
    assert calls["cudaMemcpy"] == (1, str(INSTANT / "libcudart.so.13"), [])


def test_what_a_process_noted_is_found_by_doctor_and_by_summary(doctor, traced, tmp_path):
    planted = shutil.copy(PLANT / "libplant_empty.so", tmp_path / "libnvshmem_host.so.3")
    second = shutil.copy(PLANT / "libplant_empty.so", tmp_path / "libnccl.so.2")
    folder = traced(planted, second, TPROF_OUPUT_DIR="x", TPROF_QUOTA="much")
    report = doctor(folder)
    found = {f["kind"]: f for f in report["findings"]}
    assert sorted(found) == ["bad_setting", "misspelt_setting", "nvshmem", "second_nccl"]
    assert str(planted) in found["nvshmem"]["text"] and str(second) in found["second_nccl"]["text"]
    assert all(f["next"] for f in found.values())
    summary = json.loads(tprof("summary", folder, "--json").stdout)
    # That a library is loaded is no finding: NVSHMEM comes with every PyTorch.
    told = [f for f in report["findings"] if f["kind"] != "nvshmem"]
    assert [f for f in summary["findings"] if f["kind"] in found] == told


SEEN_WITH = {
    "cupy": {"TPROF_DRIVER"}, "dali": {"TPROF_DRIVER"}, "static_cudart": {"TPROF_DRIVER"},
    "jax": {"TPROF_DRIVER", "TPROF_DLSYM"}, "dlsym": {"TPROF_DLSYM"}, "comm_unknown": {"TPROF_DLSYM"},
    "second_nccl": {"TPROF_DLSYM"}, "second_cudart": {"TPROF_DLSYM"}, "uncalled_cudart": {"TPROF_DLSYM"},
}  # fmt: skip
OPT_INS = {"TPROF_DRIVER", "TPROF_DLSYM"}


@pytest.mark.parametrize("on", [set(), {"TPROF_DRIVER"}, {"TPROF_DLSYM"}, OPT_INS])
def test_advice_is_never_what_is_in_force(doctor, tmp_path, on):
    generate(tmp_path / "job", 2, 12)
    noted = [{"path": f"/opt/{kind}.so", "kind": kind} for kind in SEEN_WITH]
    config = {name: "1" if name in on else "0" for name in OPT_INS}
    for file in (tmp_path / "job").iterdir():
        changed(file, ('"unseen":[]', f'"missed":[{{"name":"ncclSend","calls":3}}],"unseen":{json.dumps(noted)}'),
                ('"config":{', f'"config":{json.dumps(config)[:-1]},'))  # fmt: skip
    report = doctor(tmp_path / "job")
    summary = json.loads(tprof("summary", tmp_path / "job", "--json").stdout)["findings"]
    for findings in report["findings"], summary:
        next_of = {f["kind"]: f["next"] for f in findings}
        for kind, settings in SEEN_WITH.items():
            advised = {name for name in OPT_INS if f"{name}=1" in next_of.get(kind, "")}
            assert advised == settings - on, kind
            # A finding that leaves nothing to do is not there at all.
            assert next_of.get(kind, "something") != ""
        assert ("TPROF_DLSYM=1" in next_of["missed"]) == ("TPROF_DLSYM" not in on)
        assert "TPROF_DRIVER" not in next_of["missed"]


@pytest.mark.parametrize("dlsym", ["0", "1"])
def test_of_cupy_with_its_runtime_linked_in_the_drivers_setting_is_said(doctor, traced, tmp_path, dlsym):
    """CuPy 14: api/runtime has the CUDA runtime linked in, and links NCCL as others do."""
    cupy = tmp_path / "site/cupy_backends/cuda/api/runtime.cpython-311-x86_64-linux-gnu.so"
    cupy.parent.mkdir(parents=True)
    shutil.copy(PLANT / "libplant_empty.so", cupy)
    (tmp_path / "site/cupy").mkdir()
    (tmp_path / "site/cupy/__init__.py").write_text("")
    run = script(tmp_path / "train", "/usr/bin/env python3")
    env = {"PYTHONPATH": str(tmp_path / "site"), "TPROF_DLSYM": dlsym}
    for report in doctor(traced(cupy, TPROF_DLSYM=dlsym)), doctor("--", run, env=env):
        found = {f["kind"]: f for f in report["findings"]}
        assert (found["cupy"]["severity"], found["cupy"]["next"]) == ("note", "set TPROF_DRIVER=1")
    assert "cupy" not in kinds(doctor("--", run, env=env | {"TPROF_DRIVER": "1"}))


def test_nothing_is_said_of_cupy_where_the_drivers_copies_count(doctor, traced, tmp_path):
    cupy = tmp_path / "cupy_backends/cuda/api/runtime.cpython-311-x86_64-linux-gnu.so"
    cupy.parent.mkdir(parents=True)
    shutil.copy(PLANT / "libplant_empty.so", cupy)
    assert "cupy" not in kinds(doctor(traced(cupy, TPROF_DRIVER="1")))


def changed(file, *changes):
    text = file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)


def test_ranks_that_differ_are_told_apart(doctor, tmp_path):
    generate(tmp_path / "job", 4, 12)
    assert doctor(tmp_path / "job")["findings"] == []
    file = tmp_path / "job/rank-00002.json"
    changed(file, ('"nccl_version":22809', '"nccl_version":22703'),
            ("/usr/lib/libnccl.so.2", "/opt/libnccl.so.2"))  # fmt: skip
    report = doctor(tmp_path / "job")
    assert "22703 on rank 2" in only(report, "versions_differ", "warning")["text"]
    ranks = {f["library"]: f["ranks"] for f in report["functions"] if "nccl" in f["library"]}
    assert ranks == {"/usr/lib/libnccl.so.2": [0, 1, 3], "/opt/libnccl.so.2": [2]}


def test_a_job_without_a_collective_that_has_nccl_loaded(doctor, tmp_path):
    generate(tmp_path / "job", 2, 0)
    for file in (tmp_path / "job").iterdir():
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if '"tprof_comm"' not in line))
        changed(file, ('"comms":[{"comm":1,"collectives":0,"signature":"0000000000000000","marks":[]}]',
                       '"comms":[]'))  # fmt: skip
    only(doctor(tmp_path / "job"), "no_nccl", "note")


def test_what_a_trace_lacks_is_said_and_what_its_ranks_did_is_not(doctor, tmp_path):
    """The rank that is left was cut after a few lines, so nobody knows whether it called NCCL."""
    job = faults.pin(jobs.healthy(3, 20, 5, [[0, 1, 2]]), 0)
    assert doctor(faults.plant_skipped(job, 1, 0, 9).write(tmp_path / "different"))["findings"] == []
    folder = job.write(tmp_path / "cut")
    (folder / "rank-00000.json").unlink()
    assert kinds(doctor(folder)) == ["missing_rank"]
    (folder / "rank-00001.json").unlink()
    file = folder / "rank-00002.json"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
    assert sorted(kinds(doctor(folder))) == ["lost", "missing_rank"]


def test_text_of_a_trace_cannot_reach_the_terminal(doctor, tmp_path):
    generate(tmp_path / "job", 1, 1)
    evil = '"tools":[{"path":"\\u001b[31m/tool","kind":"preload"}]'
    changed(tmp_path / "job/rank-00000.json", ('"tools":[]', evil))
    text = doctor.raw(tmp_path / "job").stdout
    assert "[31m/tool" in text and "\x1b" not in text


def test_a_folder_without_traces(doctor, tmp_path):
    done = doctor.raw(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tprof: ") and done.stderr.count("\n") == 1
