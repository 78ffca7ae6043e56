"""The pages of the project."""

from lib.build import REPO

FOLDERS = ("analysis", "interpose", "scripts", "tests")


def pages():
    """Returns all of them, as paths relative to the project's folder."""
    found = [*REPO.glob("*.md"), *(page for folder in FOLDERS for page in (REPO / folder).rglob("*.md"))]
    return sorted(page.relative_to(REPO) for page in found if not any(part.startswith(".") for part in page.parts))
