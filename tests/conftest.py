"""All tests take these: the tool, the makers of traces, and training runs, each made once."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest
from lib import faults, needs
from lib.build import LIBTPROF, STANDIN, TPROF
from lib.cases import CASES, COMPARED, Pair, make_pair
from lib.once import once
from lib.real_loops import LOOPS, loop
from lib.thorough import ALL

IN_MEMORY = "/dev/shm/tprof-test-"  # folders of tests begin so

# Tables are as wide as a user's. xdist sets this, and readline sets it behind Python's back.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")


def left_out(item, orders: dict) -> bool:
    """Tells whether only `make test-all` runs this combination of parameters (see pytest.ini). Parameters that are listed
    together count as one. pytest's own `indices` are no help: in version 8 all of an item's are the same number."""
    mark = item.get_closest_marker("one_of")
    if not mark or ALL:
        return False
    listed = [tuple(re.split(r",\s*", names) if isinstance(names := of.args[0], str) else names) for of in item.iter_markers("parametrize")]
    alone = [(name,) for name in item.callspec.params if not any(name in names for names in listed)]
    place = 0
    for names in listed + alone:
        order = orders.setdefault((item.function, names), {})
        place += order.setdefault(tuple(id(item.callspec.params[name]) for name in names), len(order))
    return place % mark.args[0] != 0


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Tests that share a fixture of their module, or a training run, share a worker."""
    orders: dict = {}
    items[:] = [item for item in items if not left_out(item, orders)]
    for item in items:
        indices = item.callspec.indices if hasattr(item, "callspec") else {}
        shared = []
        for name, definitions in item._fixtureinfo.name2fixturedefs.items():
            if definitions[-1].scope == "module":
                shared.append(item.module.__name__)
            if definitions[-1].scope != "function" and name in indices:
                shared.append(f"{name}{indices[name]}")
        if shared:
            item.add_marker(pytest.mark.xdist_group("-".join(dict.fromkeys(shared))))
        # A machine that gives a process no core for a while makes what it measures worse, never better:
        # such a test may be tried three times. A figure that is wrong by itself is so each time.
        if item.get_closest_marker("timed"):
            item.add_marker(pytest.mark.flaky(reruns=2))


def pytest_sessionfinish(session):
    """Killed ranks leave their ring files in the node's memory: those of this session's folders go with it."""
    factory = getattr(session.config, "_tmp_path_factory", None)
    folders = [str(factory.getbasetemp())] if factory else []
    # Other workers' tests may still run where this session is one of several.
    folders += [] if hasattr(session.config, "workerinput") else [IN_MEMORY]
    for ring in pathlib.Path("/dev/shm").glob(".tprof-*.ring"):
        with contextlib.suppress(OSError):
            if any(folder.encode() in ring.read_bytes() for folder in folders):
                ring.unlink()


def pytest_sessionstart():
    for path in (LIBTPROF, TPROF, STANDIN / "libcudart.so.13"):
        if not path.exists():
            pytest.exit(f"{path} is missing: build first (make test), or set TPROF_BUILD", 4)
    # Signals that nohup and a shell's `&` have ignored would be ignored in all that the tests start, too.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def once_a_run(tmp_path_factory):
    """once_a_run(name, make) -> what make(folder) returned, in whichever worker."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if own.name.startswith("popen-") else own
    return lambda name, make: once(shared / "once", name, make)


@pytest.fixture(scope="session")
def healthy_job(once_a_run):
    """healthy_job(2, 8 or 512) -> a job of that many ranks, and its files."""
    return lambda ranks: once_a_run(f"healthy-{ranks}", lambda folder: faults.pinned_job(ranks, folder))


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(size) -> the folder of a file system of that size."""
    mounted = []

    def mount(size):
        folder = tmp_path / f"disk-{size}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("needs the right to mount a tmpfs")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="session")
def torch():
    needs.package("torch")


@pytest.fixture(scope="session")
def pair_of(torch, once_a_run):
    """name of a case -> its Pair; made when a test first asks for it."""
    return lambda name: once_a_run(name, lambda folder: make_pair(name, folder))


@pytest.fixture(scope="session")
def loop_of(torch, once_a_run):
    """name of a training loop, or its arguments -> its Run"""

    def run(*name):
        arguments = LOOPS[name[0]][0] if len(name) == 1 and name[0] in LOOPS else name
        return once_a_run(f"loop-{'-'.join(name)}", lambda folder: loop(folder, *arguments))

    return run


@pytest.fixture(scope="session", params=sorted(CASES))
def case(request) -> str:
    return request.param


@pytest.fixture(scope="session")
def pair(case, pair_of) -> Pair:
    return pair_of(case)


@pytest.fixture(scope="session", params=sorted(COMPARED))
def compared(request, pair_of) -> Pair:
    return pair_of(request.param)


def in_memory():
    with tempfile.TemporaryDirectory(dir=os.path.dirname(IN_MEMORY), prefix=os.path.basename(IN_MEMORY)) as folder:
        yield pathlib.Path(folder)


@pytest.fixture
def tmp_path(request, tmp_path):
    """It lies in memory where runs.py starts the programs: a disk that is slow for a moment gets no ring file. A module
    that is about disks says ON_DISK = True."""
    on_disk = not hasattr(request.module, "runs") or hasattr(request.module, "ON_DISK")
    yield from [tmp_path] if on_disk else in_memory()


@pytest.fixture
def node():
    """A folder for ring files in the node's memory, where no other process has left any, and no disk is slow."""
    yield from in_memory()
