"""The interpreters that this machine has, by version."""

import pathlib
import sys


def interpreters() -> dict[str, pathlib.Path]:
    """Returns one interpreter for each version that this machine has."""
    found = {".".join(map(str, sys.version_info[:2])): pathlib.Path(sys.executable)}
    for python in sorted(pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3")):
        version = ".".join(python.parts[-3].split(".")[:2])
        found.setdefault(version, python)
    return found
