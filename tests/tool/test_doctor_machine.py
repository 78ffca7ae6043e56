"""tprof doctor on this machine and environment: each fault is planted and found."""

import json
import re
import resource
import shutil
import subprocess

import pytest
from lib.build import BUILD, LIBTPROF, REPO
from lib.doctor import PLANT, kinds, library, only


def test_a_healthy_machine_has_no_findings_and_keeps_no_trace_of_the_visit(doctor):
    report = doctor()
    assert (report["about"], report["findings"], report["tools"]) == ("machine", [], [])
    facts = {fact["key"]: fact["text"] for fact in report["facts"]}
    assert facts["library"] == str(LIBTPROF)
    assert facts["output"].startswith(str(doctor.folder / "tprof-traces"))
    assert list(doctor.folder.iterdir()) == []
    assert doctor.raw().stdout.endswith("\nNo findings.\n")


def test_the_page_lists_the_settings_as_they_are(doctor):
    rows = re.findall(r"^\| `(TPROF_\w+)` \| `(.*?)` \| (.*?) \| (.*?) \|$",
                      (REPO / "interpose/session/README.md").read_text(), re.MULTILINE)  # fmt: skip
    settings = doctor()["settings"]
    assert rows == [(s["name"], s["default"], s["values"], s["meaning"]) for s in settings]
    assert all(s["in_force"] == s["default"] and s["set"] is None for s in settings)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TPROF_OUPUT_DIR", "TPROF_OUTPUT_DIR"),
        ("TPROF_EVENT", "TPROF_EVENTS"),
        ("TPROF_XYZZY", None),
    ],
)
def test_a_misspelt_setting(doctor, name, meant):
    finding = only(doctor(env={name: "off"}), "misspelt_setting", "warning")
    assert name in finding["text"]
    if meant:
        assert finding["next"] == f"did you mean {meant}?"


@pytest.mark.parametrize(
    ("name", "value"),
    [("TPROF_QUOTA", "much"), ("TPROF_EVENTS", "ON"), ("TPROF_RANKS", "3-1"), ("TPROF_RING", "65")],
)
def test_a_value_that_is_not_understood(doctor, name, value):
    report = doctor(env={name: value})
    assert f"{name}={value}" in only(report, "bad_setting", "warning")["text"]
    (setting,) = [s for s in report["settings"] if s["name"] == name]
    assert (setting["set"], setting["in_force"]) == (value, setting["default"])


def test_settings_that_are_well_are_in_force(doctor):
    report = doctor(env={"TPROF_EVENTS": "off", "TPROF_BUILD": "build"})
    assert report["findings"] == []
    (events,) = [s for s in report["settings"] if s["name"] == "TPROF_EVENTS"]
    assert (events["set"], events["in_force"]) == ("off", "off")


def test_tracing_that_is_switched_off(doctor):
    assert kinds(doctor(env={"TPROF_DISABLE": "0"})) == []
    only(doctor(env={"TPROF_DISABLE": "1"}), "disabled", "warning")


def test_a_folder_that_cannot_be_made(doctor):
    (doctor.folder / "file").write_text("")
    for folder, there in ("file/traces", "/file"), ("file", "/file"), ("/proc/traces", "/proc"):
        finding = only(doctor(env={"TPROF_OUTPUT_DIR": folder}), "output_unusable", "error")
        assert f"{there}: " in finding["text"]
    assert (doctor.folder / "file").read_text() == ""


def test_a_folder_that_cannot_be_written_to(doctor):
    """Nobody can make a file in /proc/sys, not even root."""
    finding = only(doctor(env={"TPROF_OUTPUT_DIR": "/proc/sys"}), "output_unusable", "error")
    assert "cannot create a file in /proc/sys" in finding["text"]


def test_only_the_part_of_the_folder_that_all_processes_share_is_tried(doctor):
    report = doctor(env={"TPROF_OUTPUT_DIR": "deep/er/%j/%h/"})
    assert report["findings"] == []
    facts = {fact["key"]: fact["text"] for fact in report["facts"]}
    assert facts["output"].startswith(str(doctor.folder / "deep/er") + " (deep/er/%j/%h/)")
    assert list(doctor.folder.iterdir()) == []


def test_a_disk_without_room_for_a_ring_file(doctor, small_disk):
    folder = small_disk("1m")
    finding = only(doctor(env={"TPROF_OUTPUT_DIR": str(folder)}), "output_full", "error")
    assert "No space left" in finding["text"]
    assert list(folder.iterdir()) == []


def test_a_disk_without_room_for_the_lines_of_one_process(doctor, small_disk):
    env = {"TPROF_OUTPUT_DIR": str(small_disk("32m"))}
    only(doctor(env=env), "output_small", "warning")
    assert doctor(env=env | {"TPROF_QUOTA": "1MiB"})["findings"] == []


def test_a_ring_dir_that_cannot_be_is_said_and_one_that_can_is_in_force(doctor, tmp_path):
    finding = only(doctor(env={"TPROF_RING_DIR": "/proc/self"}), "ring_dir_unusable", "warning")
    assert "/proc/self (TPROF_RING_DIR)" in finding["text"]
    finding = only(doctor(env={"TPROF_RING_DIR": "here"}), "bad_setting", "warning")
    assert "auto, or an absolute folder" in finding["next"]


def test_where_no_folder_can_hold_a_ring_file(tmp_path):
    """ramfs is not on the list of file systems that map safely."""
    if str(BUILD).startswith("/tmp/") or subprocess.run(["unshare", "-m", "true"]).returncode != 0:
        pytest.skip("needs the right to mount, and not over the build")
    script = """for folder in /tmp /dev/shm; do mount -t ramfs none $folder || exit 77; done
    TMPDIR=/tmp TPROF_OUTPUT_DIR=/tmp/traces "$1" doctor --json"""
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(BUILD / "tprof")], capture_output=True, text=True
    )
    if done.returncode == 77:
        pytest.skip("needs the right to mount a ramfs")
    finding = only(json.loads(done.stdout), "ring_nowhere", "warning")
    assert "a kill would lose up to 10 s" in finding["text"] and "TPROF_RING_DIR" in finding["next"]


LIMITS = {
    "no file": (resource.RLIMIT_FSIZE, 4096, "error", "-f"),
    "files smaller than the quota": (resource.RLIMIT_FSIZE, 16 << 20, "warning", "-f"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(doctor, name):
    which, value, severity, flag = LIMITS[name]
    hard = resource.getrlimit(which)[1]
    report = doctor(preexec_fn=lambda: resource.setrlimit(which, (value, hard)))
    assert f"ulimit {flag}" in only(report, "limit", severity)["text"]


def test_preloads_and_their_order(doctor):
    other, interposer = PLANT / "libplant_empty.so", PLANT / "libplant_interposer.so"
    report = doctor(env={"LD_PRELOAD": f"{other} {LIBTPROF}:{interposer}"})
    assert report["tools"] == [
        {"kind": "preload_before", "path": str(other)},
        {"kind": "preload", "path": str(interposer)},
    ]
    assert report["findings"] == []
    order = {fact["key"]: fact["text"] for fact in report["facts"]}["preloads"]
    assert order == f"{other}, then {LIBTPROF}, then {interposer} (has 1 of our functions)"
    for ours in (f":{LIBTPROF}", ""):  # `tprof run` puts it there, too
        wrong = doctor(env={"LD_PRELOAD": f"{interposer}{ours}"})
        assert "put libtprof.so first" in only(wrong, "interposer", "warning")["next"]


def test_a_preload_with_a_dlsym_is_named(doctor, tmp_path):
    hook = tmp_path / "libhook.so"
    source = "void* dlsym(void* handle, const char* name) { return 0; }"
    subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", hook], input=source, text=True, check=True)
    report = doctor(env={"LD_PRELOAD": f"{LIBTPROF}:{hook}"})
    order = {fact["key"]: fact["text"] for fact in report["facts"]}["preloads"]
    assert order == f"{LIBTPROF}, then {hook} (has a dlsym of its own)"
    assert report["findings"] == []


def test_events_that_one_queue_keeps_from_being_recorded(doctor):
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "TPROF_TIMING": "events"}
    assert "TPROF_TIMING=cupti" in only(doctor(env=env), "one_queue", "note")["next"]
    for other in ({"TPROF_TIMING": "cupti"}, {"TPROF_TIMING": "host"}, {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}):
        assert doctor(env=env | other)["findings"] == []


@pytest.mark.parametrize(
    ("variable", "kind"),
    [
        ("NVTX_INJECTION64_PATH", "nvtx_injection"),
        ("CUDA_INJECTION64_PATH", "cuda_injection"),
        ("NCCL_PROFILER_PLUGIN", "nccl_profiler"),
    ],
)
def test_tools_that_variables_bring_in(doctor, variable, kind):
    report = doctor(env={variable: "/opt/tool.so"})
    assert report["tools"] == [{"kind": kind, "path": "/opt/tool.so"}]
    assert all(finding["severity"] == "note" for finding in report["findings"])


def beside(folder, make_library):
    """Runs a copy of tprof with another libtprof.so beside it."""
    folder.mkdir()
    shutil.copy(BUILD / "tprof", folder / "tprof")
    make_library(folder / "libtprof.so")
    command = [folder / "tprof", "doctor", "--json"]
    return subprocess.run(
        command, cwd=folder, env={"PATH": "/bin"}, capture_output=True, text=True, timeout=60
    )


def test_a_library_that_does_not_load(tmp_path):
    needs = library(tmp_path / "libneeded.so")
    source = "int cudaMemcpy(void) { return 0; } extern int nothing; int *p = &nothing;"
    done = beside(tmp_path / "bin", lambda path: library(path, source, needs))
    needs.unlink()
    assert done.returncode == 1
    only(json.loads(done.stdout), "does_not_load", "error")


def test_a_library_that_is_none(tmp_path):
    done = beside(tmp_path / "bin", lambda path: path.write_text("not a library"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tprof: {tmp_path}/bin/libtprof.so: expected libtprof.so here\n"
