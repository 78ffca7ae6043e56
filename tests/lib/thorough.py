"""Tests try a part of what is alike, and all of it in `make test-all`."""

import os
from collections.abc import Iterable

ALL = bool(os.environ.get("TPROF_TEST_ALL"))


def some(things: Iterable, every: int) -> list:
    """Returns all of them in `make test-all`, else the first of each `every`."""
    return list(things)[:: 1 if ALL else every]
