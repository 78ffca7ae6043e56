"""Rooms include only rooms above them in the table of interpose/README.md and of analysis/README.md."""

import re

import pytest
from lib.build import REPO

# An include of a room begins with this.
ROOTS = {"interpose": "interpose/", "analysis": ""}
# The tool reads what the library writes: its layout, and its lines. Headers of lines are in write/.
OF_INTERPOSE = {"base", "format", "write", "api"}
INCLUDE = re.compile(r'^#include "(interpose/[a-z]+/[a-z_]+\.h)"', re.MULTILINE)


def order(root):
    table = (REPO / root / "README.md").read_text()
    return re.findall(r"^\| `([a-z]+)/` \|", table, re.MULTILINE)


def includes(root, prefix):
    """Yields (file, the room that it includes)."""
    for file in sorted((REPO / root).glob("*/*")):
        if file.suffix in (".h", ".cpp"):
            for room in re.findall(rf'^#include "{prefix}([a-z]+)/[a-z_]+\.h"', file.read_text(), re.MULTILINE):
                yield file, room


@pytest.mark.parametrize("root", ROOTS)
def test_the_table_has_every_room_once(root):
    assert sorted(order(root)) == sorted(folder.name for folder in (REPO / root).iterdir() if folder.is_dir())


@pytest.mark.parametrize("root", ROOTS)
def test_no_include_goes_down(root):
    place = {room: n for n, room in enumerate(order(root))}
    found = list(includes(root, ROOTS[root]))
    assert len(found) > 100
    assert [(file.name, room) for file, room in found if place[room] > place[file.parent.name]] == []


def test_the_tool_takes_nothing_of_the_library_but_its_layout_and_lines():
    """A header that needs a traced process is not reached, either, by what the tool includes."""
    wanted = {file for source in (REPO / "analysis").glob("*/*.[hc]*") for file in INCLUDE.findall(source.read_text())}
    reached = set()
    while wanted:
        reached |= wanted
        wanted = {file for header in wanted for file in INCLUDE.findall((REPO / header).read_text())} - reached
    assert len(reached) > 30 and {file.split("/")[1] for file in reached} <= OF_INTERPOSE


def test_whatever_a_room_does_at_a_fork_is_called():
    declared = 0
    called = "".join(file.read_text() for file in (REPO / "interpose").glob("*/*") if file.suffix in (".h", ".cpp"))
    for header in (REPO / "interpose").glob("*/*.h"):
        text = header.read_text()
        if re.search(r"^(inline )?void after_fork\(\)", text, re.MULTILINE):
            declared += 1
            place = re.findall(r"^namespace ([a-z_:]+) \{", text, re.MULTILINE)[-1].split("::")[-1]
            assert f"{place}::after_fork" in called, header
    assert declared > 10
