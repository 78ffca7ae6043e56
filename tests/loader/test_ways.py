"""Tries every way in which a program can reach NCCL and CUDA: calls made, calls counted, what is said.

The rows of ways/README.md are what these tests see: a row that changes fails here, and
`TPROF_WRITE_WAYS=1 pytest tests/loader/test_ways.py` writes the page anew.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from lib import launch, needs, tally
from lib.build import BUILD, INSTANT, LIBTPROF, REPO
from lib.rankfile import calls_in
from lib.tool import tprof

WAYS = BUILD / "tests/loader/ways"
INTERPOSER = BUILD / "tests/loader/plant/libplant_interposer.so"
FOREIGN = REPO / "tests/loader/ways/foreign.py"
PAGE = REPO / "tests/loader/ways/README.md"

Calls = tuple[int, int]  # collectives, copies
ONCE = (3, 2)  # made by ways/calls.cpp


@dataclasses.dataclass(frozen=True)
class Way:
    """One row: the command, and what is unusual about its environment."""

    text: str
    command: tuple = ()
    made: Calls = ONCE
    counted: Calls | None = None  # None: all that was made
    env: dict = dataclasses.field(default_factory=dict)
    preload: tuple = (LIBTPROF,)
    needs: str | None = None  # a library that has to be there, "cffi", "musl-gcc" or "root"
    tally: bool = True  # False: on the instant libraries, without a tally; `made` is taken for granted
    output: tuple = (0, "")  # exit code and standard output


def program(name: str, *arguments) -> tuple:
    return (WAYS / name, *arguments)


def opened(how: str, name: str) -> tuple:
    return program("ways_opener", how, WAYS / f"{name}.so")


def beside(library: str, **more) -> dict:
    return {"preload": (LIBTPROF, library), "needs": library} | more


def before(library: str, **more) -> dict:
    return {"preload": (library, LIBTPROF), "needs": library} | more


JEMALLOC, TCMALLOC = "libjemalloc.so.2", "libtcmalloc_minimal.so.4"
HEAPTRACK = "/usr/lib/heaptrack/libheaptrack_preload.so"
INTO_A_FILE = {"DUMP_HEAPTRACK_OUTPUT": "heaptrack"}  # each run has its own: heaptrack locks it
TWICE = (6, 4)
NOTHING = (0, 0)
TAKEN = {"TPROF_DLSYM": "1"}
PLAIN = REPO / "tests/loader/ways/plain.c"
UNTOUCHED = (3, "as ever\n")
PASSED_ON = (0, "interposer: ncclAllGather\n" * 2)
MUSL, SETUID = "musl", "setuid"  # programs made by the test

WAYS_THERE_ARE = [
    Way("linked", program("ways_linked")),
    Way("linked, without symbol versions", program("ways_unversioned")),
    Way("linked, `-fno-plt`", program("ways_no_plt")),
    Way("linked, `LD_BIND_NOW=1`", program("ways_linked"), env={"LD_BIND_NOW": "1"}),
    Way("linked, found by `DT_RPATH`", program("ways_rpath"), env={"LD_LIBRARY_PATH": ""}),
    Way("linked, found by `DT_RUNPATH`", program("ways_runpath"), env={"LD_LIBRARY_PATH": ""}),
    Way("a library opened with `RTLD_LOCAL`", opened("local", "ways_plugin")),
    Way("a library opened with `RTLD_GLOBAL`", opened("global", "ways_plugin")),
    Way("a library opened, closed, and opened again", opened("again", "ways_plugin"), made=TWICE),
    Way("a library's constructor", opened("local", "ways_at_load")),
    Way("the constructor of a preload before us", ("/bin/true",),
        preload=(WAYS / "ways_at_load.so", LIBTPROF)),
    Way("a library's destructor", opened("local", "ways_at_exit")),
    Way("two NCCLs and two CUDA runtimes", opened("local", "ways_plugin")
        + ("local", WAYS / "ways_second.so"), made=TWICE),
    Way("both inside a library that exports them", opened("local", "ways_exporting")),
    Way("`dlsym(RTLD_DEFAULT)`", program("ways_taken", "default")),
    Way("`dlsym` on a handle", program("ways_taken", "handle"), counted=NOTHING),
    Way("`dlsym` on a handle, `TPROF_DLSYM=1`", program("ways_taken", "handle"), env=TAKEN),
    Way("Python's ctypes", (sys.executable, FOREIGN, "ctypes"), counted=NOTHING),
    Way("Python's cffi", (sys.executable, FOREIGN, "cffi"), counted=NOTHING, needs="cffi"),
    Way("Python's ctypes, `TPROF_DLSYM=1`", (sys.executable, FOREIGN, "ctypes"), env=TAKEN),
    Way("Python's cffi, `TPROF_DLSYM=1`", (sys.executable, FOREIGN, "cffi"), env=TAKEN,
        needs="cffi"),
    Way("a library opened with `RTLD_DEEPBIND`", opened("deepbind", "ways_plugin"),
        counted=NOTHING),
    Way("a library opened with `dlmopen`", opened("namespace", "ways_plugin"), counted=NOTHING),
    Way("both inside a library, `-Bsymbolic`", opened("local", "ways_symbolic"), counted=NOTHING),
    Way("both inside a library, hidden", opened("local", "ways_hiding"), counted=NOTHING),
    Way("both inside the program", program("ways_static"), counted=NOTHING),
    Way("both inside the program, which exports them", program("ways_static_exporting"),
        counted=NOTHING),
    Way("an interposer of the same calls before us", program("ways_linked"),
        **before(str(INTERPOSER), output=PASSED_ON)),
    Way("an interposer of the same calls behind us", program("ways_linked"),
        **beside(str(INTERPOSER), output=PASSED_ON)),
    Way("jemalloc before us", program("ways_linked"), **before(JEMALLOC)),
    Way("jemalloc behind us", program("ways_linked"), **beside(JEMALLOC)),
    Way("tcmalloc before us", program("ways_linked"), **before(TCMALLOC)),
    Way("tcmalloc behind us", program("ways_linked"), **beside(TCMALLOC)),
    Way("heaptrack before us", program("ways_linked"), **before(HEAPTRACK, env=INTO_A_FILE)),
    Way("heaptrack behind us", program("ways_linked"), **beside(HEAPTRACK, env=INTO_A_FILE)),
    Way("a program with a malloc of its own", program("ways_own_malloc")),
    Way("an old libstdc++ before the system's", program("ways_linked"), tally=False,
        env={"LD_LIBRARY_PATH": f"{WAYS / 'old_libstdcxx'}:{INSTANT}"}),
    Way("a static program", program("ways_without_loader"), made=NOTHING, output=UNTOUCHED),
    Way("a program linked to musl", (MUSL,), made=NOTHING, output=UNTOUCHED, needs="musl-gcc"),
    Way("a setuid program", (SETUID,), made=NOTHING, output=UNTOUCHED, needs="root"),
]  # fmt: skip


def can_be_loaded(library: str) -> bool:
    if "/" in library:
        return pathlib.Path(library).exists()
    test = subprocess.run(["/bin/true"], env={"LD_PRELOAD": library}, capture_output=True)
    return (test.returncode, test.stderr) == (0, b"")


def why_not(needs: str | None) -> str | None:
    """Returns why a way can't be tried here, or None."""
    if needs == "musl-gcc" and shutil.which("musl-gcc") is None:
        return "musl-tools is not installed"
    if needs == "root" and os.geteuid() != 0:
        return "only root can make a program that runs as somebody else"
    if needs is not None and "lib" in needs and not can_be_loaded(needs):
        return f"{needs} is not installed"
    return None


def made_here(way: Way, folder: pathlib.Path) -> list[str]:
    """Builds the program that the command needs, and returns the command."""
    if way.command == (MUSL,):
        subprocess.run(["musl-gcc", "-o", folder / "program", PLAIN], check=True, timeout=60)
    elif way.command == (SETUID,):
        subprocess.run(["gcc", "-o", folder / "program", PLAIN], check=True, timeout=60)
        (folder / "program").chmod(0o4755)
    else:
        return list(map(str, way.command))
    return [str(folder / "program")]


def environment(folder: pathlib.Path, way: Way) -> dict[str, str]:
    preload = ":".join(map(str, way.preload))
    ours = {"LD_PRELOAD": preload, "NVTX_INJECTION64_PATH": str(LIBTPROF)}  # as tprof run does
    return launch.environment(folder, **(ours | way.env))


def split(calls: dict[str, int]) -> Calls:
    collectives = sum(n for name, n in calls.items() if name.startswith("nccl"))
    return collectives, sum(calls.values()) - collectives


def doctor(env: dict, *about) -> str:
    """Returns what doctor finds, or `no file` where nothing was traced."""
    if not about[0] == "--" and not any(about[0].iterdir()):
        return "no file"
    env = {k: v for k, v in env.items() if k in ("PATH", "LD_LIBRARY_PATH")}
    done = tprof("doctor", "--json", *about, env=env)
    assert done.returncode in (0, 1), done.stderr
    findings = {finding["kind"] for finding in json.loads(done.stdout)["findings"]}
    return ", ".join(f"`{kind}`" for kind in sorted(findings))


def measure(way: Way, folder: pathlib.Path) -> list[str]:
    for name in ("tally", "traces"):
        (folder / name).mkdir()
    env = environment(folder, way)
    command = made_here(way, folder)
    # Another user than its owner must start a setuid program, or it is like any other.
    user = {"user": "nobody", "cwd": "/"} if way.command == (SETUID,) else {"cwd": folder}
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=60, **user
    )
    assert (done.returncode, done.stdout, done.stderr) == (*way.output, "")
    made = split(tally.returned_in(folder / "tally")) if way.tally else way.made
    seen = split(calls_in(folder / "traces"))
    assert made == way.made
    assert seen == (way.made if way.counted is None else way.counted)
    # tprof itself is a C++ program, which an old libstdc++ keeps from starting. For Python it
    # tells what is installed, which does not matter here.
    asked = way.tally and command[0] != sys.executable
    before = doctor(env, "--", *command) if asked else ""
    after = doctor({}, folder / "traces")
    # Calls that are not counted are reported.
    assert seen[0] == made[0] or re.search("missed", after)
    assert seen[1] == made[1] or re.search("(static|uncalled|second)_cudart|dlsym", after)
    plus = lambda calls: f"{calls[0]} + {calls[1]}"
    return [way.text, plus(made), plus(seen), before, after]


@pytest.fixture
def folder():
    """Yields a folder that others may enter: pytest's own are for their owner alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.parametrize("way", WAYS_THERE_ARE, ids=lambda way: re.sub(r"\W+", "-", way.text))
def test_way(way, folder, page):
    if way.needs == "cffi":
        needs.package("cffi")
    if reason := why_not(way.needs):
        pytest.skip(reason)
    row = measure(way, folder)
    assert page.takes(row)
    print("|".join(row))


def test_the_page_has_a_row_for_each_way_and_no_other(page):
    ways = [way.text for way in WAYS_THERE_ARE]
    assert page.writing or [row.split(" | ")[0].removeprefix("| ") for row in page.rows[2:]] == ways


class Page:
    """ways/README.md: the rows that it has, and those that it should have."""

    def __init__(self):
        text = PAGE.read_text() if PAGE.exists() else ""
        self.rows = [line for line in text.splitlines() if line.startswith("|")]
        self.writing = "TPROF_WRITE_WAYS" in os.environ
        self.new = []

    def takes(self, row: list[str]) -> bool:
        line = "| " + " | ".join(row) + " |"
        self.new.append(line)
        return self.writing or line in self.rows

    def write(self):
        head, table = PAGE.read_text().split("|---|", 1)[0], "|---|---|---|---|---|\n"
        PAGE.write_text(head + table + "\n".join(self.new) + "\n")


@pytest.fixture(scope="module")
def page():
    it = Page()
    yield it
    if it.writing:
        it.write()
