"""Fixtures of the tool's tests: its doctor, and the healthy jobs that faults are planted in."""

import pytest
from lib import faults
from lib.doctor import Doctor


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
