"""The table of metadata lines (interpose/format/line_kinds.h) and the contract say the same."""

import json
import pathlib
import re

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
    schema = json.loads((ROOT / "tests/golden/line.schema.json").read_text())
    ours = {name for name in consts(schema) if name.startswith(("tprof_", "process_", "thread_name"))}
    assert ours - {"tprof_other"} == kinds()  # another tool's line in a merged trace, which is no rank's


def test_the_contracts_page_tells_of_each():
    page = (ROOT / "interpose/format/README.md").read_text()
    assert [name for name in kinds() if f"`{name}`" not in page and f'"{name}"' not in page] == []


def test_no_other_file_spells_a_lines_name_as_json():
    """Who looks for a line by its text takes the text from the table."""
    for folder in ("interpose", "analysis"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".h", ".cpp") and path != TABLE:
                assert not re.search(r'name\\":\\"tprof_\w|"name":"tprof_\w', path.read_text()), path
