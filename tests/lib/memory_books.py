"""Reads what the stand-in was asked to allocate: the files memory-<pid> that it leaves in $STANDIN_MEMORY."""

import pathlib
import struct

# engine/memory_books.cpp
DEVICES = 64
PLACES = [*range(DEVICES), "pinned", "managed"]
FILE = struct.Struct(f"<8sq{2 * len(PLACES)}q")


def read_all(folder):
    """Returns {pid: {device, "pinned" or "managed": (bytes now, at most)}}, without places never used."""
    return dict(map(read, pathlib.Path(folder).glob("memory-*")))


def read(path):
    magic, pid, *figures = FILE.unpack(path.read_bytes())
    assert magic == b"standmem", path
    now, peak = figures[: len(PLACES)], figures[len(PLACES) :]
    return pid, {place: (now[i], peak[i]) for i, place in enumerate(PLACES) if peak[i]}
