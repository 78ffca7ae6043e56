"""Where the things under test are, and where they were built."""

import os
import pathlib

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = (REPO / os.environ.get("TPROF_BUILD", "build")).resolve()  # as in scripts/: from the top level
CLIENTS = REPO / "tests/clients"
GOLDEN = REPO / "tests/golden"
LIBTPROF = BUILD / "libtprof.so"
TPROF = BUILD / "tprof"
STANDIN = BUILD / "standin"
INSTANT = BUILD / "tests/fault/instant"  # libraries whose every call returns at once
