"""The contract's schema explains every field, and its tables are made of it."""

import re
import subprocess

from lib.build import REPO
from lib.contract import CONTRACT

# A line has these beside its args: the schema explains them once, for all lines.
ENVELOPE = set(CONTRACT["properties"])


def properties(rule, path=()):
    """Yields (path, rule) of every field that a rule names, but where it only restricts one."""
    for name, field in rule.get("properties", {}).items():
        yield (*path, name), field
        yield from properties(field, (*path, name))
    if "items" in rule:
        yield from properties(rule["items"], (*path, "[]"))


def explained_for_all(path):
    """Tells whether a field stands in a line itself, and not in its args."""
    whole_line = path[0] in ("metadata", "event") or path[0].startswith("line_")
    return len(path) == 2 and whole_line and path[1] in ENVELOPE


def test_every_field_has_a_description():
    found = dict(properties(CONTRACT))
    for name, rule in CONTRACT["$defs"].items():
        if name != "metric":  # its alternatives are whole lines, which are explained as such
            found |= properties(rule, (name,))
    assert len(found) > 250
    told = {path: rule.get("description", "") for path, rule in found.items() if not explained_for_all(path)}
    assert {path: text for path, text in told.items() if not text.endswith(".")} == {}


def resolved(rule):
    """Returns a rule with what it refers to."""
    if "$ref" not in rule:
        return rule
    referred = resolved(CONTRACT["$defs"][rule["$ref"].rpartition("/")[2]])
    return {
        **referred,
        **rule,
        "required": [*referred.get("required", []), *rule.get("required", [])],
        "properties": {**referred.get("properties", {}), **rule.get("properties", {})},
    }


def args_fields(rule, path):
    """Yields (path, description, whether it is always there) of each field of an object."""
    rule = resolved(rule)
    for name, field in rule.get("properties", {}).items():
        yield f"{path}.{name}", field["description"], name in rule.get("required", [])
        yield from args_fields(field, f"{path}.{name}")
    if "items" in rule:
        yield from args_fields(rule["items"], path + "[]")


def test_a_field_that_is_not_always_there_says_when_it_is_absent():
    lines = [each["$ref"].rpartition("/")[2] for each in CONTRACT["oneOf"]]
    rules = {name: CONTRACT["$defs"][name].get("properties", {}).get("args", {}) for name in lines}
    found = [each for name, rule in rules.items() for each in args_fields(rule, name)]
    assert len(found) > 250
    assert [path for path, told, always in found if always and "bsent:" in told] == []
    assert [path for path, told, always in found if not always and "bsent:" not in told] == []


def strings(rule, path):
    """Yields (path, rule) of each field that may be a string."""
    rule = resolved(rule)
    types = rule.get("type", [])
    if "string" in ([types] if isinstance(types, str) else types):
        yield path, rule
    for name, field in rule.get("properties", {}).items():
        yield from strings(field, f"{path}.{name}")
    for each in [*rule.get("anyOf", []), *([rule["items"]] if "items" in rule else [])]:
        yield from strings({"names": rule["names"], **each} if "names" in rule else each, path)
    if isinstance(rule.get("additionalProperties"), dict):
        assert "names" in rule, path


def test_the_schema_says_what_every_string_names():
    """tprof anonymize replaces what names something, and takes from the schema what does."""
    lines = [each["$ref"].rpartition("/")[2] for each in CONTRACT["oneOf"]]
    found = dict(pair for name in lines for pair in strings(CONTRACT["$defs"][name], name) if name != "line_other")
    assert len(found) > 40
    free = {path for path, rule in found.items() if not rule.keys() & {"names", "const", "enum"}}
    # Digits and colours say nothing of anybody.
    patterns = {resolved(found[path]).get("pattern") for path in free}
    assert patterns == {"^[0-9a-f]{16}$", "^[0-9]+$", "^#[0-9a-f]{6}$"}


def test_every_kind_of_line_and_metric_has_a_description():
    lines = [each["$ref"].rpartition("/")[2] for each in CONTRACT["oneOf"]]
    assert [name for name in lines if not CONTRACT["$defs"][name].get("description")] == []
    assert [each for each in CONTRACT["$defs"]["metric"]["oneOf"] if not each.get("description")] == []


def test_the_tables_of_fields_are_those_of_the_schema(tmp_path):
    """Run scripts/contract-tables where this fails."""
    subprocess.run([REPO / "scripts/contract-tables", tmp_path / "fields.md"], check=True)
    tables = (tmp_path / "fields.md").read_text()
    assert tables == (REPO / "interpose/format/fields.md").read_text()
    told = [line for line in tables.splitlines() if line.startswith("## ")]
    assert len(told) == 1 + len(CONTRACT["oneOf"])
    # Fields in lists, those that a rule refers to, and reasons are told of too.
    for field in ("native[].offsets", "rows[].bytes_class", "rows[].exposed_ns", "timing_lost.order", "host_memory"):
        assert f"\n| `{field}` | " in tables


def test_the_page_can_be_read_in_a_quarter_of_an_hour():
    """The schema says what a field means, and a page beside each command what it prints."""
    page = (REPO / "interpose/format/README.md").read_text()
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    words = [word for word in prose.split() if re.search(r"\w", word)]
    assert 1000 < len(words) <= 3000
