"""tprof doctor: each finding is planted and found, and where nothing is wrong nothing is said."""

import json
import os
import re
import resource
import shutil
import stat
import subprocess

import pytest
from lib.build import BUILD, INSTANT, LIBTPROF, REPO
from lib.tool import generate, tprof

PLANT = BUILD / "tests/loader/plant"
CALLER = BUILD / "plant_caller"


class Doctor:
    """Runs `tprof doctor --json` in a folder of its own, in an environment of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.code = None

    def raw(self, *arguments, env=None, **options):
        environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(INSTANT)} | (env or {})
        return tprof("doctor", *arguments, cwd=self.folder, env=environment, **options)

    def __call__(self, *arguments, env=None, **options):
        done = self.raw("--json", *arguments, env=env, **options)
        assert done.returncode in (0, 1), done.stderr
        report = json.loads(done.stdout)
        assert report["schema"] == "tprof-doctor/1"
        # Its exit code is its verdict.
        severe = [f for f in report["findings"] if f["severity"] != "note"]
        assert done.returncode == (1 if severe else 0)
        return report


@pytest.fixture
def doctor(tmp_path):
    (tmp_path / "work").mkdir()
    return Doctor(tmp_path / "work")


def kinds(report):
    return [finding["kind"] for finding in report["findings"]]


def only(report, kind, severity):
    """The one finding, which is that."""
    (finding,) = report["findings"]
    assert (finding["kind"], finding["severity"]) == (kind, severity), finding
    return finding


def compiled(path, source="int main() {}", *options):
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-o", str(path), "-x", "c", "-", "-x", "none", *map(str, options)]
    subprocess.run(command, input=source, text=True, check=True, timeout=60)
    return path


def library(path, source="int nothing;", *options):
    return compiled(path, source, "-shared", "-fPIC", f"-Wl,-soname,{path.name}", *options)


# ---- this machine and environment


def test_a_healthy_machine_has_no_findings_and_keeps_no_trace_of_the_visit(doctor):
    report = doctor()
    assert (report["about"], report["findings"], report["tools"]) == ("machine", [], [])
    facts = {fact["key"]: fact["text"] for fact in report["facts"]}
    assert facts["library"] == str(LIBTPROF)
    assert facts["output"].startswith(str(doctor.folder / "tprof-traces"))
    assert list(doctor.folder.iterdir()) == []
    assert doctor.raw().stdout.endswith("\nNo findings.\n")


def test_the_readme_lists_the_settings_as_they_are(doctor):
    rows = re.findall(r"^\| `(TPROF_\w+)` \| `(.*?)` \| (.*?) \| (.*?) \|$",
                      (REPO / "README.md").read_text(), re.MULTILINE)  # fmt: skip
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
    """Nobody can make a file in /proc/sys, root neither."""
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
    """ramfs is not on the list of what maps safely."""
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
    assert "a kill loses up to 10 s" in finding["text"] and "TPROF_RING_DIR" in finding["next"]


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
    wrong = doctor(env={"LD_PRELOAD": f"{interposer}:{LIBTPROF}"})
    assert "put libtprof.so first" in only(wrong, "interposer", "warning")["next"]


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
    """A copy of tprof with another libtprof.so beside it."""
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


# ---- what would be traced of a command


def test_a_healthy_program_is_served_by_the_libraries_that_it_would_load(doctor):
    report = doctor("--", CALLER, "an argument", "--json")
    assert (report["about"], report["findings"]) == ("command", [])
    rows = subprocess.check_output([BUILD / "wrapped_functions"], text=True, timeout=60).split()
    functions = {f["name"]: f["library"] for f in report["functions"]}
    # The driver's are counted on request only.
    assert sorted(functions) == sorted(row for row in rows if not re.match("cu[A-Z]", row))
    assert functions["ncclAllGather"] == str(INSTANT / "libnccl.so.2")
    assert functions["cudaMemcpy"] == str(INSTANT / "libcudart.so.13")
    assert functions["ncclGather"] is None  # the instant NCCL has none


def test_a_library_is_found_as_the_loader_finds_it(doctor, tmp_path):
    """By RUNPATH, unless LD_LIBRARY_PATH has one."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(INSTANT / "libnccl.so.2", tmp_path / name)
    source = "int ncclGroupStart(void); int main() { return ncclGroupStart(); }"
    program = compiled(tmp_path / "program", source, tmp_path / "one/libnccl.so.2",
                       f"-Wl,--enable-new-dtags,-rpath,{tmp_path}/one")  # fmt: skip
    for expected, variable in (("one", "/nowhere"), ("two", tmp_path / "two")):
        report = doctor("--", program, env={"LD_LIBRARY_PATH": str(variable)})
        functions = {f["name"]: f["library"] for f in report["functions"]}
        assert functions["ncclGroupStart"] == str(tmp_path / expected / "libnccl.so.2")


def test_a_library_that_is_not_found(doctor, tmp_path):
    needs = library(tmp_path / "libcudart.so.99")
    source = "extern int nothing; int main() { return nothing; }"
    program = compiled(tmp_path / "program", source, needs)
    needs.unlink()
    finding = doctor("--", program)["findings"][0]
    assert (finding["kind"], finding["severity"]) == ("not_found", "error")
    assert f"{program} wants libcudart.so.99" in finding["text"]


def test_a_static_program(doctor, tmp_path):
    program = compiled(tmp_path / "static", "int main() {}", "-static")
    only(doctor("--", program), "static_program", "error")
    also_pie = compiled(tmp_path / "static-pie", "int main() {}", "-static-pie")
    only(doctor("--", also_pie), "static_program", "error")


@pytest.mark.parametrize("bit", [stat.S_ISUID, stat.S_ISGID])
def test_a_setuid_program(doctor, tmp_path, bit):
    program = shutil.copy(CALLER, tmp_path / "privileged")
    program.chmod(0o755 | bit)
    assert "setuid" in only(doctor("--", program), "secure_execution", "error")["text"]


def test_a_program_with_capabilities(doctor, tmp_path):
    program = shutil.copy(CALLER, tmp_path / "privileged")
    # VFS_CAP_REVISION_2, CAP_NET_BIND_SERVICE permitted
    value = bytes.fromhex("00000002" "00040000" "00000000" "00000000" "00000000")
    try:
        os.setxattr(program, "security.capability", value)
    except OSError:
        pytest.skip("needs the right to set file capabilities")
    assert "capabilities" in only(doctor("--", program), "secure_execution", "error")["text"]


LOADERS = {
    "musl": ("/lib/ld-musl-x86_64.so.1", "musl"),
    "another": ("/opt/loader.so.1", "unknown_loader"),
    "one that is not there": ("/lib64/ld-linux-nowhere.so.9", "not_found"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_program_with_another_loader(doctor, tmp_path, name):
    loader, kind = LOADERS[name]
    program = compiled(tmp_path / "program", "int main() {}", f"-Wl,--dynamic-linker={loader}")
    assert loader in only(doctor("--", program), kind, "error")["text"]


# Offsets in the ELF header: EI_CLASS, e_machine.
@pytest.mark.parametrize(("offset", "byte"), [(4, 1), (18, 183)], ids=["32 bits", "aarch64"])
def test_a_program_for_another_machine(doctor, tmp_path, offset, byte):
    program = tmp_path / "program"
    image = bytearray(CALLER.read_bytes())
    image[offset] = byte
    program.write_bytes(image)
    program.chmod(0o755)
    only(doctor("--", program), "other_machine", "error")


@pytest.mark.parametrize("size", [5, 17, 63, 100, 1000, 5000])
def test_a_program_that_is_cut(doctor, tmp_path, size):
    program = tmp_path / "program"
    program.write_bytes(CALLER.read_bytes()[:size])
    program.chmod(0o755)
    done = doctor.raw("--", program)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"tprof: {program}: byte \d+: expected more of this ELF.*\n", done.stderr)


def test_no_byte_of_a_damaged_program_is_more_than_a_finding_or_one_line(tmp_path, doctor):
    """Every 16-bit word of the headers, made as large as can be."""
    original = CALLER.read_bytes()
    program = tmp_path / "program"
    for at in range(16, 64 + 4 * 56, 2):
        program.write_bytes(original[:at] + b"\xff\xff" + original[at + 2 :])
        program.chmod(0o755)
        done = doctor.raw("--", program)
        assert done.returncode in (0, 1, 2), (at, done)
        assert done.stderr.count("\n") <= 1, (at, done)


def test_a_program_that_is_not_there(doctor):
    done = doctor.raw("--", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected a folder of traces, or a program in PATH" in done.stderr


def script(path, first_line, rest=""):
    path.write_text(f"#!{first_line}\n{rest}")
    path.chmod(0o755)
    return path


def test_scripts_and_runners_are_followed_to_the_program(doctor, tmp_path):
    run = script(tmp_path / "run", f"/usr/bin/env -S {CALLER}")
    report = doctor("--", "nice", "-n", "5", run)
    facts = {fact["key"]: fact["text"] for fact in report["facts"]}
    assert facts["program"] == f"/usr/bin/nice -> {run} -> /usr/bin/env -> {CALLER}"
    assert report["findings"] == []


def test_a_script_without_its_interpreter(doctor, tmp_path):
    run = script(tmp_path / "run", "/nowhere/python")
    assert "/nowhere/python" in only(doctor("--", run), "not_found", "error")["text"]


def test_containers_and_other_hosts_cannot_be_looked_into(doctor, tmp_path):
    for name in ("docker", "srun"):
        shutil.copy(CALLER, tmp_path / name)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    only(doctor("--", "docker", "run", "image", env=path), "container", "note")
    only(doctor("--", "srun", "-N", "2", CALLER, env=path), "elsewhere", "note")
    inside = ("srun", "--container-image=image", CALLER)
    assert kinds(doctor("--", *inside, env=path)) == ["container"]


HIDDEN = "__attribute__((visibility(\"hidden\"), used)) int {}(void) {{ return 0; }} int main() {{}}"
FATBIN = "__attribute__((section(\".nv_fatbin\"))) int fat = 1; int main() { return fat; }"


def test_a_cuda_runtime_that_is_linked_in(doctor, tmp_path):
    named = compiled(tmp_path / "named", HIDDEN.format("cudaMemcpyAsync"))
    stripped = compiled(tmp_path / "stripped", FATBIN, "-s")
    for program in (named, stripped):
        findings = [f for f in doctor("--", program)["findings"] if f["kind"] != "nothing_served"]
        assert [f["kind"] for f in findings] == ["static_cudart"]
        assert str(program) in findings[0]["text"] and "-cudart shared" in findings[0]["next"]
        counted = doctor("--", program, env={"TPROF_DRIVER": "1"})
        assert [f["kind"] for f in counted["findings"]] == ["nothing_served"]


def test_a_library_with_a_cuda_runtime_linked_in(doctor, tmp_path):
    extension = library(tmp_path / "libextension.so", FATBIN.replace("main", "kernels"), "-s")
    source = "int kernels(void); int main() { return kernels(); }"
    program = compiled(tmp_path / "program", source, extension, f"-Wl,-rpath,{tmp_path}")
    assert "static_cudart" in kinds(doctor("--", program))


def test_kernels_with_a_shared_runtime_are_ordinary(doctor, tmp_path):
    source = FATBIN.replace("int main", "int __cudaRegisterFatBinary(int); int main").replace(
        "return fat", "return __cudaRegisterFatBinary(fat)"
    )
    runtime = library(tmp_path / "libcudart.so.12", "int __cudaRegisterFatBinary(int i) { return i; }")
    program = compiled(tmp_path / "program", source, runtime)
    assert "static_cudart" not in kinds(doctor("--", program))


def test_an_nccl_that_is_linked_in(doctor, tmp_path):
    named = compiled(tmp_path / "named", HIDDEN.format("ncclAllGather"))
    text = 'const char *volatile text = "NCCL_BUFFSIZE"; int main() { return text[0]; }'
    stripped = compiled(tmp_path / "stripped", text, "-s")
    for program in (named, stripped):
        assert "static_nccl" in kinds(doctor("--", program))


def test_a_program_that_exports_nccl(doctor):
    findings = {f["kind"]: f for f in doctor("--", BUILD / "plant_exporter")["findings"]}
    assert findings["interposer"]["severity"] == "warning"


@pytest.mark.parametrize(
    ("name", "kind"), [("libnvshmem_host.so.3", "nvshmem"), ("libcufile.so.0", "cufile")]
)
def test_libraries_that_move_data_past_us(doctor, tmp_path, name, kind):
    needs = library(tmp_path / name)
    source = "extern int nothing; int main() { return nothing; }"
    program = compiled(tmp_path / "program", source, needs, f"-Wl,-rpath,{tmp_path}")
    found = [f for f in doctor("--", program)["findings"] if f["kind"] == kind]
    assert len(found) == 1 and str(needs) in found[0]["text"] and found[0]["next"]


def test_python_packages_are_found_and_not_imported(doctor, tmp_path):
    torch, vllm = tmp_path / "site/torch", tmp_path / "site/vllm"
    for package in (torch, vllm):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    source = "int ncclGroupStart(void); int call(void) { return ncclGroupStart(); }"
    library(torch / "lib/libtorch_cuda.so", source, INSTANT / "libnccl.so.2")
    run = script(tmp_path / "torchrun", "/usr/bin/env python3")
    report = doctor("--", run, "train.py", env={"PYTHONPATH": str(tmp_path / "site")})
    facts = {fact["key"]: fact["text"] for fact in report["facts"]}
    assert (facts["torch"], facts["vllm"]) == (str(torch), str(vllm))
    functions = {f["name"]: f["library"] for f in report["functions"]}
    assert functions["ncclAllGather"] == str(INSTANT / "libnccl.so.2")
    assert "pynccl" in kinds(report)
    assert not (tmp_path / "imported").exists()


def test_a_pytorch_without_cuda(doctor, tmp_path):
    (tmp_path / "site/torch").mkdir(parents=True)
    report = doctor("--", "python3", env={"PYTHONPATH": str(tmp_path / "site")})
    assert "torch_without_cuda" in kinds(report)


def test_nothing_of_the_command_is_run(doctor, tmp_path):
    mark = tmp_path / "ran"
    source = f'#include <stdio.h>\nint main() {{ fopen("{mark}", "w"); }}'
    doctor("--", compiled(tmp_path / "program", source))
    assert not mark.exists()


# ---- what was traced


@pytest.fixture
def traced(tmp_path):
    """traced(argument..., variable=value...) -> the folder of a traced program's rank file."""

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
    assert [f for f in summary["problems"] if f["kind"] in found] == report["findings"]


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
    summary = json.loads(tprof("summary", tmp_path / "job", "--json").stdout)["problems"]
    for findings in report["findings"], summary:
        next_of = {f["kind"]: f["next"] for f in findings}
        for kind, settings in SEEN_WITH.items():
            advised = {name for name in OPT_INS if f"{name}=1" in next_of.get(kind, "")}
            assert advised == settings - on, kind
            # Where nothing is left to do, nothing is left to say.
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
    ranks = {f["library"]: f["ranks"] for f in report["functions"]}
    assert ranks == {"/usr/lib/libnccl.so.2": [0, 1, 3], "/opt/libnccl.so.2": [2]}


def test_a_job_without_a_collective_that_has_nccl_loaded(doctor, tmp_path):
    generate(tmp_path / "job", 2, 0)
    for file in (tmp_path / "job").iterdir():
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if '"tprof_comm"' not in line))
        changed(file, ('"comms":[{"comm":1,"collectives":0,"signature":"0000000000000000","marks":[]}]',
                       '"comms":[]'))  # fmt: skip
    only(doctor(tmp_path / "job"), "no_nccl", "note")


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
