"""tprof doctor -- CMD: it says what of a command would be traced, what would not, and why."""

import os
import re
import shutil
import stat
import subprocess

import pytest
from lib.build import BUILD, INSTANT
from lib.doctor import CALLER, compiled, kinds, library, script

NOTHING = "int main() {}"
UNMET = "extern int nothing; int main() { return nothing; }"
HIDDEN = "__attribute__((visibility(\"hidden\"), used)) int {}(void) {{ return 0; }} int main() {{}}"
FATBIN = "__attribute__((section(\".nv_fatbin\"))) int fat = 1; int main() { return fat; }"
REGISTERED = FATBIN.replace("int main", "int __cudaRegisterFatBinary(int); int main").replace(
    "return fat", "return __cudaRegisterFatBinary(fat)"
)


def copied(path, change=lambda image: None, mode=0o755):
    """Copies a program that calls all functions, with another image."""
    image = bytearray(CALLER.read_bytes())
    change(image)
    path.write_bytes(image)
    path.chmod(mode)
    return path


def needing(at, name, source, of_library="int nothing;", *options, there=True):
    """Compiles a program that needs a library of this name, and can find it."""
    needed = library(at / name, of_library, *options)
    program = compiled(at / "program", source, needed, f"-Wl,-rpath,{at}")
    if not there:
        needed.unlink()
    return program


def with_capabilities(at):
    program = copied(at / "program")
    try:  # VFS_CAP_REVISION_2, CAP_NET_BIND_SERVICE permitted
        os.setxattr(program, "security.capability", bytes.fromhex("0000000200040000" + 12 * "00"))
    except OSError:
        pytest.skip("needs the right to set file capabilities")
    return program


def linked_in(kind):
    """Returns rows of programs with these functions in them, by name, and stripped."""
    if kind == "static_cudart":
        stripped, function, then = FATBIN, "cudaMemcpyAsync", "-cudart shared"
    else:
        stripped = 'const char *volatile text = "NCCL_BUFFSIZE"; int main() { return text[0]; }'
        function, then = "ncclAllGather", ""
    yield lambda at: compiled(at / "program", HIDDEN.format(function)), kind, "warning", "{}/program", then
    yield lambda at: compiled(at / "program", stripped, "-s"), kind, "warning", "{}/program", then


def with_loader(loader):
    return lambda at: compiled(at / "program", NOTHING, f"-Wl,--dynamic-linker={loader}")


def with_library(name):
    return lambda at: needing(at, name, UNMET)


# what makes the program in a folder, {} below -> kind and severity of the finding, and words of its text and of what
# to do next
PROGRAMS = [
    (lambda at: needing(at, "libcudart.so.99", UNMET, there=False), "not_found", "error", "{}/program wants libcudart.so.99", ""),
    (lambda at: compiled(at / "program", NOTHING, "-static"), "static_program", "error", "", ""),
    (lambda at: compiled(at / "program", NOTHING, "-static-pie"), "static_program", "error", "", ""),
    (lambda at: copied(at / "program", mode=0o755 | stat.S_ISUID), "secure_execution", "error", "setuid", ""),
    (lambda at: copied(at / "program", mode=0o755 | stat.S_ISGID), "secure_execution", "error", "setuid", ""),
    (with_capabilities, "secure_execution", "error", "capabilities", ""),
    (with_loader("/lib/ld-musl-x86_64.so.1"), "musl", "error", "/lib/ld-musl-x86_64.so.1", ""),
    (with_loader("/opt/loader.so.1"), "unknown_loader", "error", "/opt/loader.so.1", ""),
    (with_loader("/lib64/ld-linux-nowhere.so.9"), "not_found", "error", "/lib64/ld-linux-nowhere.so.9", ""),
    # EI_CLASS of 32 bits, and e_machine of aarch64
    (lambda at: copied(at / "program", lambda image: image.__setitem__(4, 1)), "other_machine", "error", "", ""),
    (lambda at: copied(at / "program", lambda image: image.__setitem__(18, 183)), "other_machine", "error", "", ""),
    (lambda at: script(at / "run", "/nowhere/python"), "not_found", "error", "/nowhere/python", ""),
    *linked_in("static_cudart"),
    *linked_in("static_nccl"),
    (lambda at: needing(at, "libextension.so", "int kernels(void); int main() { return kernels(); }",
                        FATBIN.replace("main", "kernels"), "-s"), "static_cudart", "warning", "", ""),
    (lambda at: BUILD / "plant_exporter", "interposer", "warning", "", ""),
    (with_library("libnvshmem_host.so.3"), "nvshmem", "note", "{}/libnvshmem_host.so.3", " "),
    (with_library("libcufile.so.0"), "cufile", "note", "{}/libcufile.so.0", " "),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "severity", "text", "then"), PROGRAMS)
def test_what_is_wrong_with_a_program(doctor, tmp_path, make, kind, severity, text, then):
    report = doctor("--", make(tmp_path))
    (found,) = [f for f in report["findings"] if f["kind"] == kind]
    assert text.format(tmp_path) in found["text"] and then in (found["next"] or "")
    assert found["severity"] == severity
    assert kinds(report) in ([kind], [kind, "nothing_served"])


def test_a_linked_in_runtime_is_counted_at_the_driver(doctor, tmp_path):
    program = compiled(tmp_path / "program", FATBIN, "-s")
    assert set(kinds(doctor("--", program))) == {"static_cudart", "nothing_served"}
    assert kinds(doctor("--", program, env={"TPROF_DRIVER": "1"})) == ["nothing_served"]


def test_kernels_with_a_shared_runtime_are_ordinary(doctor, tmp_path):
    runtime = "int __cudaRegisterFatBinary(int i) { return i; }"
    assert "static_cudart" not in kinds(doctor("--", needing(tmp_path, "libcudart.so.12", REGISTERED, runtime)))


def test_a_healthy_program_is_served_by_the_libraries_that_it_would_load(doctor):
    report = doctor("--", CALLER, "an argument", "--json")
    assert (report["about"], report["findings"]) == ("command", [])
    rows = subprocess.check_output([BUILD / "wrapped_functions"], text=True, timeout=60).split()
    functions = {f["name"]: f["library"] for f in report["functions"]}
    # The driver's functions count on request only, and CUPTI's never do.
    assert sorted(functions) == sorted(row for row in rows if not re.match("cu(pti)?[A-Z]", row))
    assert functions["ncclAllGather"] == str(INSTANT / "libnccl.so.2")
    assert functions["cudaMemcpy"] == str(INSTANT / "libcudart.so.13")
    assert functions["ncclGather"] is None  # the instant NCCL has none


def test_a_library_is_found_as_the_loader_finds_it(doctor, tmp_path):
    """It is found by RUNPATH, unless LD_LIBRARY_PATH has one."""
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


def test_a_program_that_is_cut_or_damaged_is_one_line_or_a_finding(doctor, tmp_path):
    program = tmp_path / "program"
    for size in (5, 17, 63, 100, 1000, 5000):
        done = doctor.raw("--", copied(program, lambda image: image.__delitem__(slice(size, None))))  # noqa: B023
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(rf"tprof: {program}: byte \d+: this ELF file is truncated or damaged.*\n", done.stderr)
    # Each 16-bit word of the headers in turn is made as large as can be.
    for at in range(16, 64 + 4 * 56, 2):
        done = doctor.raw("--", copied(program, lambda image: image.__setitem__(slice(at, at + 2), b"\xff\xff")))  # noqa: B023
        assert done.returncode in (0, 1, 2) and done.stderr.count("\n") <= 1, (at, done)


def test_a_program_that_is_not_there(doctor):
    done = doctor.raw("--", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert "expected a folder of traces, or a program in PATH" in done.stderr


def test_scripts_and_runners_are_followed_to_the_program(doctor, tmp_path):
    run = script(tmp_path / "run", f"/usr/bin/env -S {CALLER}")
    report = doctor("--", "nice", "-n", "5", run)
    facts = {fact["key"]: fact["text"] for fact in report["facts"]}
    assert facts["program"] == f"/usr/bin/nice -> {run} -> /usr/bin/env -> {CALLER}"
    assert report["findings"] == []


@pytest.mark.parametrize(("command", "kind"), [
    (["docker", "run", "image"], "container"), (["srun", "-N", "2", CALLER], "elsewhere"),
    (["srun", "--container-image=image", CALLER], "container"),
])  # fmt: skip
def test_containers_and_other_hosts_cannot_be_looked_into(doctor, tmp_path, command, kind):
    copied(tmp_path / command[0])
    (found,) = doctor("--", *command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})["findings"]
    assert (found["kind"], found["severity"]) == (kind, "note")


def test_python_packages_are_found_and_not_imported(doctor, tmp_path):
    torch, vllm = tmp_path / "site/torch", tmp_path / "site/vllm"
    for package in (torch, vllm):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    env = {"PYTHONPATH": str(tmp_path / "site")}
    run = script(tmp_path / "torchrun", "/usr/bin/env python3")
    assert "torch_without_cuda" in kinds(doctor("--", run, "train.py", env=env))
    source = "int ncclGroupStart(void); int call(void) { return ncclGroupStart(); }"
    library(torch / "lib/libtorch_cuda.so", source, INSTANT / "libnccl.so.2")
    report = doctor("--", run, "train.py", env=env)
    facts = {fact["key"]: fact["text"] for fact in report["facts"]}
    assert (facts["torch"], facts["vllm"]) == (str(torch), str(vllm))
    functions = {f["name"]: f["library"] for f in report["functions"]}
    assert functions["ncclAllGather"] == str(INSTANT / "libnccl.so.2")
    assert "pynccl" in kinds(report) and "torch_without_cuda" not in kinds(report)
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("package", "kind"),
    [("torchcomms", "ncclx"), ("flashinfer", "flashinfer"), ("vllm", "vllm"), ("uccl", "uccl"), ("deep_ep", "deep_ep")],
)
def test_packages_that_move_data_past_us(doctor, tmp_path, package, kind):
    folder = tmp_path / "site" / package
    folder.mkdir(parents=True)
    report = doctor("--", "python3", env={"PYTHONPATH": str(tmp_path / "site")})
    (found,) = [f for f in report["findings"] if f["kind"] == kind]
    assert str(folder) in found["text"] and found["next"]


def test_nothing_of_the_command_is_run(doctor, tmp_path):
    mark = tmp_path / "ran"
    source = f'#include <stdio.h>\nint main() {{ fopen("{mark}", "w"); }}'
    doctor("--", compiled(tmp_path / "program", source))
    assert not mark.exists()
