"""Rooms include only rooms above them in the table of interpose/README.md."""

import re

from lib.build import REPO

ROOT = REPO / "interpose"


def order():
    table = (ROOT / "README.md").read_text()
    return re.findall(r"^\| `([a-z]+)/` \|", table, re.MULTILINE)


def test_the_table_has_every_room_once():
    rooms = sorted(folder.name for folder in ROOT.iterdir() if folder.is_dir())
    assert sorted(order()) == rooms


def test_no_include_goes_down():
    place = {room: n for n, room in enumerate(order())}
    wrong = []
    for file in sorted(ROOT.glob("*/*")):
        if file.suffix not in (".h", ".cpp"):
            continue
        for room in re.findall(r'^#include "interpose/([a-z]+)/', file.read_text(), re.MULTILINE):
            if place[room] > place[file.parent.name]:
                wrong.append(f"{file.relative_to(ROOT)} includes {room}/")
    assert wrong == []
