"""Paths of the things under test and of the folder they were built in."""

import os
import pathlib

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = (REPO / os.environ.get("TPROF_BUILD", "build")).resolve()  # relative to the top level, as in scripts/
CLIENTS = REPO / "tests/clients"
GOLDEN = REPO / "tests/golden"
LIBTPROF = BUILD / "libtprof.so"
TPROF = BUILD / "tprof"
STANDIN = BUILD / "standin"
INSTANT = BUILD / "tests/fault/instant"  # libraries whose every call returns at once
