"""Compares the native frames of TPROF_CALLSITE=native with where the program says that it stands."""

import json
import pathlib
import re
import shutil
import subprocess

import jsonschema_rs
import pytest
from lib import rankfile
from lib.build import BUILD, CLIENTS, GOLDEN
from lib.contract import not_as_the_contract_says
from lib.launch import start
from lib.tool import told, tprof

SCHEMA = jsonschema_rs.Draft202012Validator(json.loads((GOLDEN / "summary.schema.json").read_text()))
SOURCE = CLIENTS / "stacks_plugin/plugin.cpp"
MOST = 24
DEPTH = 40
PLAIN, THREAD, DEEP, REALIGNED, SIZED, PLUGIN, UNLOADED = range(11, 18)  # counts of the calls


def run(folder):
    """Runs copies of the program and its plugin, which may be changed afterwards."""
    program = pathlib.Path(shutil.copy(BUILD / "stacks", folder))
    plugin = pathlib.Path(shutil.copy(BUILD / "libstacks_plugin.so", folder))
    done = start([program, plugin, DEPTH], folder, TPROF_CALLSITE="native")
    assert done.code == 0, done.stderr
    assert done.words_of_ours() == []
    return done, program, plugin


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return run(tmp_path_factory.mktemp("ran"))


def printed(done):
    """Returns count of each call -> the functions and lines that it came from, as the program knows them."""
    return {
        int(count): [(place.split(":")[0], int(place.split(":")[1])) for place in places]
        for count, *places in map(str.split, done.stdout.splitlines())
    }


def sites(done):
    """Returns count of each call -> its row of the summary."""
    report = told("summary", done.traces, "--by", "site")[1]
    assert SCHEMA.is_valid(report)
    return {row["count"] // row["calls"]: row for row in report["sites"]}


def places(row):
    """Returns function, without its namespace, and line of each place in the client's files."""
    all_places = [place for frame in row["native"] for place in frame["places"]]
    return [
        (place["function"].split("::")[-1], place["line"])
        for place in all_places
        if place["file"] and pathlib.Path(place["file"]).name in ("stacks.cpp", "plugin.cpp")
    ]


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: (\w+)", notes)[1]


def line_in_plugin(function):
    return next(n for n, x in enumerate(SOURCE.read_text().splitlines(), 1) if x.endswith(f"// line of {function}"))


@pytest.mark.parametrize("count", [PLAIN, REALIGNED, SIZED, UNLOADED])
def test_frames_are_the_functions_and_lines_that_called(ran, count):
    done = ran[0]
    expected = printed(done)[count]
    row = sites(done)[count]
    # Above main() there is the C library; `through` has no line of its own in what is printed.
    found = [place for place in places(row) if place[0] in dict(expected)]
    assert len(expected) >= 3 and found == expected + [p for p in found[len(expected) :] if p[0] == "main"]
    assert not row["native_cut"]
    assert row["calls"] == (3 if count == PLAIN else 1)


def test_what_was_inlined_is_named_where_it_was(ran):
    frames = sites(ran[0])[PLAIN]["native"]
    inlined = [f for f in frames if len(f["places"]) > 1 and f["places"][0]["function"].endswith("inlined")]
    assert len(inlined) == 1 and inlined[0]["places"][1]["function"].endswith("::outer")


def test_a_thread_s_frames_end_where_it_began(ran):
    row = sites(ran[0])[THREAD]
    assert places(row)[:2] == printed(ran[0])[THREAD]
    assert "main" not in [function for function, _ in places(row)] and not row["native_cut"]


def test_of_a_deep_stack_the_innermost_frames_are_there_and_it_is_said_that_it_went_on(ran):
    expected = printed(ran[0])[DEEP]
    assert len(expected) > DEPTH
    row = sites(ran[0])[DEEP]
    assert len(row["native"]) == MOST and row["native_cut"]
    assert places(row) == expected[:MOST]


def test_a_library_that_was_unloaded_has_its_names(ran):
    names = [(f, line_in_plugin(f)) for f in ("within_plugin", "through_plugin")]
    found = places(sites(ran[0])[PLUGIN])
    assert found[:4] == printed(ran[0])[PLUGIN] + names
    assert [function for function, _ in found[4:]] == ["through", "main"]


def test_the_first_frame_is_the_caller_and_lines_are_as_the_contract_says(ran):
    lines = ran[0].only_rank().lines
    found = [args for args in rankfile.named(lines, "tprof_site") if "native" in args]
    assert len(found) == 7
    for args in found:
        first = args["native"][0]
        assert (first["object"], first["offsets"][0]) == (args["object"], args["offset"])
        assert first["object"] == str(ran[1])
    assert not not_as_the_contract_says(rankfile.lines_of(next(ran[0].traces.glob("*.json"))))


def test_build_ids_are_those_of_the_files(ran):
    lines = ran[0].only_rank().lines
    found = {
        run["object"]: run["build_id"] for args in rankfile.named(lines, "tprof_site") for run in args.get("native", [])
    }
    assert {str(ran[1]), str(ran[2])} < set(found)
    for path, build_id in found.items():
        assert build_id_of(path) == build_id


def test_summary_text_lists_the_stack(ran):
    text = tprof("summary", ran[0].traces, "--by", "site").stdout
    for function, line in printed(ran[0])[PLAIN]:
        assert re.search(rf"stacks stacks\.cpp:{line} .*{function}$", text, re.MULTILINE)


def test_other_objects_at_the_path_give_no_names(tmp_path):
    done, program, plugin = run(tmp_path)
    before = sites(done)

    def frames_of(count, path):
        return [frame for frame in sites(done)[count]["native"] if frame["object"] == path.name]

    # A stripped program has no symbols, and exports no names for its functions.
    subprocess.run(["strip", program], check=True)
    assert all(frame["places"] == [] for frame in frames_of(PLAIN, program))
    build_id = bytes.fromhex(build_id_of(plugin))
    other = plugin.read_bytes().replace(build_id, bytes(byte ^ 1 for byte in build_id))
    plugin.unlink()  # a mapped file stays
    plugin.write_bytes(other)
    assert len(frames_of(PLUGIN, plugin)) == 2 and all(f["places"] == [] for f in frames_of(PLUGIN, plugin))
    plugin.unlink()
    assert all(f["places"] == [] for f in frames_of(PLUGIN, plugin))
    after = sites(done)
    assert {count: row["calls"] for count, row in after.items()} == {c: row["calls"] for c, row in before.items()}
    assert {c: [f["offset"] for f in row["native"]] for c, row in after.items()} == {
        c: [f["offset"] for f in row["native"]] for c, row in before.items()
    }
