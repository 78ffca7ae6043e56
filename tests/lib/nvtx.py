"""A program that does with NVTX what a test says (loader/nvtx/script.cpp), and its ranges in the trace."""

import os

from lib.build import BUILD, LIBTPROF
from lib.contract import not_as_the_contract_says
from lib.launch import start
from lib.rankfile import lines_of
from lib.tool import merged

NONE = 0  # of nvtxPayloadType_t


def event(what, name, domain="", category=0, color="", payload=(NONE, "0"), size="", version=3):
    return "\t".join(map(str, (what, domain, f"{category:x}", color, *payload, size, version, name)))


def run(folder, script, **variables):
    folder.mkdir(exist_ok=True)
    (folder / "script").write_bytes(b"".join(os.fsencode(line) + b"\0" for line in script))
    ours = {"RANK": "0", "WORLD_SIZE": "1", "NVTX_INJECTION64_PATH": str(LIBTPROF)}
    done = start([BUILD / "nvtx_script", folder / "script"], folder, libraries=None, **(ours | variables))
    assert done.stderr == ""
    return done


def lines(folder):
    """Returns the lines of all processes, whether they closed or not; they must follow the schema."""
    found = merged(folder / "traces", folder / "merged.json")
    assert not_as_the_contract_says(lines_of(folder / "merged.json")) == []
    return found


def ranges(folder):
    return [line for line in lines(folder) if line.get("cat") == "NVTX"]
