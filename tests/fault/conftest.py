"""What is tried here has its files in memory: a disk that is slow for a moment gets no ring file."""

import pathlib
import tempfile

import pytest


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """A module that is about disks says ON_DISK = True."""
    if getattr(request.module, "ON_DISK", False):
        yield tmp_path_factory.mktemp("on_disk")
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tprof-test-") as folder:
        yield pathlib.Path(folder)
