"""Pages can be read: their links lead somewhere, their commands are there, their sentences end."""

import re
import subprocess

import pytest
from lib.build import REPO, TPROF
from lib.pages import pages

PAGES = [str(page) for page in pages()]
# Those that are read from the first to the last line. The contract and the JSON are looked up.
READ = ["README.md", "analysis/README.md", "analysis/why/README.md", "interpose/README.md", "scripts/README.md",
        "tests/README.md"]  # fmt: skip
LONGEST = 30  # words


def text_of(page):
    return (REPO / page).read_text()


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """Returns the names that headings get: those of GitHub."""
    titles = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(page))):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (REPO / page).parent / path if path else REPO / page
        assert file.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(file.read_text()), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_its_title(page):
    assert text_of(page).startswith("# ")


def sentences(text):
    """Yields those of running text and of lists; tables and code have none."""
    text = re.sub(r"^(\||```|#|!).*$", "\n", without_code(text), flags=re.MULTILINE)
    text = re.sub(r"^\s*[-*] |\]\([^)]*\)", lambda m: "" if m[0].startswith("]") else "\n\n", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = re.sub(r"`[^`]*`", "code", " ".join(paragraph.split()))
        yield from re.split(r"(?<=[.:!?;])[\s*]+", paragraph)


@pytest.mark.parametrize("page", READ)
def test_no_sentence_is_too_long(page):
    assert [s for s in sentences(text_of(page)) if len(s.split()) > LONGEST] == []


def test_the_first_pages_are_short():
    assert len(text_of("README.md").splitlines()) <= 120
    words = [word for word in text_of("interpose/README.md").split() if re.search(r"\w", word)]
    assert len(words) <= 1800
    assert (REPO / "analysis/page/picture.png").stat().st_size <= 300_000


def typed_commands(text):
    """Yields what follows `tprof` where a page shows a command, up to a comment or a bar."""
    for command in re.findall(r"(?:`|^\$ |^)tprof ([a-z]+\b[^`\n#|]*)", text, re.MULTILINE):
        yield re.sub(r"'[^']*'|\"[^\"]*\"", "", command.split(" -- ")[0]).split()


def help_of(command):
    done = subprocess.run([TPROF, command, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_their_options_are_there(page):
    if page == "CHANGELOG.md":
        pytest.skip("it tells of versions that were")
    known = {}
    for command, *words in typed_commands(text_of(page)):
        text = known.setdefault(command, help_of(command))
        assert text is not None, f"{page}: tprof {command}"
        for word in words:
            option = re.match(r"--?[a-z][a-z-]*", word)
            if option:
                assert re.search(rf"(?<![\w-]){option[0]}(?![\w-])", text), f"{page}: tprof {command} {option[0]}"
