"""Checks the binary itself: what it needs, what it offers, and that any process can load it."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from lib.build import BUILD, LIBTPROF

# From design.md: the oldest system that must be able to load it.
OLDEST_GLIBC = (2, 28)
# Programs take functions by address with these; ours jump to the real ones (hook/dlsym.cpp).
DYNAMIC_LINKER = {"dlsym", "dlvsym"}
# These end a program without its exit handlers, or execute another (hook/libc_ends.cpp).
LIBC_ENDS = {"_exit", "_Exit"}
# Exported besides the functions that the library stands in front of: NVTX loads it through this.
NVTX_ENTRY = "InitializeInjectionNvtx2"
API = "tprof_functions_v1"  # see user/tprof.h
LIBC_FAMILY = {"libc.so.6", "libdl.so.2", "libpthread.so.0"} | {
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
}


def readelf(*options: str) -> str:
    command = ["readelf", "--wide", *options, str(LIBTPROF)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def dynamic_symbols() -> list[tuple[str, str, str]]:
    """Returns (section index, binding, name with its version) of each dynamic symbol."""
    fields = [line.split() for line in readelf("--dyn-syms").splitlines()]
    return [(f[6], f[4], f[7]) for f in fields if len(f) >= 8 and f[0].rstrip(":").isdigit()]


def exported() -> set[str]:
    return {name for section, _, name in dynamic_symbols() if section != "UND"}


@pytest.fixture(scope="module", autouse=True)
def built():
    assert LIBTPROF.exists(), f"{LIBTPROF} is missing: build first (make), or set TPROF_BUILD"


def test_needs_no_symbol_of_nccl_or_cuda():
    """An undefined ncclX would stop every program that has no NCCL from starting."""
    needed = [name for section, _, name in dynamic_symbols() if section == "UND"]
    assert len(needed) > 10
    assert not [name for name in needed if re.match(r"(p?nccl|cu)[A-Z]|cuda[A-Z]", name)]


# Only TPROF_TIMING=events calls these. They make no context, synchronise nothing and destroy nothing.
FOR_TIMING = {
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuEventCreate",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuStreamCreate",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuThreadExchangeStreamCaptureMode",
}


# Only TPROF_CUDA_PROFILER=1 calls these, in contexts that the program has (an active primary one).
FOR_PROFILERS = {
    "cuCtxSetCurrent",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuProfilerStart",
    "cuProfilerStop",
}


def test_it_asks_and_makes_nothing_of_its_own_accord():
    """Besides the functions that it stands in front of, it looks up only functions that query. None
    makes a stream, an event or a context, synchronises, or sets the runtime's last error."""
    listed = rb"since\tncclAllGather\t.*?\0"  # for `tprof coverage`: names that are not looked up
    code = re.sub(listed, b"\0", LIBTPROF.read_bytes(), flags=re.DOTALL)
    # Strings of their own, but for types. The last bytes of a number, which stands before the first of them, may be
    # letters by chance.
    name = rb"(?<![\w=])\w{0,3}?((?:p?nccl|cu|cuda)[A-Z]\w+)(?<!_t)\0"
    names = {found.decode() for found in re.findall(name, code)}
    assert "ncclAllGather" in names
    # The driver knows most of its copies by names of their own (cuGetProcAddress).
    wrapped = {name.removesuffix("_v2") for name in exported()} | exported()
    assert names - wrapped - FOR_TIMING - FOR_PROFILERS == {
        "cuCtxGetDevice",
        "cuDeviceGetPCIBusId",
        "cuDeviceGetUuid_v2",
        "cuFuncGetName",
        "cuGraphGetNodes",
        "cuGraphKernelNodeGetParams_v2",
        "cuGraphMemcpyNodeGetParams",
        "cuGraphNodeGetType",
        "cuKernelGetName",
        "cuPointerGetAttributes",
        "cuStreamGetCaptureInfo_v2",
        "cudaRuntimeGetVersion",
        "ncclCommCount",
        "ncclCommCuDevice",
        "ncclCommUserRank",
        "ncclGetVersion",
    }
    assert FOR_TIMING <= names


def test_needs_libc_only():
    libraries = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic")))
    assert "libc.so.6" in libraries and libraries <= LIBC_FAMILY


def test_needs_no_path():
    assert not re.search(r"\((RPATH|RUNPATH)\)", readelf("--dynamic"))


def test_needs_no_symbol_newer_than_the_oldest_glibc():
    versions = re.findall(r"GLIBC_([\d.]+)", readelf("--version-info"))
    assert versions
    newer = {v for v in versions if tuple(map(int, v.split("."))) > OLDEST_GLIBC}
    assert not newer
    assert not re.search(r"GLIBC_PRIVATE|GLIBCXX|CXXABI|GCC_", readelf("--version-info"))


def test_exports_nothing_else_and_without_a_version():
    """A version node would silently intercept nothing for callers that want another version."""
    names = exported() - DYNAMIC_LINKER - LIBC_ENDS - {NVTX_ENTRY, API}
    assert names and not [name for name in names if not re.fullmatch(r"(nccl|(__)?cuda|cupti|cu)[A-Z]\w+", name)]
    assert "VERDEF" not in readelf("--dynamic")


def test_exports_are_the_rows_of_the_tables():
    rows = subprocess.run(
        [BUILD / "wrapped_functions"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(set(rows)) == len(rows)
    assert exported() == {*rows, *DYNAMIC_LINKER, *LIBC_ENDS, NVTX_ENTRY, API}


def test_stays_loaded_and_its_thread_local_data_needs_no_allocation():
    flags = readelf("--dynamic")
    assert "NODELETE" in flags
    assert "STATIC_TLS" in flags  # initial-exec: no malloc at a thread's first call
    assert "__tls_get_addr" not in {name.split("@")[0] for _, _, name in dynamic_symbols()}


def test_has_no_writable_code_and_no_executable_stack():
    segments = readelf("--program-headers")
    assert not re.search(r"LOAD.*RWE", segments)
    assert re.search(r"GNU_STACK.* RW ", segments)


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-tools is not installed")
def test_a_program_linked_to_musl_ends_as_ever(tmp_path):
    """Where libc is another one, the functions that the library stands in front of are that libc's."""
    (tmp_path / "program.c").write_text(
        "#include <unistd.h>\nint main() { _exit(9); }\n"
    )
    subprocess.run(["musl-gcc", "-o", tmp_path / "program", tmp_path / "program.c"], check=True, timeout=60)
    env = {"LD_PRELOAD": str(LIBTPROF), "PATH": os.environ["PATH"]}
    done = subprocess.run([tmp_path / "program"], env=env, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (9, b"", b"")


PROGRAMS = {
    "true": ["/bin/true"],
    "false": ["/bin/false"],
    "bash": ["/bin/bash", "-c", "echo hello; cat /etc/hostname > /dev/null; exit 3"],
    "bash's threads": ["/bin/bash", "-c", "grep Threads /proc/$$/status"],
    "make": ["make", "--version"],
    "a shell that becomes another program": ["/bin/sh", "-c", "exec /bin/sh -c 'exit 4'"],
    "nothing to become": ["/bin/bash", "-c", "exec /not/there"],
    "python's ways out": [
        sys.executable,
        "-c",
        "import os, subprocess as s; s.run(['true']); s.run(['true'], preexec_fn=os.getpid)\n"
        "if os.fork() == 0: os._exit(3)\n"
        "print(os.wait()[1], flush=True); os.execlp('sh', 'sh', '-c', 'exit $0', '6')",
    ],
    "python": [sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/task')))"],
    "python that fails": [sys.executable, "-c", "import sys; sys.exit('no')"],
    "a static program": ["/sbin/ldconfig", "--version"],
    "killed by a signal": ["/bin/sh", "-c", "kill -TERM $$"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_without_a_gpu_notice_nothing(name, tmp_path):
    """The environment is empty: there is no file, thread or output of ours, and the exit code is the same."""
    results = []
    for preload in ({}, {"LD_PRELOAD": str(LIBTPROF)}):
        done = subprocess.run(
            PROGRAMS[name], env=preload, cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
        results.append((done.returncode, done.stdout, done.stderr))
    assert results[0] == results[1]
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_makes_no_call_touches_little_of_its_memory():
    """The library has tables of megabytes, and is in every shell and data loader of a job."""
    done = subprocess.run(
        ["cat", "/proc/self/smaps"], env={"LD_PRELOAD": str(LIBTPROF)}, capture_output=True, text=True, check=True
    )
    dirty, end, ours = 0, "", False
    for line in done.stdout.splitlines():
        if mapping := re.match(r"([0-9a-f]+)-([0-9a-f]+) (.{4})", line):
            # Its zeroed memory has no name, and lies after the rest of it.
            named = line.endswith("/libtprof.so") or (ours and mapping[1] == end and line.endswith(" 0 "))
            ours, end = named and mapping[3] == "rw-p", mapping[2]
        elif ours and line.startswith("Private_Dirty:"):
            dirty += int(line.split()[1])
    assert 0 < dirty < 256  # KiB
