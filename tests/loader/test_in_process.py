"""The library tells about the process that it is in: coverage, other tools, misspelt settings."""

import json
import pathlib
import shutil
import subprocess

import pytest
from lib.build import BUILD, INSTANT, LIBTPROF
from lib.launch import start
from lib.rankfile import named
from lib.tool import merged

PLANT = BUILD / "tests/loader/plant"


def run(folder, *arguments, program="plant_caller", **variables):
    return start([BUILD / program, *arguments], folder, libraries=INSTANT, **variables)


def coverage(folder):
    (footer,) = named(merged(folder / "traces", folder / "merged.json"), "tprof_footer")
    return footer["coverage"]


def noted(entries):
    return [(entry["kind"], entry["path"]) for entry in entries]


@pytest.fixture
def plant(tmp_path):
    """Returns a function: plant("libufo.so.1") makes a library of that name with nothing in it."""

    def make(name, folder="planted"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        return shutil.copy(PLANT / "libplant_empty.so", tmp_path / folder / name)

    return make


def test_an_ordinary_process_has_nothing_to_tell(tmp_path):
    done = run(tmp_path)
    assert (done.code, done.stderr) == (0, "")
    found = coverage(tmp_path)
    assert (found["unseen"], found["tools"]) == ([], [])


LIBRARIES = {
    "libnvshmem_host.so.3": ("unseen", "nvshmem"),
    "libcufile.so.0": ("unseen", "cufile"),
    "libmscclpp.so.0": ("unseen", "mscclpp"),
    "libucp.so.0": ("unseen", "ucx"),
    "libmpi.so.40": ("unseen", "mpi"),
    "libgdrapi.so.2": ("unseen", "gdrcopy"),
    "deep_ep_cpp.cpython-311-x86_64-linux-gnu.so": ("unseen", "deep_ep"),
    "_comms_ncclx.cpython-311-x86_64-linux-gnu.so": ("unseen", "ncclx"),
    "libdali.so": ("unseen", "dali"),
    "xla_cuda_plugin.so": ("unseen", "jax"),
    "libtensorflow_framework.so.2": ("unseen", "tensorflow"),
    "libnccl.so.2": ("unseen", "second_nccl"),
    "libcudart.so.12": ("unseen", "second_cudart"),
    "libcupti.so.13": ("tools", "cupti"),
    "libToolsInjection64.so": ("tools", "nsys"),
    "libTreeLauncherTargetInjection.so": ("tools", "ncu"),
    "libsanitizer-collection.so": ("tools", "sanitizer"),
}


def test_libraries_that_are_known_for_what_they_do_are_named(tmp_path, plant):
    paths = {name: plant(name) for name in LIBRARIES}
    assert run(tmp_path, *paths.values()).code == 0
    found = coverage(tmp_path)
    for key in ("unseen", "tools"):
        expected = [(kind, str(paths[name])) for name, (k, kind) in LIBRARIES.items() if k == key]
        assert sorted(noted(found[key])) == sorted(expected)


@pytest.mark.parametrize(
    ("kind", "name", "folder"),
    [
        ("cupy", "runtime.cpython-311-x86_64-linux-gnu.so", "cupy_backends/cuda/api"),
        ("vllm", "_C.abi3.so", "vllm"),
        ("uccl", "ep.abi3.so", "uccl"),
        ("flashinfer", "trtllm_comm.so", ".cache/flashinfer/90a/cached_ops/trtllm_comm"),
    ],
)
def test_a_vague_name_counts_in_its_folder_only(tmp_path, plant, kind, name, folder):
    alike = plant(name)
    meant = plant(name, folder)
    assert run(tmp_path, alike, meant).code == 0
    assert noted(coverage(tmp_path)["unseen"]) == [(kind, str(meant))]


def test_a_killed_process_has_told_it_too(tmp_path, plant):
    late = plant("libcufile.so.0")
    done = run(tmp_path, f"late:{late}", "kill")
    assert done.code == -9
    found = coverage(tmp_path)
    assert noted(found["unseen"]) == [("cufile", str(late))]
    calls = {f["name"]: (f["calls"], pathlib.Path(f["library"])) for f in found["functions"]}
    assert calls["ncclAllGather"] == (1, INSTANT / "libnccl.so.2")
    assert calls["cudaMemcpy"] == (1, INSTANT / "libcudart.so.13")


def test_a_driver_without_a_shared_runtime_means_a_static_one(tmp_path, plant):
    """The program is linked with nvcc's default: its NCCL calls are seen, and its copies are not."""
    driver = plant("libcuda.so.1")
    static = tmp_path / "static"
    source = tmp_path / "static.cpp"
    source.write_text(
        """#include <dlfcn.h>
        extern "C" { int ncclGetUniqueId(void*); int ncclCommDestroy(void*); int ncclGroupStart();
        int ncclAllGather(const void*, void*, unsigned long, int, void*, void*);
        struct Id { char bytes[128]; }; int ncclCommInitRank(void**, int, Id, int); }
        int main(int, char** argv) {
          Id id; void* comm;
          if (dlopen(argv[1], RTLD_NOW) == nullptr) return 1;
          ncclGetUniqueId(&id);
          ncclCommInitRank(&comm, 1, id, 0);
          ncclAllGather(&id, &id, 1, 0, comm, nullptr);
        }"""
    )
    link = ["g++", source, "-o", static, f"-L{INSTANT}", "-l:libnccl.so.2", "-ldl"]
    subprocess.run(link, check=True, timeout=60)
    assert run(tmp_path, driver, program=static).code == 0
    assert noted(coverage(tmp_path)["unseen"]) == [("static_cudart", str(driver))]


def test_a_driver_with_a_shared_runtime_is_ordinary(tmp_path, plant):
    assert run(tmp_path, plant("libcuda.so.1")).code == 0
    assert coverage(tmp_path)["unseen"] == []


def test_other_preloads_are_told_with_their_order(tmp_path, plant):
    first, last = plant("libfirst.so"), plant("liblast.so")
    done = run(tmp_path, LD_PRELOAD=f"{first} {LIBTPROF}:{last}")
    assert done.code == 0
    assert noted(coverage(tmp_path)["tools"]) == [
        ("preload_before", str(first)),
        ("preload", str(last)),
    ]


def test_tools_that_variables_bring_in_are_told(tmp_path):
    variables = {
        "NVTX_INJECTION64_PATH": "/opt/nvtx.so",
        "CUDA_INJECTION64_PATH": "/opt/cuda.so",
        "NCCL_PROFILER_PLUGIN": "inspector",
    }
    assert run(tmp_path, **variables).code == 0
    assert noted(coverage(tmp_path)["tools"]) == [
        ("nvtx_injection", "/opt/nvtx.so"),
        ("cuda_injection", "/opt/cuda.so"),
        ("nccl_profiler", "inspector"),
    ]


def test_an_interposer_before_us_is_told(tmp_path):
    other = PLANT / "libplant_interposer.so"
    done = run(tmp_path, LD_PRELOAD=f"{other}:{LIBTPROF}")
    assert done.code == 0
    kinds = dict(noted(coverage(tmp_path)["tools"]))
    assert kinds == {"preload_before": str(other), "interposer": str(other)}


def test_a_program_that_brings_the_functions_itself_is_told(tmp_path):
    assert run(tmp_path, program="plant_exporter").code == 0
    found = coverage(tmp_path)
    assert noted(found["tools"]) == [("interposer", str(BUILD / "plant_exporter"))]


@pytest.mark.parametrize("name", ["TPROF_OUPUT_DIR", "TPROF_HELLO"])
def test_a_misspelt_setting_costs_one_line_and_is_in_the_header(name, tmp_path):
    done = run(tmp_path, **{name: "1"})
    assert done.stderr == f"tprof: {name} is not a setting: `tprof doctor` says what is\n"
    (file,) = (tmp_path / "traces").iterdir()
    lines = [json.loads(x.rstrip(",")) for x in file.read_text().splitlines() if x[:1] == "{"]
    (header,) = [x["args"] for x in lines if x["name"] == "tprof_header"]
    assert header["config"][name] == "1"


def test_a_variable_of_our_scripts_is_not_a_misspelt_setting(tmp_path):
    assert run(tmp_path, TPROF_BUILD="build").stderr == ""


def test_an_interposer_behind_us_gets_the_calls_that_it_would_get_without_us(tmp_path):
    """It also gets those of a caller opened with RTLD_LOCAL, whose own libraries hold the real function."""
    other, plugin = PLANT / "libplant_interposer.so", PLANT / "libplant_plugin.so"
    without = run(tmp_path, plugin, LD_PRELOAD=str(other))
    behind = run(tmp_path, plugin, LD_PRELOAD=f"{LIBTPROF}:{other}")
    assert without.stdout == "interposer: ncclAllGather\n" * 2
    assert (behind.code, behind.stdout) == (without.code, without.stdout)
    calls = {f["name"]: (f["calls"], f["library"]) for f in coverage(tmp_path)["functions"]}
    assert calls["ncclAllGather"] == (2, str(other))
