"""What `scripts/bootstrap test` installs: a test that needs it is skipped without it, and fails in CI."""

import importlib.util
import os

import pytest


def why_not(package: str) -> str | None:
    """Why what needs this Python package can't be tried here; the package itself is not loaded."""
    if importlib.util.find_spec(package) is not None:
        return None
    return f"{package} is not installed (scripts/bootstrap test does it)"


def package(name: str) -> None:
    if (why := why_not(name)) is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
