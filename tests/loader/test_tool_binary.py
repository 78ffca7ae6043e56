"""build/tprof runs wherever libtprof.so does, and `make install` puts both where they find each other."""

import os
import pathlib
import re
import subprocess

import pytest
from lib.build import BUILD, TPROF
from lib.pages import pages

OLDEST_GLIBC = (2, 28)  # as of the library (test_binary.py)
LIBC_FAMILY = {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
HERE = (BUILD / "simdjson/simdjson.cpp", *pathlib.Path("/usr/lib").glob("*/libsimdjson_static.a"))


def readelf(file, *options):
    command = ["readelf", "--wide", *options, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needs(file):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", readelf(file, "--dynamic"))


@pytest.mark.skipif(not any(map(pathlib.Path.exists, HERE)), reason="no simdjson to link in")
def test_it_needs_no_library_no_loader_and_no_version_of_glibc():
    assert needs(TPROF) == []
    assert "INTERP" not in readelf(TPROF, "--program-headers")
    assert "GLIBC" not in readelf(TPROF, "--version-info")


@pytest.mark.parametrize("name", ["tprof-node", "tprof-mpi"])
def test_what_it_starts_runs_wherever_the_library_loads(name):
    program = BUILD / name
    assert "libc.so.6" in needs(program) and set(needs(program)) <= LIBC_FAMILY
    versions = re.findall(r"GLIBC_([\d.]+)", readelf(program, "--version-info"))
    assert versions and all(tuple(map(int, version.split("."))) <= OLDEST_GLIBC for version in versions)
    assert not re.search(r"GLIBC_PRIVATE|GLIBCXX|CXXABI|GCC_", readelf(program, "--version-info"))


def test_installed_both_find_each_other_and_nothing_names_the_place(tmp_path):
    """This is how a package is made: staged in DESTDIR, and moved afterwards."""
    stage = tmp_path / "stage"
    done = subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", "/opt/tprof", "--strip"],
        env={**os.environ, "DESTDIR": str(stage)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    moved = (stage / "opt/tprof").rename(tmp_path / "moved")
    files = {str(file.relative_to(moved)) for file in moved.rglob("*") if file.is_file()}
    beside = {"lib/libtprof.so", "lib/tprof-node", "lib/tprof-mpi"}
    ours = {"bin/tprof", *beside, "include/tprof.h", "share/tprof/tprof.py"}
    ours |= {"share/pkgconfig/libtprof.pc", "share/bash-completion/completions/tprof", "share/zsh/site-functions/_tprof",
             "share/fish/vendor_completions.d/tprof.fish", "share/cmake/tprof/tprof-config.cmake",
             "share/cmake/tprof/tprof-config-version.cmake"}  # fmt: skip
    files = {file for file in files if not file.startswith("share/man/man1/")}  # test_manual.py
    pages_and_more = ("LICENSE", "licences/libunwind", "analysis/page/picture.png", *pages())
    assert files == ours | {f"share/doc/tprof/{name}" for name in pages_and_more}
    for name in ("bin/tprof", *beside):
        assert ".debug_info" not in readelf(moved / name, "--sections")
    run = [moved / "bin/tprof", "run", "--quiet", "--out", tmp_path / "traces", "--"]
    seen = subprocess.run(
        [*run, "printenv", "LD_PRELOAD"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (seen.returncode, seen.stdout) == (0, f"{moved}/lib/libtprof.so\n"), seen.stderr
    programs_find_the_header(moved, tmp_path)


PROJECT = """cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(tprof 0.1 REQUIRED)
add_executable(user user.c)
target_link_libraries(user tprof::tprof)
"""


def programs_find_the_header(prefix, folder):
    source = folder / "user"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "user.c").write_text('#include "tprof.h"\nint main(void) { return 0; }\n')
    for words in (["-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}"], ["--build", source / "build"]):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    pc = prefix / "share/pkgconfig/libtprof.pc"
    assert re.search(r"^prefix=\$\{pcfiledir\}/\.\./\.\.$", pc.read_text(), re.MULTILINE)
