#!/usr/bin/env python3
"""Makes stubs of the CUDA libraries that an installed PyTorch needs besides cudart, NCCL and the driver.

They export the undefined symbols of PyTorch's own libraries, assigned by version node or, where the
library has none, by prefix. Each returns 0, except for the few below. Nothing is made if the stubs
of the same PyTorch exist already.
"""

import argparse
import pathlib
import re
import subprocess
import sys

OURS = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libnccl.so.2", "libcuda.so.1",
        "libcupti.so.13"}
CUDA = re.compile(r"lib(cu|nv)")
NODES = {"NVSHMEM": "libnvshmem_host"}  # the others are named after their library
PREFIXES = {"curand": "libcurand", "cusparseLt": "libcusparseLt", "cuFile": "libcufile"}

# These must do more than "return 0": PyTorch keeps handles and asks for one algorithm.
BODIES = {
    "cublasCreate_v2": "(void** handle) { static char object; *handle = &object; return 0; }",
    "cublasLtCreate": "(void** handle) { static char object; *handle = &object; return 0; }",
    "cublasLtMatmulAlgoGetHeuristic":
        "(void*, void*, void*, void*, void*, void*, void*, int, void*, int* found) "
        "{ *found = 1; return 0; }",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(libraries):
    found = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", *map(str, libraries)))
    return {soname for soname in found if CUDA.match(soname)} - OURS


def owner(symbol, node, sonames):
    stem = NODES.get(node, node.split(".so")[0]) if node else next(
        (lib for prefix, lib in PREFIXES.items() if symbol.startswith(prefix)), None)
    return next((s for s in sonames if s.split(".so")[0] == stem), None)


def wanted(libraries, sonames):
    symbols = {soname: {} for soname in sonames}
    for line in run("nm", "-D", "--undefined-only", *map(str, libraries)).splitlines():
        name, _, node = (line.split() or [""])[-1].partition("@")
        soname = owner(name, node, sonames)
        if soname:
            symbols[soname][name] = node
    return symbols


def build(soname, symbols, folder, compiler):
    nodes = sorted(set(symbols.values()))
    source = folder / f"{soname}.cpp"
    script = folder / f"{soname}.map"
    source.write_text('extern "C" {\n' + "".join(
        f"long {name}{BODIES.get(name, '() { return 0; }')}\n" for name in sorted(symbols)) + "}\n")
    script.write_text("".join(
        f"{node} {{ global: {' '.join(f'{n};' for n, v in sorted(symbols.items()) if v == node)}"
        f"{' local: *;' if len(nodes) == 1 else ''} }};\n" for node in nodes))
    versions = [f"-Wl,--version-script={script}"] if any(nodes) else []
    subprocess.run([compiler, "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{soname}", *versions,
                    str(source), "-o", str(folder.parent / soname)], check=True)


def find_torch(venv):
    found = sorted(pathlib.Path(venv).glob("lib/python3*/site-packages/torch/lib"))
    return found[0] if found else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", help="PyTorch's lib folder")
    parser.add_argument("--venv", help="or the virtual environment that it is in")
    parser.add_argument("--output", required=True)
    parser.add_argument("--compiler", default="c++")
    args = parser.parse_args()
    torch = pathlib.Path(args.torch) if args.torch else find_torch(args.venv)
    if not torch or not torch.is_dir():
        print("stand-in: no PyTorch installed, no stubs for its other libraries")
        return 0
    libraries = sorted(torch.glob("*.so"))
    folder = pathlib.Path(args.output) / "stubs"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "stamp"
    state = "".join(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}\n"
                    for path in [*libraries, pathlib.Path(__file__)])
    if stamp.exists() and stamp.read_text() == state:
        return 0
    sonames = needed(libraries)
    for soname, symbols in wanted(libraries, sonames).items():
        build(soname, symbols, folder, args.compiler)
    stamp.write_text(state)
    return 0


if __name__ == "__main__":
    sys.exit(main())
