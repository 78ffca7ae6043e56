"""Calls without a device time are told with their reason and number wherever times are looked at."""

import json
import re

import pytest
from lib.contract import CONTRACT
from lib.tool import generate, tprof

(FOOTER,) = (
    line["properties"]["args"] for line in CONTRACT["$defs"].values()
    if line.get("properties", {}).get("name") == {"const": "tprof_footer"}
)  # fmt: skip
REASONS = list(FOOTER["properties"]["timing_lost"]["properties"])


@pytest.fixture
def lost(tmp_path):
    """Returns lost({rank: {reason: calls}}), which gives the folder of a job of two whose footers say so."""

    def make(by_rank):
        generate(tmp_path / "job", 2, 12)
        for rank, reasons in by_rank.items():
            file = tmp_path / f"job/rank-{rank:05}.json"
            before = file.read_text()
            text = before.replace('"self_cost_ns"', f'"timing_lost":{json.dumps(reasons)},"self_cost_ns"')
            assert text != before
            file.write_text(text)
        return tmp_path / "job"

    return make


def said(folder):
    """Yields each command with reason -> (calls, ranks), as the text and the report have them."""
    for command in ("summary", "check", "doctor"):
        text = tprof(command, folder).stdout
        found = {}
        for finding in json.loads(tprof(command, "--json", folder).stdout)["findings"]:
            if finding["kind"] == "untimed":
                assert finding["severity"] == "note" and finding["text"] in text
                calls, why = re.match(r"([\d,]+) calls? of .* ha(?:ve|s) no device time (?:of .* own )?\((\w+)\)", finding["text"]).groups()
                found[why] = (int(calls.replace(",", "")), finding["ranks"])
        yield command, found


def test_each_reason_is_told_with_its_number_of_all_ranks(lost):
    first = {reason: 1000 + n for n, reason in enumerate(REASONS)}
    second = {reason: 50 for reason in REASONS[::2]}
    expected = {
        reason: (calls + second.get(reason, 0), [0, 1] if reason in second else [0]) for reason, calls in first.items()
    }
    folder = lost({0: first, 1: second})
    for command, found in said(folder):
        assert found == expected, command
    # The text says it in words, too, not just by the name.
    text = tprof("check", folder).stdout
    assert all(re.search(rf"\({reason}\): [a-zA-Z].{{15}}", text) for reason in REASONS)
