"""tprof doctor -- CMD: it says what of a command would be traced, what would not, and why."""

import os
import re
import shutil
import stat
import subprocess

import pytest
from lib.build import BUILD, INSTANT
from lib.doctor import CALLER, compiled, kinds, library, only, script


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
    assert re.fullmatch(rf"tprof: {program}: byte \d+: this ELF file is truncated or damaged.*\n", done.stderr)


def test_no_byte_of_a_damaged_program_is_more_than_a_finding_or_one_line(tmp_path, doctor):
    """Each 16-bit word of the headers in turn is made as large as can be."""
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


def test_a_pytorch_without_cuda(doctor, tmp_path):
    (tmp_path / "site/torch").mkdir(parents=True)
    report = doctor("--", "python3", env={"PYTHONPATH": str(tmp_path / "site")})
    assert "torch_without_cuda" in kinds(report)


def test_nothing_of_the_command_is_run(doctor, tmp_path):
    mark = tmp_path / "ran"
    source = f'#include <stdio.h>\nint main() {{ fopen("{mark}", "w"); }}'
    doctor("--", compiled(tmp_path / "program", source))
    assert not mark.exists()
