"""Builds the library with each compiler; for aarch64, runs its unit tests and a program under qemu."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import training
import venvs
from lib.build import BUILD, STANDIN
from lib.launch import agent, start
from outcome import Failed, Outcome
from rows import Row, Run

CROSS = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64")
CROSS_COMPILERS = (
    "-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
    "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
)
ROOT = "/usr/aarch64-linux-gnu"
LOADER = pathlib.Path("/lib/ld-linux-aarch64.so.1")
CALLS_END = 7  # how `fault_client calls` ends when all went well
# The client that calls every collective; it runs in the PyTorch that the tests have.
COLLECTIVES = Run("collectives.py", 2)


def run(row: Row, venv: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> Outcome:
    needed = {
        ("g++", "aarch64"): ("aarch64-linux-gnu-g++", "qemu-aarch64"),
        ("clang++", "x86-64"): ("clang++",),
    }.get((row.client, row.version), ("g++",))
    missing = [tool for tool in needed if not shutil.which(tool)]
    if missing:
        raise Failed(f"{' and '.join(missing)} not installed: scripts/bootstrap matrix")
    return aarch64(folder) if row.version == "aarch64" else native(row.client, folder)


def do(*command: str, expected: int = 0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != expected:
        raise Failed(f"{command[0]} {command[1]}: {(done.stdout + done.stderr)[-600:]}")
    return done.stdout


def cache_of(build: pathlib.Path) -> str:
    return (build / "CMakeCache.txt").read_text()


def make(folder: pathlib.Path, options: tuple[str, ...], *targets: str) -> None:
    do("cmake", "-S", str(venvs.REPO), "-B", str(folder), "-G", "Ninja", *options, f"-DTPROF_DOWNLOADS={BUILD}")
    do("cmake", "--build", str(folder), "--target", *targets)


def version_of(compiler: str) -> str:
    return re.search(r"\d+\.\d+\.\d+", do(compiler, "--version"))[0]


def native(compiler: str, folder: pathlib.Path) -> Outcome:
    build = folder / "build"
    used = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache_of(BUILD), re.MULTILINE)[1]
    if os.path.realpath(used) == os.path.realpath(shutil.which(compiler)):
        build = BUILD  # nothing to build twice
    c = {"g++": "gcc", "clang++": "clang"}[compiler]
    options = (f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={compiler}")
    # The tool is built by clang in every `make fuzz`.
    make(build, options if build != BUILD else (), "libtprof.so")
    script = venvs.REPO / "tests" / "clients" / COLLECTIVES.script
    launched = start(
        [*agent(COLLECTIVES.ranks), str(script)],
        folder / "run",
        True,
        LD_LIBRARY_PATH=str(STANDIN),
        LD_PRELOAD=str(build / "libtprof.so"),
    )
    if launched.code != 0:
        raise Failed(f"{COLLECTIVES} ended with {launched.code}: {training.why(launched)}")
    calls, difference = training.compare(launched, COLLECTIVES)
    summary = do(str(BUILD / "tprof"), "summary", str(launched.traces))
    if "Totals over" not in summary:
        raise Failed(f"tprof summary says {summary[-300:]}")
    ran = f"the library; {COLLECTIVES}"
    return Outcome(ran, calls, difference, version_of(compiler))


def aarch64(folder: pathlib.Path) -> Outcome:
    """Runs its unit tests, and a program of four threads that says how many calls returned to it."""
    build, traces = folder / "build", folder / "traces"
    programs = ("unit_interpose", "session_threads")
    options = (*CROSS, *CROSS_COMPILERS)
    make(build, options, "libtprof.so", "fault_client", "fault_trouble", *programs)
    # Where its C library is installed as well, the cross compiler's would be mixed with that.
    emulated = ("qemu-aarch64",) if LOADER.exists() else ("qemu-aarch64", "-L", ROOT)
    for program in programs:
        do(*emulated, str(build / program))

    folder.joinpath("counts").mkdir()
    # The emulator maps by this machine's pages; many kernels for aarch64 have larger ones.
    libraries = f"{build / 'libtprof.so'}:{build / 'libfault_trouble.so'}"
    preload = ("-E", f"LD_PRELOAD={libraries}", "-E", "TROUBLE=pages", "-E", f"TPROF_OUTPUT_DIR={traces}")
    counts = ("-E", f"FAULT_COUNTS={folder / 'counts'}")
    client = (str(build / "fault_client"), "calls", "1000", "4")
    said = do(*emulated, *preload, *counts, *client, expected=CALLS_END)
    calls = int(re.fullmatch(r"(\d+) calls returned\n", said)[1])
    summary = json.loads(do(str(BUILD / "tprof"), "summary", "--json", str(traces)))

    library = build / "libtprof.so"
    versions = do("aarch64-linux-gnu-readelf", "-W", "-V", str(library))
    newest = max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", versions))
    if newest > (2, 28):
        raise Failed(f"libtprof.so needs glibc {'.'.join(map(str, newest))}")
    ran = (
        f"cross-built; {' and '.join(programs)} and a traced program under qemu;"
        f" needs glibc {newest[0]}.{newest[1]}"
    )
    difference = abs(summary["buckets"]["ALL"]["calls"] - calls)
    return Outcome(ran, calls, difference, version_of("aarch64-linux-gnu-g++"))
