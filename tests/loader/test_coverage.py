"""Every export of the vendors' libraries that moves data has a row in the tables, or stands with its
reason in interpose/api/uncovered.h, which `tprof coverage` prints.

A function of a newer header or export list that is in neither fails here by name.
"""

import pathlib
import re
import shutil
import subprocess

import pytest
from lib.build import BUILD, REPO
from lib.tool import told, tprof
from standin.stubs import names_in, names_of

EXPORTS = REPO / "tests/standin/symbols"  # those of the real libraries
RUNTIMES = ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"]

NCCL_MOVES_NO_DATA = {
    "ncclMemAlloc": "allocates",
    "ncclMemFree": "frees",
    "ncclGetVersion": "asks",
    "ncclGetUniqueId": "asks",
    "ncclGetErrorString": "asks",
    "ncclGetLastError": "asks",
    "ncclCommGetAsyncError": "asks",
    "ncclCommCount": "asks",
    "ncclCommCuDevice": "asks",
    "ncclCommUserRank": "asks",
    "ncclCommQueryProperties": "asks",
    "ncclCommGetUniqueId": "asks; for ncclCommGrow",
    "ncclCommMemStats": "asks",
    "ncclCommRegister": "registers memory",
    "ncclCommDeregister": "registers memory",
    "ncclCommWindowRegister": "registers memory",
    "ncclCommWindowDeregister": "registers memory",
    "ncclWinGetUserPtr": "asks",
    "ncclRedOpCreatePreMulSum": "makes an operator, which calls then name as custom",
    "ncclRedOpDestroy": "makes an operator",
    "ncclResetDebugInit": "logging",
    "ncclCommRevoke": "ends calls, moves none",
    "ncclCommFinalize": "ends calls, moves none",
    "ncclCommSuspend": "frees memory",
    "ncclCommResume": "allocates memory",
    "ncclSetEncryption": "settings",
    "ncclDevCommCreate": "for calls made on the device",
    "ncclDevCommDestroy": "for calls made on the device",
}

# Functions with these names move data.
MOVES = re.compile(r"(cu|cuda)[A-Z]\w*([cC]py|Copy|Prefetch|Decompress)\w*")


@pytest.fixture(scope="module")
def coverage() -> dict:
    _, report = told("coverage")
    assert report["schema"] == "tprof-coverage/1"
    return report


def wrapped(report: dict) -> set[str]:
    return {f["name"] for f in report["functions"]}


def left_out(report: dict) -> dict[str, str]:
    return {f["name"]: f["reason"] for f in report["not_covered"]}


def plain(name: str) -> str:
    """Returns a name without the per-thread twin's suffix and the version's."""
    return re.sub(r"(_v\d)?(_pt(ds|sz))?$", "", name)


def header(name: str) -> str:
    """Returns a header without its comments, from where CMake found it for this build."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    variable = "TPROF_NCCL_INCLUDE" if name == "nccl.h" else "TPROF_CUDA_INCLUDE"
    folder = re.search(rf"^{variable}:PATH=(.+)$", cache, re.MULTILINE).group(1)
    text = (pathlib.Path(folder) / name).read_text(errors="replace")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def everything(lists: str) -> set[str]:
    """Returns the exports of all libraries whose lists have such a name; the runtimes share one."""
    found = set().union(*(names_in(path) for path in EXPORTS.glob(lists)))
    return found.union(*(names_of(EXPORTS, runtime) for runtime in RUNTIMES))


def test_every_function_of_nccl_h_is_wrapped_or_explained(coverage):
    declared = set(re.findall(r"\b(nccl[A-Z]\w*)\s*\((?=[^;{]*\)\s*;)", header("nccl.h")))
    assert {"ncclAllGather", "ncclSend", "ncclCommSplit", "ncclMemAlloc"} <= declared
    explained = NCCL_MOVES_NO_DATA.keys() | left_out(coverage).keys()
    assert sorted(declared - wrapped(coverage) - explained) == []


@pytest.mark.parametrize("library", [*RUNTIMES, "libcuda.so.1"])
def test_every_export_that_moves_data_is_wrapped_or_explained(library, coverage):
    moving = {name for name in names_of(EXPORTS, library) if MOVES.fullmatch(name)}
    assert len(moving) > 40
    missing = moving - wrapped(coverage)
    assert sorted(name for name in missing if plain(name) not in left_out(coverage)) == []


@pytest.mark.parametrize("name", ["cuda_runtime_api.h", "cuda.h"])
def test_every_copy_that_a_header_declares_is_wrapped_or_explained(name, coverage):
    text = header(name)
    declared = {m for m in re.findall(r"\b(\w+)\s*\(", text) if MOVES.fullmatch(m)}
    # The newest meaning of a name has a suffix in the library.
    newest = dict(re.findall(r"#\s*define\s+(cu\w+)\s+(cu\w+)\b", text))
    declared = {newest.get(m, m) for m in declared}
    assert len(declared) > 30
    missing = declared - wrapped(coverage)
    assert sorted(m for m in missing if plain(m) not in left_out(coverage)) == []


def test_every_wrapped_copy_has_its_per_thread_twin(coverage):
    """Programs built with --default-stream=per-thread call only the twins."""
    twins = {name for name in everything("libcud*.txt") if re.search(r"_pt(ds|sz)$", name)}
    assert "cudaMemcpyAsync_ptsz" in twins
    rows = wrapped(coverage)
    missing = {t for t in twins if t.rsplit("_", 1)[0] in rows and t not in rows}
    assert sorted(missing) == []


def test_what_is_left_out_is_there_and_not_wrapped_by_now(coverage):
    names = left_out(coverage)
    assert all(names.values())
    assert sorted(names.keys() & wrapped(coverage)) == []
    known = set(map(plain, everything("lib*.txt")))
    assert sorted(names.keys() - known) == []


def test_the_list_is_what_the_library_wraps(coverage):
    rows = subprocess.run(
        [BUILD / "wrapped_functions"], capture_output=True, text=True, check=True
    ).stdout.split()
    names = [f["name"] for f in coverage["functions"]]
    assert sorted(names) == sorted(rows)
    assert {f["library"] for f in coverage["functions"]} == {"nccl", "nccl_ep", "cudart", "cuda", "cupti"}
    allocation = re.compile(r"cu(da)?(Mem(Alloc|Free|Host|Create|Release|Retain|Map|Unmap)|Malloc|Array|Free)")
    for f in coverage["functions"]:
        allocates = allocation.match(f["name"])
        assert f["needs"] in ("TPROF_DRIVER=1", "TPROF_MEMORY=1", "TPROF_TIMING=events") or f["library"] != "cuda", f
        assert (f["needs"] != "TPROF_MEMORY=1") or (allocates and not f["buckets"]), f
        assert (f["elements"] is None) == (f["buckets"] == []), f


def test_versions_are_those_of_cuptis_list(coverage):
    """CUPTI names a function's callback after the version that brought it."""
    try:
        text = header("cupti_runtime_cbid.h")
    except FileNotFoundError:
        pytest.skip("no cupti_runtime_cbid.h beside the headers")
    since: dict[str, int] = {}
    for name, version in re.findall(r"CBID_(cuda\w+?)_v(\d+)\b", text):
        since[name] = min(since.get(name, 10**9), int(version))
    checked = 0
    for f in coverage["functions"]:
        if f["name"] in since and f["library"] == "cudart":
            number = since[f["name"]]
            assert f["since"] == f"{number // 1000}.{number % 1000 // 10}", f
            checked += 1
    assert checked > 60
    assert [f["name"] for f in coverage["functions"] if f["since"] is None] == []


def test_the_text_names_everything(coverage):
    words = set(tprof("coverage").stdout.split())
    assert wrapped(coverage) | left_out(coverage).keys() <= words


def test_a_library_without_the_list_is_refused_in_one_line(tmp_path):
    tool = pathlib.Path(shutil.copy(BUILD / "tprof", tmp_path))
    library = tmp_path / "libtprof.so"
    subprocess.run(
        ["objcopy", "--remove-section=tprof_functions", BUILD / "libtprof.so", library], check=True
    )
    done = subprocess.run([tool, "coverage"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and str(library) in done.stderr
