"""Holds libtprof.so's part of nongnu.org's libunwind against LLVM's, on every frame of PyTorch's and other stacks."""

import pytest
from lib import needs
from lib.build import BUILD
from lib.launch import start, without_agent
from lib.thorough import some

WALKERS = BUILD / "libtwo_walkers.so"
SCRIPTS = some(["fsdp2.py", "fsdp1.py", "zero3.py", "ddp.py"], 4)


@pytest.fixture(autouse=True)
def built():
    if not WALKERS.exists():
        pytest.skip("no libunwind.a of LLVM's (scripts/bootstrap test installs it where the system has it)")


def walks(command, folder):
    """Returns, for each process that made calls: walks, frames, walks that differ, and those that ours cut short."""
    to = folder / "walks"
    to.mkdir()
    done = start(command, folder, preload=False, LD_PRELOAD=str(WALKERS), WALKS_TO=str(to))
    assert done.code == 0, done.stderr
    return [tuple(map(int, file.read_text().split())) for file in to.iterdir()], done.stderr


def test_they_see_the_same_frames_of_realigned_sized_and_deep_stacks_and_of_a_plugin(tmp_path):
    plugin = BUILD / "libstacks_plugin.so"
    ((count, frames, differ, cut),), stderr = walks([BUILD / "stacks", plugin, "200"], tmp_path)
    assert (differ, cut) == (0, 0), stderr
    assert count == 9 and frames > 200


@pytest.mark.parametrize("script", SCRIPTS)
def test_they_see_the_same_frames_of_pytorch_s_stacks(tmp_path, script):
    for package in ("torch", *(["deepspeed"] if script == "zero3.py" else [])):
        needs.package(package)
    ranks, stderr = walks(without_agent(script, 2), tmp_path)
    assert len(ranks) == 2
    for count, frames, differ, cut in ranks:
        assert (differ, cut) == (0, 0), stderr
        # A stack goes from PyTorch's C++ through the interpreter, or through autograd.
        assert count > 20 and frames > 15 * count
