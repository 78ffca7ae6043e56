"""The tool as its user runs it: commands, files, exit codes."""

import json
import os
import pathlib
import subprocess

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TPROF_BUILD", "build"))
BUILD = BUILD if BUILD.is_absolute() else ROOT / BUILD
GOLDEN = ROOT / "tests/golden"


@pytest.fixture(scope="session")
def tprof():
    """tprof("summary", path, ...) -> the finished process."""
    binary = BUILD / "tprof"
    assert binary.exists(), f"{binary} is missing: build first (make), or set TPROF_BUILD"

    def call(*arguments, **options):
        return subprocess.run(
            [binary, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options
        )

    return call


@pytest.fixture(scope="session")
def generate():
    """generate(folder, ranks, lines) -> the totals that the rank files in `folder` hold."""

    def call(folder, ranks, lines, unclosed=-1):
        folder.mkdir(parents=True, exist_ok=True)
        command = [BUILD / "rank_files", folder, ranks, lines, unclosed]
        return json.loads(subprocess.check_output(list(map(str, command)), timeout=60))

    return call


@pytest.fixture(scope="session")
def schema():
    """Checks one line of a rank file or merged trace."""
    text = (GOLDEN / "line.schema.json").read_text()
    return jsonschema.Draft202012Validator(json.loads(text))


def lines_of(file):
    """The lines of a trace that hold an object, as text without comma."""
    lines = pathlib.Path(file).read_text().split("\n")
    return [line.rstrip(",") for line in lines if line not in ("[", "]", "")]
