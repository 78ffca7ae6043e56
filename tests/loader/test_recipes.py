"""scripts/packages/ holds a Spack package and a conda recipe. Neither tool is at hand here: their version is the
project's, and what they name is there."""

import ast
import re

import yaml
from lib.build import REPO

PACKAGES = REPO / "scripts/packages"
SPACK = PACKAGES / "spack/spack_repo/tprof/packages/tprof/package.py"
CONDA = PACKAGES / "conda/recipe.yaml"
BUILD_SH = PACKAGES / "conda/build.sh"
CMAKE = (REPO / "CMakeLists.txt").read_text()


def calls(name):
    """Returns the calls of that function in the Spack package: its words, and those by name."""
    found = [node for node in ast.walk(ast.parse(SPACK.read_text())) if isinstance(node, ast.Call)]
    for call in found:
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == name:
            words = [word.value for word in call.args if isinstance(word, ast.Constant)]
            yield words, {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}


def conda():
    return yaml.safe_load(CONDA.read_text())


def test_both_are_of_the_projects_version():
    version = re.search(r"^project\(tprof VERSION ([\d.]+) ", CMAKE, re.MULTILINE)[1]
    assert [words for words, _ in calls("version")] == [[version]]
    assert conda()["context"]["version"] == version
    assert conda()["package"]["version"] == "${{ version }}"


def test_what_they_name_is_there():
    assert (REPO / conda()["about"]["license_file"]).exists()
    assert CONDA.parent / conda()["build"]["script"] == BUILD_SH and BUILD_SH.exists()
    assert (CONDA.parent / conda()["source"][0]["path"]).resolve() == REPO
    levels = int(re.search(r"resolve\(\)[.]parents\[(\d)\]", SPACK.read_text())[1])
    assert SPACK.parents[levels] == REPO


def test_spack_takes_the_folder_for_a_repository():
    told = yaml.safe_load((SPACK.parents[2] / "repo.yaml").read_text())["repo"]
    assert (SPACK.parents[3].name, SPACK.parents[2].name) == ("spack_repo", told["namespace"])
