"""The size of the input explains all memory and time that reading it takes."""

import gzip
import resource

import pytest
from lib.build import BUILD
from lib.handmade import array, as_text, closed, comm, event, footer, header, ledger, metadata, row
from lib.tool import tprof


def bounded(*arguments, memory, limit_s=10):
    """Runs the tool within `memory` bytes of heap and a time."""
    if "TPROF_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
        memory = resource.RLIM_INFINITY  # a sanitizer needs terabytes of addresses

    def limits():
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    result = tprof(*arguments, preexec_fn=limits, timeout=limit_s)
    assert result.returncode in (0, 1, 2), result.stderr
    assert "bad_alloc" not in result.stderr
    return result


def many(line, size, **values):
    """Returns lines of `size` bytes in all, with {n} counted up."""
    one = as_text(line)
    return [one.replace("{n}", str(n)) for n in range(size // (len(one) + 2))]


SMALL = {"clock": [], "devices": [], "config": {}}
MIB = 1 << 20
LARGE = {
    "headers": lambda: array(
        metadata("tprof_merged", schema="tprof/1"),
        *many(as_text(header(host="{n}", start_ns=1, **SMALL)).replace(":4711", ":{n}"), MIB),
    ),
    "headers of one rank with a communicator each": lambda: array(
        metadata("tprof_merged", schema="tprof/1"),
        *[
            line
            for n in range(MIB // 700)
            for line in (
                header(pid=n + 1, start_ns=n, **SMALL),
                comm(id=str(n)),
                footer(),
            )
        ],
    ),
    "communicators": lambda: array(
        header(), *many(as_text(comm(id="{n}")).replace('"comm":1', '"comm":{n}1'), MIB), ledger()
    ),
    "epochs": lambda: array(
        header(), comm(), *many(as_text(ledger()).replace('"epoch":0', '"epoch":{n}'), MIB)
    ),
    "rows": lambda: array(
        header(), comm(), ledger(*[row(name=f"f{n}") for n in range(MIB // 230)]), footer()
    ),
    "marks": lambda: array(
        header(),
        comm(),
        ledger(
            comms=[
                {"comm": 1, "collectives": 1, "signature": "", "marks": ["a"] * (MIB // 4)}
            ]
        ),
    ),
    "object gathers": lambda: array(
        header(world_size=1), comm(), *many(event(), MIB), ledger(), footer()
    ),
    "brackets": lambda: "[\n" + as_text(header()) + ",\n" + "[" * MIB,
    "nested metadata": lambda: closed('{"name":"tprof_x","args":' + "[" * MIB),
    "empty lines": lambda: "[\n" * (MIB // 2),
    "a missing rank for every one that there can be": lambda: closed(world_size=2**20),
}


@pytest.mark.parametrize("what", LARGE)
def test_a_megabyte_is_read_within_a_second_or_so_and_100_mib(tmp_path, what):
    """None takes more than 0.4 s; the limit is for a busy machine."""
    file = tmp_path / "rank.json"
    file.write_text(LARGE[what]())
    for arguments in (["summary", file, "--lines"], ["merge", file, "-o", tmp_path / "m.json"]):
        bounded(*arguments, memory=100 * MIB)


def test_memory_does_not_follow_what_a_small_compressed_file_expands_to(tmp_path):
    text = "[\n" + as_text(header()) + ",\n" + "[" * (64 * MIB)
    file = tmp_path / "rank.json.gz"
    file.write_bytes(gzip.compress(text.encode(), 9))
    assert file.stat().st_size < 100_000
    assert bounded("summary", file, memory=100 * MIB).returncode == 2


def test_memory_is_bounded_on_a_large_file_without_a_ledger(tmp_path):
    """The file ends as a closed one does, so the reader looks for a ledger backwards from its end."""
    line = as_text(event()) + ",\n"
    file = tmp_path / "rank.json"
    with open(file, "w") as f:
        f.write("[\n" + as_text(header()) + ",\n")
        for _ in range(80):
            f.write(line * (MIB // len(line)))
        f.write(as_text(event()) + "\n]\n")
    bounded("summary", file, memory=100 * MIB)
