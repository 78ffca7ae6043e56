"""Fixtures of the tool's tests: its doctor, and the healthy jobs that faults are planted in."""

import pytest
from lib import faults
from lib.doctor import Doctor
from lib.thorough import ALL


def pytest_collection_modifyitems(items):
    """In a job of 512 ranks a fault is planted in the middle only, but for `make test-all`: size and place are
    each other's business in none of the checks, and files of 512 ranks take a second."""

    def again(item):
        values = item.callspec.params if hasattr(item, "callspec") else {}
        return max(faults.SIZES) in values.values() and values.get("place") in ("first", "last")

    if not ALL:
        items[:] = [item for item in items if not again(item)]


@pytest.fixture
def doctor(tmp_path):
    (tmp_path / "work").mkdir()
    return Doctor(tmp_path / "work")


@pytest.fixture(params=["first", "middle", "last"])
def place(request):
    return request.param


@pytest.fixture(params=faults.SIZES)
def healthy(request, healthy_job):
    """A healthy job with its files, and the rank that the fault is planted in."""
    return healthy_job(request.param), faults.RANK[request.param]
