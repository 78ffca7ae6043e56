"""tprof doctor on this machine and environment: each fault is planted and found."""

import json
import re
import resource
import shutil
import subprocess

import pytest
from lib.build import BUILD, LIBTPROF, REPO
from lib.doctor import PLANT, library, only


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


ONE_QUEUE = {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "TPROF_TIMING": "events"}
# variables -> kind and severity of the only finding, and words of its text and of what to do next
ENVIRONMENTS = [
    ({"TPROF_OUPUT_DIR": "off"}, "misspelt_setting", "warning", "TPROF_OUPUT_DIR", "did you mean TPROF_OUTPUT_DIR?"),
    ({"TPROF_EVENT": "off"}, "misspelt_setting", "warning", "TPROF_EVENT", "did you mean TPROF_EVENTS?"),
    ({"TPROF_XYZZY": "off"}, "misspelt_setting", "warning", "TPROF_XYZZY", ""),
    *(({name: value}, "bad_setting", "warning", f"{name}={value}", "") for name, value in (
        ("TPROF_QUOTA", "much"), ("TPROF_EVENTS", "ON"), ("TPROF_RANKS", "3-1"), ("TPROF_RING", "65"),
        ("TPROF_MEMORY", "2"), ("TPROF_DRIVER", "please"), ("TPROF_DISABLE", "TRUE"), ("TPROF_WINDOW_FILES", "-1"),
    )),
    *(({"TPROF_OPS": ops}, "bad_setting", "warning", f"not understood: no bucket or function is named {name}", "")
      for ops, name in (("NOPE", "NOPE"), ("H2D,ncclAllGathr,x*", "ncclAllGathr"))),
    ({"TPROF_OPS": "h2d,nccl*reduce*,cudaMemcpyAsync"}, None, "", "", ""),
    ({"TPROF_MEMORY": "yes", "TPROF_DISABLE": "no"}, None, "", "", ""),
    ({"TPROF_EVENTS": "off", "TPROF_BUILD": "build"}, None, "", "", ""),
    ({"TPROF_DISABLE": "0"}, None, "", "", ""),
    ({"TPROF_DISABLE": "1"}, "disabled", "warning", "", ""),
    ({"TPROF_OUTPUT_DIR": "file/traces"}, "output_unusable", "error", "/file: ", ""),
    ({"TPROF_OUTPUT_DIR": "file"}, "output_unusable", "error", "/file: ", ""),
    ({"TPROF_OUTPUT_DIR": "/proc/traces"}, "output_unusable", "error", "/proc: ", ""),
    # Nobody can make a file here, not even root.
    ({"TPROF_OUTPUT_DIR": "/proc/sys"}, "output_unusable", "error", "cannot create a file in /proc/sys", ""),
    ({"TPROF_RING_DIR": "/proc/self"}, "ring_dir_unusable", "warning", "/proc/self (TPROF_RING_DIR)", ""),
    ({"TPROF_RING_DIR": "here"}, "bad_setting", "warning", "", "auto, or an absolute folder"),
    (ONE_QUEUE, "one_queue", "note", "", "TPROF_TIMING=cupti"),
    (ONE_QUEUE | {"TPROF_TIMING": "cupti"}, None, "", "", ""),
    (ONE_QUEUE | {"TPROF_TIMING": "host"}, None, "", "", ""),
    (ONE_QUEUE | {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}, None, "", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("env", "kind", "severity", "text", "then"), ENVIRONMENTS)
def test_what_is_wrong_with_an_environment(doctor, env, kind, severity, text, then):
    (doctor.folder / "file").write_text("")
    report = doctor(env=env)
    settings = {s["name"]: (s["set"], s["in_force"], s["default"]) for s in report["settings"]}
    default_used = kind == "bad_setting" and "TPROF_OPS" not in env
    if kind is None:
        assert report["findings"] == []
    else:
        found = only(report, kind, severity)
        assert text in found["text"] and then in (found["next"] or "")
    for name in env.keys() & settings.keys():
        given, in_force, default = settings[name]
        assert (given, in_force) == (env[name], default if default_used else env[name])
    assert [(file.name, file.read_text()) for file in doctor.folder.iterdir()] == [("file", "")]


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


@pytest.mark.parametrize(("most", "severity"), [(4096, "error"), (16 << 20, "warning")])  # no file; less than the quota
def test_limits(doctor, most, severity):
    limits = (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    report = doctor(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))
    assert "ulimit -f" in only(report, "limit", severity)["text"]


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
