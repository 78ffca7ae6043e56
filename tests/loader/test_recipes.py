"""scripts/packages/ holds a Spack package and a conda recipe. Neither tool is at hand here: what they
name has to be there, and what they repeat has to be what the project says."""

import ast
import re
import subprocess

import pytest
import yaml
from lib.build import REPO

PACKAGES = REPO / "scripts/packages"
SPACK = PACKAGES / "spack/spack_repo/tprof/packages/tprof/package.py"
CONDA = PACKAGES / "conda/recipe.yaml"
BUILD_SH = PACKAGES / "conda/build.sh"
CMAKE = (REPO / "CMakeLists.txt").read_text()
ANALYSIS = "".join((REPO / "analysis" / name).read_text() for name in ("CMakeLists.txt", "static.cmake"))
INTERPOSE = (REPO / "interpose/CMakeLists.txt").read_text()
LIST = REPO / "scripts/requirements-chartjs.txt"


def calls(name):
    """Returns the calls of that function in the Spack package: its words, and those by name."""
    found = [node for node in ast.walk(ast.parse(SPACK.read_text())) if isinstance(node, ast.Call)]
    for call in found:
        if getattr(call.func, "id", getattr(call.func, "attr", "")) == name:
            words = [word.value for word in call.args if isinstance(word, ast.Constant)]
            yield words, {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}


def conda():
    return yaml.safe_load(CONDA.read_text())


def spack_list(name):
    [body] = [node.body for node in ast.walk(ast.parse(SPACK.read_text())) if isinstance(node, ast.ClassDef)]
    [values] = [node.value for node in body if isinstance(node, ast.Assign) and node.targets[0].id == name]
    return ast.literal_eval(values)


def test_both_are_of_the_projects_version():
    version = re.search(r"^project\(tprof VERSION ([\d.]+) ", CMAKE, re.MULTILINE)[1]
    assert [words for words, _ in calls("version")] == [[version]]
    assert conda()["context"]["version"] == version
    assert conda()["package"]["version"] == "${{ version }}"


def options_of_conda():
    return re.findall(r"-D(TPROF_\w+)=", BUILD_SH.read_text())


def options_of_spack():
    return [words[0] for words, _ in calls("define")]


@pytest.mark.parametrize("options", [options_of_conda, options_of_spack])
def test_the_options_they_set_are_those_of_the_build(options):
    known = re.findall(r"(?:option|find_path)\((TPROF_\w+)|set\((TPROF_\w+) [^)]* CACHE ", CMAKE + ANALYSIS + INTERPOSE)
    assert {"TPROF_TESTS", "TPROF_LINK_IN", "TPROF_CHARTJS", "TPROF_LIBUNWIND_SOURCE"} <= set(options()) <= {a or b for a, b in known}


def test_both_take_what_bootstrap_fetches_from_where_bootstrap_puts_them():
    bootstrap = (REPO / "scripts/bootstrap").read_text()
    assert "build=${TPROF_BUILD:-build}" in bootstrap and '"$build/chartjs.new/chart.js"' in bootstrap
    assert "`scripts/bootstrap charts`" in SPACK.read_text() and "`scripts/bootstrap charts`" in CONDA.read_text()
    assert '"TPROF_CHARTJS", str(CHECKOUT / "build/chartjs/chart.js")' in SPACK.read_text()
    [source] = [source for source in conda()["source"] if "chart" in source["path"]]
    assert (CONDA.parent / source["path"]).resolve() == (REPO / "build/chartjs").resolve() / "chart.js"
    assert f'-DTPROF_CHARTJS="$PWD/{source["target_directory"]}/chart.js"' in BUILD_SH.read_text()
    assert 'mv "$build/libunwind.new" "$build/libunwind"' in bootstrap
    assert '"TPROF_LIBUNWIND_SOURCE", str(CHECKOUT / "build/libunwind")' in SPACK.read_text()
    [source] = [source for source in conda()["source"] if "libunwind" in source["path"]]
    assert (CONDA.parent / source["path"]).resolve() == (REPO / "build/libunwind").resolve()
    assert f'-DTPROF_LIBUNWIND_SOURCE="$PWD/{source["target_directory"]}"' in BUILD_SH.read_text()


def test_bootstrap_fetches_what_no_package_manager_has(tmp_path):
    """It is there already, so that nothing is fetched; and no package manager is asked."""
    folder = tmp_path / "chartjs"
    folder.mkdir()
    (folder / "chart.js").touch()
    (tmp_path / "libunwind").mkdir()
    wanted = subprocess.run("cksum", stdin=LIST.open(), capture_output=True, text=True, check=True).stdout
    (folder / f".installed-{LIST.name}").write_text(wanted)
    done = subprocess.run(
        ["/bin/sh", "scripts/bootstrap", "charts"], cwd=REPO, capture_output=True, text=True, check=False,
        env={"TPROF_BUILD": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {file.name for file in tmp_path.iterdir()} == {"chartjs", "libunwind"}


def test_both_ask_for_the_libraries_that_the_build_looks_for():
    looked_for = {name.lower() for name in re.findall(r"find_package\((\w+)", ANALYSIS)} - {"git"}
    of_spack = {re.split("[@ ]", words[0])[0] for words, _ in calls("depends_on")}
    of_conda = {line.split()[0] for line in conda()["requirements"]["host"]}
    theirs = {"nlohmann_json": "nlohmann-json", "sqlite3": "sqlite", "zlib": "zlib-api"}
    assert {theirs.get(name, name) for name in looked_for} | {"elfutils", "cuda", "nccl"} <= of_spack
    theirs = {"sqlite3": "libsqlite"}
    assert {theirs.get(name, name) for name in looked_for} | {"elfutils", "cuda-cudart-dev", "nccl"} <= of_conda


def test_what_both_expect_is_what_is_installed():
    [contents] = [test["package_contents"]["files"] for test in conda()["tests"] if "package_contents" in test]
    installed = {"bin/tprof", "lib/libtprof.so", "lib/tprof-node", "lib/tprof-mpi", "include/tprof.h"}
    assert set(contents) == set(spack_list("sanity_check_is_file")) == installed


def test_neither_writes_folders_of_libraries_into_what_goes_into_other_processes():
    assert conda()["build"]["dynamic_linking"]["binary_relocation"] == ["bin/tprof"]
    freed = re.search(r"for name in (\(.*?\)):\n +delete_rpath\(", SPACK.read_text())[1]
    beside = {name for name in spack_list("sanity_check_is_file") if name.startswith("lib/")}
    assert {f"lib/{name}" for name in ast.literal_eval(freed)} == beside


def test_what_they_name_is_there():
    assert (REPO / conda()["about"]["license_file"]).exists()
    assert CONDA.parent / conda()["build"]["script"] == BUILD_SH and BUILD_SH.exists()
    assert (CONDA.parent / conda()["source"][0]["path"]).resolve() == REPO
    levels = int(re.search(r"resolve\(\)[.]parents\[(\d)\]", SPACK.read_text())[1])
    assert SPACK.parents[levels] == REPO


def test_spack_takes_the_folder_for_a_repository():
    told = yaml.safe_load((SPACK.parents[2] / "repo.yaml").read_text())["repo"]
    assert (SPACK.parents[3].name, SPACK.parents[2].name) == ("spack_repo", told["namespace"])
