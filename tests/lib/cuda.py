"""Finds the vendor's own libcudart and libnccl: from its Python wheels, or a toolkit."""

import os
import pathlib

from lib.build import BUILD

SONAMES = ("libcudart.so.13", "libnccl.so.2")


def _places() -> list[pathlib.Path]:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("NCCL_HOME"), "/usr/local/cuda"]
    libs = [pathlib.Path(home, lib) for home in homes if home for lib in ("lib64", "lib")]
    distribution = pathlib.Path("/usr/lib/x86_64-linux-gnu")
    return [BUILD / "cuda" / "lib", *libs, distribution]


def libraries() -> list[pathlib.Path]:
    """Returns those of SONAMES that are on this machine."""
    found = [next((p / name for p in _places() if (p / name).exists()), None) for name in SONAMES]
    return [path for path in found if path is not None]


def library_path() -> str | None:
    """Returns the value for LD_LIBRARY_PATH, or None if one of the libraries is missing."""
    found = libraries()
    if len(found) < len(SONAMES):
        return None
    return ":".join(dict.fromkeys(str(path.parent) for path in found))
