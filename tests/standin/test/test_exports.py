"""The libraries export the real ones' names, and a call without a body says its name."""

import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

STANDIN = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(STANDIN))
from stubs import names_of  # noqa: E402
FOLDER = os.environ["STANDIN_FOLDER"]
REAL = [pathlib.Path(folder) for folder in os.environ.get("STANDIN_REAL", "").split(":") if folder]
RUNTIMES = "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"
LIBRARIES = *RUNTIMES, "libnccl.so.2", "libcuda.so.1", "libcupti.so.13"


def exported(path):
    """Returns {name: version node or ''} for the functions that a library defines."""
    lines = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(path)],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    symbols = {}
    for line in lines:
        *_, kind, symbol = line.split()
        name, _, node = symbol.replace("@@", "@").partition("@")
        if kind != "A":
            symbols[name] = node
    return symbols


def listed(soname):
    return names_of(STANDIN / "symbols", soname)


class Exports(unittest.TestCase):

    def test_each_library_exports_exactly_the_names_of_the_real_one(self):
        for soname in LIBRARIES:
            self.assertEqual(set(exported(f"{FOLDER}/{soname}")), listed(soname), soname)

    def test_only_the_runtimes_and_cupti_have_symbol_versions(self):
        for soname in (*RUNTIMES, "libcupti.so.13"):
            self.assertEqual(set(exported(f"{FOLDER}/{soname}").values()), {soname})
        self.assertEqual(set(exported(f"{FOLDER}/libnccl.so.2").values()), {""})

    def test_each_library_has_the_soname_of_the_real_one(self):
        for soname in LIBRARIES:
            dynamic = subprocess.run(["readelf", "-d", f"{FOLDER}/{soname}"], check=True,
                                     capture_output=True, text=True).stdout
            self.assertEqual(re.findall(r"SONAME.*\[(.*)\]", dynamic), [soname])

    def test_the_lists_are_those_of_the_installed_toolkit(self):
        compared = 0
        for soname in "libcudart.so.13", "libnccl.so.2", "libcupti.so.13":
            for path in (folder / soname for folder in REAL if (folder / soname).exists()):
                real = set(exported(path))
                compared += 1
                # One of two releases may have more names, but then it must have all of the other's.
                self.assertTrue(listed(soname) <= real or real <= listed(soname),
                                f"{path} lacks names of the list, and has others")
                break
        if not compared:
            self.skipTest("no real libraries here")

    def test_a_call_without_a_body_aborts_and_says_its_name(self):
        code = f"import ctypes; ctypes.CDLL('{FOLDER}/libcudart.so.13').cudaGLGetDevices()"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(result.returncode, -signal.SIGABRT)
        self.assertIn("cudaGLGetDevices has no body", result.stderr)

    def test_each_runtime_says_which_one_it_is(self):
        for soname, version in zip(RUNTIMES, (13, 12, 11)):
            value = ctypes.c_int()
            runtime = ctypes.CDLL(f"{FOLDER}/{soname}")
            self.assertEqual(runtime.cudaRuntimeGetVersion(ctypes.byref(value)), 0)
            self.assertEqual(value.value // 1000, version)

    def test_an_older_runtime_writes_no_more_than_its_own_structures(self):
        """Frameworks of its time have no room for what CUDA 13 added."""
        sizes = {  # sizeof in the headers of CUDA 11.8 and 12.9
            ("libcudart.so.12", "cudaGetDeviceProperties_v2"): 1032,
            ("libcudart.so.12", "cudaGetDeviceProperties"): 728,
            ("libcudart.so.12", "cudaPointerGetAttributes"): 24,
            ("libcudart.so.11.0", "cudaGetDeviceProperties"): 728,
            ("libcudart.so.11.0", "cudaPointerGetAttributes"): 24,
            ("libcudart.so.11.0", "cudaFuncGetAttributes"): 56,
        }
        for (soname, name), size in sizes.items():
            behind = b"untouched" * 200
            block = ctypes.create_string_buffer(b"\xee" * size + behind)
            function = getattr(ctypes.CDLL(f"{FOLDER}/{soname}"), name)
            # The second argument is device 0, or a null pointer.
            self.assertEqual(function(block, ctypes.c_void_p(0)), 0)
            self.assertEqual(block.raw[size:-1], behind, (soname, name))
            self.assertNotEqual(block.raw[:size], b"\xee" * size, (soname, name))

    def test_a_harmless_call_succeeds(self):
        self.assertEqual(ctypes.CDLL(f"{FOLDER}/libcudart.so.13").cudaProfilerStart(), 0)

    def test_bcast_calls_broadcast_where_a_preload_sees_it(self):
        slots = subprocess.run(["readelf", "-rW", f"{FOLDER}/libnccl.so.2"], check=True,
                               capture_output=True, text=True).stdout
        for name in "ncclBroadcast", "ncclGetUniqueId":
            self.assertRegex(slots, rf"JUMP_SLO.*\b{name}\b")
        self.assertNotRegex(slots, r"JUMP_SLO.*\bncclAllGather\b")


if __name__ == "__main__":
    unittest.main()
