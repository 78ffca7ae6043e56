"""The sentences of the project's comments, docstrings and pages."""

import ast
import io
import json
import pathlib
import re
import tokenize
from collections.abc import Iterator

from lib.build import REPO
from lib.pages import FOLDERS, pages

SLASHES = {".cpp", ".h", ".c", ".js", ".in"}
HASHES = {".sh", ".txt", ".cmake", ".yaml", ".ini", ".clang-tidy", ".map"}
BESIDE = ("CMakeLists.txt", "Makefile", ".clang-tidy", ".ci/run")  # of our folders

# A paragraph, with the line that it begins in. Its own lines are kept.
Paragraph = tuple[int, str]


def joined(comments: list[tuple[int, int, str]]) -> Iterator[Paragraph]:
    """Joins comments, each with its line and column, that stand below each other to paragraphs."""
    first, lines, end = 1, [], (0, 0)
    for line, column, words in comments:
        if end != (line - 1, column) or re.match(r"\s*([-*] |$)", words):
            yield first, "\n".join(lines)
            first, lines = line, []
        lines.append(words)
        end = line, column
    yield first, "\n".join(lines)


def comments_of_lines(text: str, mark: str) -> Iterator[Paragraph]:
    found = []
    for line, words in enumerate(text.splitlines(), 1):
        comment = re.search(rf"(?:^|\s){mark}+(?: +(.*)|)$", words)
        if comment:
            found.append((line, comment.start(), comment[1] or ""))
    return joined(found)


def comments_between_stars(text: str) -> Iterator[Paragraph]:
    for found in re.finditer(r"^\s*/\*(.*?)\*/", text, re.DOTALL | re.MULTILINE):
        first = text.count("\n", 0, found.start(1)) + 1
        lines = [re.sub(r"^\s*\*? ?", "", line) for line in found[1].split("\n")]
        yield from joined([(first + i, 0, line) for i, line in enumerate(lines)])


def comments_of_python(text: str) -> Iterator[Paragraph]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [t for t in tokens if t.type == tokenize.COMMENT and not t.string.startswith("#!")]
    yield from joined([(*t.start, t.string.lstrip("# ")) for t in comments])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            words = node.body[0].value
            lines = words.value.split("\n")
            yield from joined([(words.lineno + i, 0, line) for i, line in enumerate(lines)])


def paragraphs_of_page(text: str) -> Iterator[Paragraph]:
    """Leaves out titles, those of tables too, and blocks of code."""
    text = re.sub(r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^#.*$|^\|.*(?=\n\| ?:?-)", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]\n]*)\]\([^)\n]*\)", r"\1", text)
    lines = []
    for line, words in enumerate(text.splitlines(), 1):
        cells = words.strip("| ").split("|") if words.startswith("|") else [words]
        for column, cell in enumerate(cells):
            item = re.match(r"\s*(?:[-*]|\d+\.) +", cell)
            lines.append((line, column, f"- {cell[item.end():]}" if item else cell.strip()))
    return joined(lines)


def descriptions(value: object) -> Iterator[Paragraph]:
    """Yields the words of a JSON schema."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("description", "$comment") and isinstance(inner, str):
                yield 0, inner
            else:
                yield from descriptions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from descriptions(inner)


def kind_of(path: pathlib.Path) -> str:
    return path.suffix or (path.name if path.name.startswith(".") else "")


def paragraphs_of(path: pathlib.Path) -> Iterator[Paragraph]:
    text = path.read_text()
    kind = kind_of(path)
    if kind == ".md":
        yield from paragraphs_of_page(text)
    elif kind == ".json":
        yield from descriptions(json.loads(text))
    elif kind == ".py" or re.match("#!.*python", text):
        yield from comments_of_python(text)
    elif kind in SLASHES:
        yield from comments_of_lines(text, "//")
        yield from comments_between_stars(text)
    else:
        yield from comments_of_lines(text, "#")


def files() -> Iterator[pathlib.Path]:
    yield from (REPO / name for name in (*pages(), *BESIDE))
    for folder in FOLDERS:
        for path in sorted((REPO / folder).rglob("*")):
            written = kind_of(path) in SLASHES | HASHES | {".py"} or path.name.endswith(".schema.json")
            script = folder == "scripts" and not kind_of(path)
            if (written or script) and path.is_file() and "corpus" not in path.parts:
                yield path


def sentences(paragraph: str) -> Iterator[tuple[int, str]]:
    """Yields the sentences of a paragraph, each with how many lines below the first it begins."""
    text = re.sub(r"`[^`]*`", lambda code: "code" + "\n" * code[0].count("\n"), paragraph)
    start = 0
    for end in re.finditer(r"[.!?:;]['\")*]*(?=\s)|\Z", text):
        sentence = text[start : end.end()]
        stripped = sentence.lstrip("-*_\"'( \n")
        if stripped:
            yield text.count("\n", 0, end.end() - len(stripped)), stripped.rstrip("*\"') \n")
        start = end.end()


def all_sentences() -> Iterator[tuple[str, str]]:
    """Yields every sentence with where it is."""
    for path in files():
        for line, paragraph in paragraphs_of(path):
            for below, sentence in sentences(paragraph):
                yield f"{path.relative_to(REPO)}:{line + below}", sentence
