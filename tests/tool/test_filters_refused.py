"""Bad values of --ranks, --steps, --ops, --sizes, --comm and --phase are refused in one line, and so are commands
that can not honour them."""

import re

import pytest
from lib.build import REPO
from lib.filtered import STEPS, line_of_error, write
from lib.tool import tprof


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return write(tmp_path_factory.mktemp("filters") / "job")


COMMANDS = ["summary", "merge", "export", "replay", "report", "diff"]


def arguments(command, folder, to):
    more = {"merge": ["-o", to / "m.json"], "export": ["--csv", to / "csv"], "diff": [folder]}
    return [command, folder, *more.get(command, [])]


BAD = [
    (("--ranks", "5-2"), "--ranks: expected ranks such as 0-3,7, found '5-2'"),
    (("--ranks", "x"), "--ranks: expected ranks such as 0-3,7, found 'x'"),
    (("--ranks", "90-95"), "--ranks: none of the ranks 90-95 is here; there are ranks 0-3"),
    (("--steps", "7-3"), "--steps: expected 10-, 3-7, 5 or 3,5-7, found '7-3'"),
    (("--steps", "-3"), "--steps: expected 10-, 3-7, 5 or 3,5-7, found '-3'"),
    (("--steps", "3,"), "--steps: expected names separated by commas, found '3,'"),
    (("--steps", "100-"), "--steps: there are no steps 100-; there are 1-8"),
    (("--ops", "ncclAllGahter"),
     "--ops: no call is named 'ncclAllGahter'; the job has ALLGATHER, ALLREDUCE, H2D, RESHARDING, cudaMemcpyAsync, "
     "ncclAllGather, ncclAllReduce, ncclReduceScatter"),
    (("--sizes", "1Q"), "--sizes: expected bytes of a call such as 1M-64M, 64K-, -4K or 32768, found '1Q'"),
    (("--sizes", "64M-1M"), "--sizes: expected bytes of a call such as 1M-64M, 64K-, -4K or 32768, found '64M-1M'"),
    (("--sizes", "-"), "--sizes: expected bytes of a call such as 1M-64M, 64K-, -4K or 32768, found '-'"),
    (("--ranks", ""), "--ranks: expected a value; found none: is a variable unset? (see tprof {command} --help)"),
    (("--phase", ""), "--phase: expected a value; found none: is a variable unset? (see tprof {command} --help)"),
    (("--sizes", "1T-"), "no call passes the filters: only sizes 1T-"),
    (("--phase", "sideways"), "--phase: expected load, forward, backward, optimizer, other, found 'sideways'"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("options", "line"), BAD, ids=[" ".join(options) for options, _ in BAD])
def test_bad_values_are_refused_alike_by_all_commands(made, tmp_path, command, options, line):
    _, _, folder = made
    option, value = options
    if command == "diff" and line.startswith("no call passes"):
        return  # the other run may have such calls
    words = [f"{option}={value}"] if value else [option, value]
    refused = line_of_error(*arguments(command, folder, tmp_path), *words)
    assert refused == line.format(command=command)
    assert not (tmp_path / "m.json").exists() and not (tmp_path / "csv").exists()


def test_unknown_communicators_are_refused_with_those_that_are_there(made):
    loop, _, folder = made
    line = line_of_error("summary", folder, "--comm", "pp")
    assert line.startswith("--comm: no communicator has the name, the id, the number or the role 'pp'; the job has ")
    assert all(loop.job.id(comm) in line for comm in range(3))


TABLES = ("op", "comm", "dtype", "size", "phase", "range", "site", "step", "layer", "rank", "wait")


@pytest.mark.parametrize("by", TABLES)
def test_tables_that_can_not_be_filtered_are_refused_and_the_page_names_them(made, by):
    _, _, folder = made
    page = (REPO / "analysis/README.md").read_text()
    (columns,) = re.findall(r"^\| `summary` \|(.*)\|(.*)\|(.*)\|$", page, re.M)
    for option, value, excepted in zip(("ranks", "steps", "ops"), ("0-1", "3", "ALLGATHER"), columns, strict=True):
        arguments = ("summary", folder, "--by", by, f"--{option}", value)
        if f"`{by}`" in excepted.replace("--by ", ""):
            assert line_of_error(*arguments) == f"--{option}: not with --by {by}, which is of the whole job"
        else:
            assert tprof(*arguments).returncode == 0


@pytest.mark.parametrize("command", ["check", "budget"])
@pytest.mark.parametrize("option", ["--ops", "--sizes", "--phase"])
def test_commands_that_can_not_honour_a_filter_refuse_it(made, command, option):
    _, _, folder = made
    assert option in line_of_error(command, folder, option, "x")


def test_merge_refuses_what_is_too_large_and_says_what_to_leave_out(made, tmp_path):
    _, _, folder = made
    size = sum(file.stat().st_size for file in folder.glob("*.json"))
    to = tmp_path / "m.json"
    line = line_of_error("merge", folder, "-o", to, "--max-size", size // 2)
    assert "--ranks 0" in line and "--steps 10-12" in line and "--force" in line
    assert not to.exists()
    assert tprof("merge", folder, "-o", to, "--max-size", size // 2, "--force").returncode == 0
    to.unlink()
    assert tprof("merge", folder, "-o", to, "--max-size", size // 2, "--ranks", "0").returncode == 0
    to.unlink()
    assert tprof("merge", folder, "-o", to, "--max-size", size // 2, "--steps", "1-2").returncode == 0
    # The estimate of what is not added is near: within what headers, names and shifted times change.
    own = [line for line in to.read_text().split("\n") if not line.startswith(('{"cat":"LANE"', '{"cat":"FLOW"'))]
    assert abs(len("\n".join(own)) - size * 2 / STEPS) < 0.3 * size
    assert "--max-size: expected a size" in line_of_error("merge", folder, "-o", to, "--max-size", "much")
