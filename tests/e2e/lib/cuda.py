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


def library_path() -> str | None:
    """For LD_LIBRARY_PATH, or None where one of the libraries is missing."""
    found = []
    for soname in SONAMES:
        folder = next((place for place in _places() if (place / soname).exists()), None)
        if folder is None:
            return None
        found.append(str(folder))
    return ":".join(dict.fromkeys(found))
