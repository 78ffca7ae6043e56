"""Catapult, the viewer behind chrome://tracing: its own importer and model say what it sees of a trace.

Torch's plugin for TensorBoard brings it as one page. Its drawing needs a kind of web components that browsers
no longer have; its reading of traces does not.
"""

import importlib.util
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager

from lib.chromium import Page

READER = "'use strict';const global=this.window||this.global;this.tr=(function"
INSTEAD_OF_POLYMER = """<script>
Object.defineProperty(document, "_currentScript", { get: () => document.currentScript });
const nothing = () => new Proxy(function () {}, { get: () => ({}) });
window.Polymer = new Proxy(function () {}, { get: (target, key) => target[key] || nothing() });
</script><script>"""

IMPORT = """
fetch(URL_OF_TRACE).then((answer) => answer.text()).then((text) => {
  window.model = new tr.Model();
  const options = new tr.importer.ImportOptions();
  options.showImportWarnings = false;
  new tr.importer.Import(model, options).importTraces([text]);
  return model.importWarnings.map((warning) => warning.message);
})
"""


def page() -> pathlib.Path | None:
    plugin = importlib.util.find_spec("torch_tb_profiler")
    if plugin is None or plugin.origin is None:
        return None
    there = pathlib.Path(plugin.origin).parent / "static" / "trace_viewer_full.html"
    return there if there.exists() else None


@contextmanager
def shown(trace: pathlib.Path, folder: pathlib.Path) -> Iterator[Page]:
    """Yields a page in which `model` is what Catapult has imported; it may complain of nothing."""
    text = page().read_text()
    before, reader = text[: text.index("<script>")], text[text.index(READER) :]
    (folder / "viewer.html").write_text(before + INSTEAD_OF_POLYMER + reader)
    with Page((folder / "viewer.html").as_uri(), folder / "profile", "--allow-file-access-from-files") as viewer:
        warnings = viewer.value(IMPORT.replace("URL_OF_TRACE", f'"{trace.as_uri()}"'))
        # Metadata is for tprof's own commands.
        assert [w for w in warnings if not w.startswith("Unrecognized metadata name: tprof_")] == []
        yield viewer
