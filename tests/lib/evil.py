"""Rank files whose every name is markup that would run, or end what it stands in, if it got into a page as it is."""

import json
import pathlib

from generator import causes, rank_files

EVIL = "</script><script>document.title='owned';alert(1)</script><img src=x onerror=alert(2)>{{script}}<!--"


def _named(line: dict) -> dict:
    args = line.get("args", {})
    for key in ("host", "command", "run_id", "name"):
        if isinstance(args.get(key), str) or (key == "name" and line["name"] == "tprof_comm"):
            args[key] = EVIL
    if line["name"] == "tprof_header":
        args["config"] = {EVIL: EVIL}
    return line


def write(folder: pathlib.Path) -> None:
    """Makes a job of 8 ranks with steps, device times and a rank that hangs."""
    rank_files.write(causes.case("fsdp", 8, "hang", 1), folder, 1)
    for file in folder.glob("rank-*.json"):
        lines = []
        for text in file.read_text().splitlines():
            bare = text.rstrip(",")
            if bare.startswith('{"name":"tprof_') or '"name":"thread_name"' in bare:
                bare = json.dumps(_named(json.loads(bare)), separators=(",", ":"))
            lines.append(bare + text[len(text.rstrip(",")) :])
        file.write_text("\n".join(lines) + "\n")
