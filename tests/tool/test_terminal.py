"""Nothing in a trace, a file name or an argument makes a terminal do anything."""

import json
import os
import unicodedata

import pytest
from lib.handmade import array, comm, event, footer, header, ledger, metadata, row
from lib.tool import tprof

# Colour, title, C1, DEL, bell, carriage return, newline, the marks that turn the writing direction.
EVIL = "a\x1b[31mb\x1b]0;t\x07\x9b2Jc\x7f\r\n\u202ed\u2066e\u200ff\u2028g"


def evil(value):
    """Returns the same, with every string that may be any string replaced."""
    if isinstance(value, dict):
        fixed = ("schema", "bucket", "mode", "reason", "boot_id", "ring", "ph", "cat")
        return {k: v if k in fixed else evil(v) for k, v in value.items()}
    if isinstance(value, list):
        return [evil(v) for v in value]
    return EVIL if isinstance(value, str) else value


def harmful(text):
    return [
        c
        for c in text
        if c != "\n" and (unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in "\u200e\u200f\u061c")
        or unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "PDI")
    ]


def escaped_args(line):
    return {**line, "args": evil(line["args"])}


def rank_file(rank):
    """Returns the file of a rank that ended badly, so that there is something to say of it."""
    rows = [row(name=EVIL, dtype=EVIL, failed=3, unfinished=2)]
    comms = [{"comm": 1, "collectives": 1 + rank, "signature": EVIL + str(rank), "marks": [EVIL]}]
    last = ledger(*rows, comms=comms)
    noted = {"path": EVIL, "kind": EVIL}
    coverage = {"functions": [{"name": EVIL, "library": EVIL, "calls": 1}], "unseen": [noted], "tools": [noted]}
    ending = [footer(dropped={EVIL: 4}, coverage=coverage)] if rank == 0 else []
    head = escaped_args(header(rank=rank, pid=4711 + rank, config={EVIL: EVIL}, env={EVIL: EVIL}))
    # The fixed words keep an identity: both ranks are of one job.
    text = array(
        head,
        escaped_args(comm(name="x", rank=rank)),
        event(name="ncclAllGather", args={"comm": 1, "seq": 0, "count": 1, "dtype": EVIL, "bytes": 8}),
        event(name=EVIL),
        metadata(EVIL, x=EVIL),
        last,
        *ending,
    )
    return text if rank == 0 else text.removesuffix("\n]\n")


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / f"run{EVIL.replace('/', '')}"
    folder.mkdir()
    for rank in (0, 1):
        (folder / f"rank{EVIL}{rank}.json").write_text(rank_file(rank))
    (folder / f"other{EVIL}.json").write_text("{}")
    return folder


COMMANDS = [
    ["summary", "{}"],
    ["summary", "{}", "--lines", "--per-rank", "--by", "op"],
    ["summary", "{}", "--by", "comm"],
    ["summary", "{}", "--by", "dtype"],
    ["summary", "{}", "--run", EVIL],
    ["summary", "{}", EVIL],
    ["summary", "{}/nothing"],
    ["summary", EVIL],
    ["check", "{}"],
    ["check", "{}", "--no-lines"],
    ["budget", "{}", "--model", "ddp", "--params", "1e6"],
    ["report", "{}"],
    ["report", "{}", "-o", f"{{}}/../{EVIL}.html"],
    ["report", "{}", "-o", f"{{}}/{EVIL}/none.html"],
    ["merge", "{}", "-o", "{}/../m.json"],
    ["merge", "{}", "-o", f"{{}}/../{EVIL}.json.gz"],
    ["merge", "{}", "-o", f"{{}}/{EVIL}/none/m.json"],
    ["merge", "{}", "-o", "{}/../m.json", "--ranks", EVIL],
    ["merge", "{}", "-o", "{}/../m.json", f"--{EVIL}"],
    ["export", "{}", "--sqlite", f"{{}}/../{EVIL}.db"],
    ["export", "{}", "--csv", "{}"],
    ["anonymize", "{}", "-o", f"{{}}/../{EVIL}"],
    ["recover", "{}"],
    ["top", "{}", "--once"],
    ["tail", "{}", "--from-start", "--format", "table"],
    ["metrics", "{}", "--textfile", "/dev/stdout/x"],
    ["metrics", "{}", "--listen", EVIL],
    ["watch", "{}", "--exec", "true"],
    ["run", "--out", "{}", "--", EVIL],
    [EVIL],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c).replace(EVIL, "EVIL"))
def test_no_command_passes_on_what_a_terminal_obeys(traces, command):
    result = tprof(*[word.replace("{}", str(traces)) for word in command])
    assert result.stdout or result.stderr or command[:3] == ["report", "{}", "-o"]
    assert not harmful(result.stdout), result.stdout
    assert not harmful(result.stderr), result.stderr
    assert all(line.strip("\n") for line in result.stderr.splitlines())


@pytest.mark.parametrize("command", ["summary", "check"])
def test_json_is_json_and_holds_the_text_as_it_was(traces, command):
    result = tprof(command, traces, "--json")
    assert result.returncode == 1, result.stderr
    assert not harmful(result.stdout)
    assert EVIL in json.dumps(json.loads(result.stdout), ensure_ascii=False).encode().decode(
        "unicode_escape", "ignore"
    ) or json.dumps(EVIL)[1:-1] in json.dumps(json.loads(result.stdout))


def test_a_merged_trace_of_it_is_json(traces, tmp_path):
    assert tprof("merge", traces, "-o", tmp_path / "m.json").returncode == 0
    lines = json.loads((tmp_path / "m.json").read_text())
    assert EVIL in [line["name"] for line in lines]


@pytest.mark.parametrize("name", [b"\xff\xfe.json", b"\xc2.json", b"\xed\xa0\x80.json"])
def test_a_file_name_that_is_no_text_is_escaped(tmp_path, name):
    file = os.path.join(os.fsencode(tmp_path), name)
    with open(file, "w") as f:
        f.write("[\n")
    result = tprof("summary", os.fsdecode(file))
    assert result.returncode == 2
    assert "\\x" in result.stderr and not harmful(result.stderr)
