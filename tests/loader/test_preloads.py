"""Beside preloads that stand in front of the same functions, and of the dynamic linker's: in each order the program and
the other preload do as without us, and the counts are the stand-in's."""

import pytest
from lib.build import BUILD, LIBTPROF, REPO
from lib.launch import start
from lib.rankfile import calls_in
from lib.tally import returned_in
from loader.test_dlsym import VERSION, library

SOURCE = (REPO / "tests/loader/plant/sharer.c").read_text()

# By what is defined for plant/sharer.c.
KINDS = (
    "", "NEXT", "DLSYM", "DLSYM ANY", "DLSYM ANY HIDDEN", "DLSYM FORGETS ADDRESS", "DLSYM HIDDEN ADDRESS",
    "DLOPEN DLVSYM NEXT", "DLOPEN DLSYM ANY ADDRESS FORGETS",
)  # fmt: skip
ORDERS = {"before us": "ab.", "behind us": ".ab", "around us": "a.b"}
PROGRAMS = ("ways_linked", "ways_taken handle", "runtime_copies_static",
            "driver_copies linked", "driver_copies dlsym", "driver_copies address")  # fmt: skip
ALL = {"TPROF_DLSYM": "1", "TPROF_DRIVER": "1"}


@pytest.fixture(scope="module")
def sharers(tmp_path_factory):
    """sharers(kind) -> two preloads of a kind, each with functions of its own."""
    folder = tmp_path_factory.mktemp("sharers")

    def make(kind):
        files = {name: folder / f"lib{kind.replace(' ', '-')}-{name}.so" for name in "ab"}
        for file in files.values():
            if not file.exists():
                library(file, SOURCE, "-O1", f'-DVERSION="{VERSION}"', *(f"-D{word}" for word in kind.split()))
        return files | {".": LIBTPROF}

    return make


def run(folder, program, preload, **variables):
    name, *words = program.split()
    program = [(BUILD / "tests/loader/ways" if name.startswith("ways") else BUILD) / name, *words]
    return start(program, folder, LD_PRELOAD=":".join(map(str, preload)), **variables)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_does_as_without_the_other(tmp_path, sharers, kind, order):
    files = sharers(kind)
    for program in PROGRAMS:
        alone = run(tmp_path / program / "alone", program, [files[one] for one in ORDERS[order] if one != "."])
        for setting in ({}, ALL):
            done = run(tmp_path / program / str(len(setting)), program, map(files.get, ORDERS[order]), **setting)
            assert (done.code, done.stdout, done.stderr) == (alone.code, alone.stdout, alone.stderr)
            made, seen = returned_in(done.tally), calls_in(done.traces)
            assert made == returned_in(alone.tally) and made
            seen_anyway = program == "ways_linked" and (order == "behind us" or "NEXT" in kind)
            assert seen == made or not (seen or setting or seen_anyway)
