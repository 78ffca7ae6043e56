"""What the vendor's headers declare that moves data, and no row of the tables covers.

The lists below are the exceptions, each with its reason. A function of a newer header that is in
neither fails here by name.
"""

import os
import pathlib
import re
import subprocess

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TPROF_BUILD", REPO / "build")).resolve()

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
    "ncclCommSuspend": "frees memory",
    "ncclCommResume": "allocates memory",
    "ncclCommInitRankScalable": "life: wrapped",
    "ncclSignal": "a signal without data",
    "ncclWaitSignal": "waits",
    "ncclSetEncryption": "settings",
    "ncclDevCommCreate": "for calls made on the device",
    "ncclDevCommDestroy": "for calls made on the device",
}
NCCL_NOT_COVERED = {
    "ncclCommGrow": "life: a grown communicator is met at its first call, with an id of its own",
}

CUDART_NOT_COVERED: dict[str, str] = {}


def header(name: str) -> str:
    """Without its comments, from where CMake found it for this build."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    variable = {"nccl.h": "TPROF_NCCL_INCLUDE", "cuda_runtime_api.h": "TPROF_CUDA_INCLUDE",
                "cuda.h": "TPROF_CUDA_INCLUDE"}[name]
    folder = re.search(rf"^{variable}:PATH=(.+)$", cache, re.MULTILINE).group(1)
    text = (pathlib.Path(folder) / name).read_text(errors="replace")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def wrapped() -> set[str]:
    done = subprocess.run([BUILD / "wrapped_functions"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_function_of_nccl_h_is_wrapped_or_explained():
    declared = set(re.findall(r"\b(nccl[A-Z]\w*)\s*\((?=[^;{]*\)\s*;)", header("nccl.h")))
    assert {"ncclAllGather", "ncclSend", "ncclCommSplit", "ncclMemAlloc"} <= declared
    explained = NCCL_MOVES_NO_DATA.keys() | NCCL_NOT_COVERED.keys()
    assert sorted(declared - wrapped() - explained) == []


def test_every_copy_of_cuda_runtime_api_h_is_wrapped_or_explained():
    declared = re.findall(
        r"\b(cudaMem(?:cpy|Prefetch|DiscardAndPrefetch)\w*)\s*\(", header("cuda_runtime_api.h")
    )
    names = {re.sub(r"_pt[ds]s?z?$", "", name) for name in declared if not name.endswith("_ptsz")}
    assert {"cudaMemcpy", "cudaMemcpyAsync", "cudaMemcpy2DAsync"} <= names
    assert sorted(names - wrapped() - CUDART_NOT_COVERED.keys()) == []


def test_every_copy_of_cuda_h_is_wrapped():
    """Under the names that the library exports: with a number where a prototype has changed."""
    text = header("cuda.h")
    declared = set(re.findall(r"\b(cuMem(?:cpy|Prefetch|DiscardAndPrefetch)\w*)\s*\(", text))
    renamed = dict(re.findall(r"#define (cuMem\w+)\s+__CUDA_API_PT[DS][SZ]\((\w+)\)", text))
    names = {renamed.get(name, name) for name in declared}
    # The prototypes of CUDA 3.1 and older have 32-bit addresses.
    names -= {name.removesuffix("_v2") for name in names if name.endswith("_v2")}
    assert {"cuMemcpyHtoD_v2", "cuMemcpyAsync", "cuMemPrefetchAsync_v2"} <= names
    assert sorted(names - wrapped()) == []


def test_the_exceptions_are_not_wrapped_by_now():
    stale = (NCCL_NOT_COVERED.keys() | CUDART_NOT_COVERED.keys()) & wrapped()
    assert sorted(stale) == []


def test_every_wrapped_copy_has_its_per_thread_twin():
    """Programs built with --default-stream=per-thread call only the twins."""
    twins = set(re.findall(r"\b(cuda\w+_pt(?:ds|sz))\b", header("cuda_runtime_api.h")))
    declared = re.findall(r"__CUDART_API_PT(DS|SZ)\((cudaMemcpy\w*|cudaGraphLaunch|cudaStream(?:Begin|End)Capture\w*)\)",
                          header("cuda_runtime_api.h"))
    twins |= {f"{name}_pt{suffix.lower()}" for suffix, name in declared}
    assert "cudaMemcpyAsync_ptsz" in twins
    rows = wrapped()
    missing = {t for t in twins if t.rsplit("_", 1)[0] in rows and t not in rows}
    assert sorted(missing) == []
