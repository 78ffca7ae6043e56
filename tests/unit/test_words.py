"""Reads every sentence that users may see: `pytest -s tests/unit/test_words.py` prints the list.

A sentence is a string literal with three words or more, in the tool's code and in what the library
says on standard error. Comments, docstrings and pages are held to the same rule.
"""

import pathlib
import re
from collections.abc import Iterator

import pytest
from lib import prose

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


def headless(sentence: str) -> bool:
    """True if it begins with "Of" or, and is no question, with a bare "What"."""
    return bool(re.match(r"Of\b(?! course)|What\b(?!.*\?$)", sentence, re.DOTALL))


def test_comments_docstrings_and_pages_are_sentences():
    found = list(prose.all_sentences())
    assert len(found) > 10_000
    assert [f"{where}: {sentence}" for where, sentence in found if headless(sentence)] == []


@pytest.mark.parametrize("file, text", [
    ("a.cpp", "int a;  // It is 1. What is\n"),
    ("a.h", "/* It is\n * one. Of two.\n */\n"),
    ("a.js", "// It is one.\n// What is\n// not.\n"),
    ("a.py", 'def f():\n    """Is it?\n\n    Of course. Of one.\n    """\n'),
    ("a.py", "def f():\n    # It is\n    # one. Of two.\n    pass\n"),
    ("run", "#!/bin/sh\n# What is\n"),
    ("run", "#!/usr/bin/env python3\n# What is\n"),
    ("CMakeLists.txt", "# It is one. What\n# is\n"),
    ("a.md", "# What it is\n\n| What |\n|---|\n| It is. Of one. |\n\nWhat is it?\n"),
    ("a.md", "- It is `one`.\n- **What is** it.\n"),
    ("a.md", "See [this](b.md). [What is](c.md) here.\n"),
    ("a.schema.json", '{"b": [{"description": "What is"}]}'),
])  # fmt: skip
def test_sentences_that_have_no_subject_are_found(tmp_path, file, text):
    (tmp_path / file).write_text(text)
    said = [s for _, paragraph in prose.paragraphs_of(tmp_path / file) for _, s in prose.sentences(paragraph)]
    assert len([s for s in said if headless(s)]) == 1, said


def test_sentences_have_single_spaces_between_words():
    # A line that begins with a blank is laid out by hand: the keys of `tprof top`.
    wrong = [
        (source, text)
        for source, text in sentences()
        if re.search(r"[a-z,]  [a-z]", text.replace("\\n", "\n")) and not text.startswith(" ")
    ]
    assert not wrong


# {name}, {name:format}, {name|else} or {name?one|other} in the words of a finding.
FIELD = re.compile(r"\{([a-z_0-9]+)[:|?}]")
GIVEN = re.compile(r'\{"([a-z_0-9]+)",|emplace_back\("([a-z_0-9]+)",')


def words_of_findings() -> Iterator[tuple[str, set[str], set[str]]]:
    """Yields each sentence with the values that its words take, and those of the parts that it shares with others."""
    for source in sorted((ROOT / "analysis/report").glob("words_*.cpp")):
        code = code_without_comments(source)
        shared = dict(re.findall(r"#define (\w+) (.*)", code))
        shared |= re.findall(r"constexpr std::string_view (\w+) =([^;]*);", code)
        for say, row in re.findall(r"\{Say::(\w+),(.*?)\},\s*(?=\{Say::|\};)", code, re.DOTALL):
            parts = [text for name, text in shared.items() if re.search(rf"\b{name}\b", row)]
            yield say, set(FIELD.findall(row)), set(FIELD.findall(" ".join(parts)))


def values_by_sentence() -> tuple[dict[str, set[str]], set[str]]:
    """Returns which values the files that say a sentence give, and all that are given."""
    files = []
    for room in ("check", "doctor", "why"):
        for source in (ROOT / "analysis" / room).glob("*.cpp"):
            code = code_without_comments(source)
            said = set(re.findall(r"\b(?:Say|Kind)::(\w+)", code))
            # A file gives itself what a function of its room gives for it.
            called = re.findall(rf'#include "{room}/(\w+)\.h"', source.read_text())
            twins = [twin for name in called if (twin := source.with_name(f"{name}.cpp")).exists()]
            code += "".join(map(code_without_comments, twins))
            names = {one or other for one, other in GIVEN.findall(code)}
            files.append((said, names))
    given = set().union({"who"}, *(names for _, names in files))
    by_say: dict[str, set[str]] = {}
    for said, names in files:
        for say in said:  # a file that gives no value says which kind it is that another finds
            by_say.setdefault(say, {"who"}).update(names or given)
    return by_say, given


def test_words_of_findings_take_values_that_are_given():
    """A misspelt {name} is none that the files give which say that sentence."""
    by_say, given = values_by_sentence()
    rows = list(words_of_findings())
    assert len(rows) > 150
    for say, names, shared in rows:
        assert names <= by_say.get(say, given), say
        assert shared <= given, say
