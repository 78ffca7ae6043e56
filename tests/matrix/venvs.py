"""A virtual environment per row, with exactly the packages that the row names."""

import os
import pathlib
import shutil
import subprocess
import sys

import rows
from lib.build import BUILD
from rows import Row

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[1]
TESTS_VENV = REPO / "build" / "venv"


class CannotInstall(Exception):
    """A package could not be installed; the text says which and why."""


def folder_of(row: Row) -> pathlib.Path:
    return BUILD / "matrix" / f"{row.client}-{row.version}"


def make(row: Row) -> pathlib.Path:
    """Returns the environment; one that is there already, whole, is used again."""
    folder = folder_of(row)
    venv = folder / "venv"
    stamp = venv / ".installed"
    wanted = "\n".join((*row.packages, row.base))
    if stamp.exists() and stamp.read_text() == wanted:
        return venv
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    if row.base:
        base = TESTS_VENV if row.base == rows.TESTS else make(rows.named(row.base))
        (site(venv) / "base.pth").write_text(f"{site(base)}\n")
    # Packages that are built from source use the same versions, and have no CUDA kernels.
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(row.packages) + "\n")
    env = os.environ | {"DS_BUILD_OPS": "0", "PIP_CONSTRAINT": str(constraints)}
    pip = [sys.executable, "-m", "pip", "--python", str(venv), "--disable-pip-version-check"]
    # The wheels are not kept in pip's cache: those of all rows are tens of gigabytes.
    options = ["install", "-q", "--no-input", "--retries", "2", "--no-cache-dir", "--no-deps"]
    for packages in in_order(row.packages):
        done = subprocess.run(
            [*pip, *options, *packages], env=env, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            raise CannotInstall(last_error(done.stderr))
    places = [site(venv), site(base)] if row.base else [site(venv)]
    torch = next((place / "torch" for place in places if (place / "torch").is_dir()), None)
    if torch:
        stubs = REPO / "tests" / "standin" / "wheel_stubs.py"
        command = [sys.executable, str(stubs), "--torch", str(torch / "lib")]
        subprocess.run([*command, "--output", str(folder / "standin")], check=True)
    stamp.write_text(wanted)
    return venv


def in_order(packages: tuple[str, ...]) -> list[list[str]]:
    """Puts DeepSpeed last: it comes as source, and is built with what the others bring."""
    source = [package for package in packages if package.startswith("deepspeed")]
    rest = [package for package in packages if package not in source]
    return [group for group in (rest, ["--use-pep517", *source] if source else []) if group]


def last_error(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("ERROR")]
    return (lines or text.splitlines() or ["no word of pip"])[-1]


def site(venv: pathlib.Path) -> pathlib.Path:
    return next(venv.glob("lib/python3*/site-packages"))
