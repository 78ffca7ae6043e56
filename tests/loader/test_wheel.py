"""scripts/wheel (`make wheel`) makes a wheel that pip alone installs, and everything works from there."""

import pathlib
import platform
import shutil
import subprocess
import sys

import pytest
from lib.build import REPO
from lib.tool import summary_of

PROGRAM = """
import sys, tprof
assert tprof.enabled() and tprof.__file__.startswith(sys.prefix), tprof.__file__
with tprof.scope("said by the package"):
    pass
"""


def environment_in(folder, wheel):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    before = {file for file in folder.rglob("*") if file.is_file()}
    pip(folder, "install", "--no-index", wheel)
    return before


def pip(folder, *words):
    command = [folder / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check", *words]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def wheel():
    made = subprocess.run(["scripts/wheel"], cwd=REPO, capture_output=True, text=True, check=False)
    if "needs libraries of this system" in made.stderr:
        pytest.skip(made.stderr)
    assert made.returncode == 0, made.stderr
    return pathlib.Path(made.stdout.strip())


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    environment_in(folder, wheel)
    return folder


def test_its_name_says_the_oldest_glibc_as_the_readme_does(wheel):
    said = "The library needs glibc 2.28 or newer and nothing else"
    assert wheel.name.endswith(f"-py3-none-manylinux_2_28_{platform.machine()}.whl")
    assert said in (REPO / "README.md").read_text()


def test_a_program_run_from_it_is_traced_and_imports_the_package(environment, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    run = [environment / "bin/tprof", "run", "--quiet", "--out", tmp_path / "traces", "--"]
    done = subprocess.run(
        [*run, environment / "bin/python", tmp_path / "program.py"],
        env={"RANK": "0", "WORLD_SIZE": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [r["name"] for r in summary_of(tmp_path / "traces", "--by", "range")["ranges"]] == ["said by the package"]


def test_the_header_is_where_the_compilers_of_an_environment_look(environment):
    assert (environment / "include/tprof.h").read_bytes() == (REPO / "interpose/user/tprof.h").read_bytes()


def test_manual_pages_are_where_an_environment_has_them(environment):
    assert (environment / "share/man/man1/tprof-summary.1").exists()


def test_pip_takes_all_of_it_away_again(wheel, tmp_path):
    before = environment_in(tmp_path, wheel)
    pip(tmp_path, "uninstall", "-y", "libtprof")
    after = {file for file in tmp_path.rglob("*") if file.is_file()}
    assert {file for file in after ^ before if "__pycache__" not in file.parts} == set()


def test_what_is_missing_for_another_machine_is_said_in_one_line(tmp_path):
    for program in ("dirname", "mkdir", "tr"):
        (tmp_path / program).symlink_to(shutil.which(program))
    done = subprocess.run(
        ["/bin/sh", "scripts/bootstrap", "wheel", "aarch64"],
        cwd=REPO, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert "dpkg --add-architecture arm64" in line and " g++-aarch64-linux-gnu qemu-user" in line
