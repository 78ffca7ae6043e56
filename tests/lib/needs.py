"""Skips tests whose packages (`scripts/bootstrap test` installs them) are missing; in CI it fails them."""

import importlib.util
import os

import pytest


def why_not(package: str) -> str | None:
    """Returns why tests of this Python package can't run here, or None. The package itself is not loaded."""
    if importlib.util.find_spec(package) is not None:
        return None
    return f"{package} is not installed (scripts/bootstrap test does it)"


def package(name: str) -> None:
    if (why := why_not(name)) is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
