"""The schema of the contract (interpose/format/line.schema.json), and what it says against lines."""

import json
from collections.abc import Iterable

import jsonschema_rs
from lib.build import REPO

# One line of a rank file or merged trace.
CONTRACT = json.loads((REPO / "interpose/format/line.schema.json").read_text())
SCHEMA = jsonschema_rs.Draft202012Validator(CONTRACT)


def not_as_the_contract_says(lines: Iterable[str]) -> list[str]:
    """Returns the schema's objections to lines."""
    return [
        f"{error.message[:300]} in {line[:200]}"
        for line in lines
        for error in SCHEMA.iter_errors(json.loads(line))
    ]


def refused(lines: Iterable[dict]) -> dict | None:
    """Returns the first line that the schema does not allow."""
    return next((line for line in lines if not SCHEMA.is_valid(line)), None)
