"""Where the things under test were built."""

import os
import pathlib

REPO = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("TPROF_BUILD", REPO / "build")).resolve()
CLIENTS = REPO / "tests" / "clients"
LIBTPROF = BUILD / "libtprof.so"
STANDIN = BUILD / "standin"
