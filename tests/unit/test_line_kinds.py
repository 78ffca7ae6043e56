"""The table of metadata lines (interpose/format/line_kinds.h) and the contract say the same."""

import pathlib
import re

from lib.contract import CONTRACT

ROOT = pathlib.Path(__file__).parents[2]
TABLE = ROOT / "interpose/format/line_kinds.h"


def kinds():
    return set(re.findall(r'TPROF_LINE\("(\w+)"\)', TABLE.read_text()))


def consts(schema):
    """All names of lines that a schema has."""
    if isinstance(schema, dict):
        name = schema.get("name")
        if isinstance(name, dict):
            yield from [name["const"]] if "const" in name else name.get("enum", [])
        for value in schema.values():
            yield from consts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from consts(value)


def test_the_schema_knows_exactly_these_lines():
    ours = {name for name in consts(CONTRACT) if name.startswith(("tprof_", "process_", "thread_name"))}
    assert ours - {"tprof_other"} == kinds()  # another tool's line in a merged trace, which is no rank's


def objects(rule, path=()):
    """Yields (path, rule) of every rule for an object with named fields in it."""
    if isinstance(rule, dict):
        if "properties" in rule and "object" in rule.get("type", ()):
            yield path, rule
        for key, value in rule.items():
            yield from objects(value, (*path, key))
    elif isinstance(rule, list):
        for n, value in enumerate(rule):
            yield from objects(value, (*path, n))


def test_no_line_may_have_a_field_that_the_schema_does_not_name():
    """A line as such takes its keys from the rules for metadata and events, and another tool's line has its own."""
    found = list(objects(CONTRACT["$defs"]))
    assert len(found) > 40
    closed = [[rule.get(key) for key in ("additionalProperties", "unevaluatedProperties", "propertyNames")] for _, rule in found]
    open_ones = [path for (path, _), (*more, names) in zip(found, closed) if False not in more and not names]
    assert open_ones == [("line_other",), ("line_range",)]  # line_range: its phases (oneOf) name the keys of each



def test_no_other_file_spells_a_lines_name_as_json():
    """Who looks for a line by its text takes the text from the table."""
    for folder in ("interpose", "analysis"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".h", ".cpp") and path != TABLE:
                assert not re.search(r'name\\":\\"tprof_\w|"name":"tprof_\w', path.read_text()), path
