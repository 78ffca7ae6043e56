"""Reads every sentence that users may see: `pytest -s tests/unit/test_words.py` prints the list.

A sentence is a string literal with three words or more, in the tool's code and in what the library
says on standard error.
"""

import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
WORDS = re.compile(r"[A-Za-z]{2,}")
# A fragment where a sentence should be: it has no subject.
FRAGMENT = re.compile(r"^(?:Of|What|That of|Those of) [a-z]")


def code_without_comments(source: pathlib.Path) -> str:
    lines = source.read_text().splitlines()
    return "\n".join(line for line in lines if not re.match(r"\s*(//|#include)", line))


def sentences() -> Iterator[tuple[str, str]]:
    for side in ("analysis", "interpose"):
        for source in sorted((ROOT / side).rglob("*")):
            if source.suffix not in (".cpp", ".h"):
                continue
            for found in LITERALS.finditer(code_without_comments(source)):
                text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found[0]))
                if len(WORDS.findall(text)) >= 3:
                    yield str(source.relative_to(ROOT)), text


def test_sentences_are_not_fragments():
    found = list(sentences())
    assert len(found) > 500
    for source, text in found:
        print(f"{source}: {text}")
    wrong = [(source, text) for source, text in found if FRAGMENT.match(text)]
    assert not wrong


def test_sentences_have_single_spaces_between_words():
    # A line that begins with a blank is laid out by hand: the keys of `tprof top`.
    wrong = [
        (source, text)
        for source, text in sentences()
        if re.search(r"[a-z,]  [a-z]", text.replace("\\n", "\n")) and not text.startswith(" ")
    ]
    assert not wrong
