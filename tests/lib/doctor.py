"""tprof doctor, run in an environment of its own, and programs for it to look at."""

import json
import subprocess

from .build import BUILD, INSTANT
from .tool import tprof, values_that_words_lack

PLANT = BUILD / "tests/loader/plant"
CALLER = BUILD / "plant_caller"


class Doctor:
    """Runs `tprof doctor --json` in a folder of its own, in an environment of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.code = None

    def raw(self, *arguments, env=None, **options):
        environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(INSTANT)} | (env or {})
        return tprof("doctor", *arguments, cwd=self.folder, env=environment, **options)

    def __call__(self, *arguments, env=None, **options):
        done = self.raw("--json", *arguments, env=env, **options)
        assert done.returncode in (0, 1), done.stderr
        report = json.loads(done.stdout)
        assert report["schema"] == "tprof-doctor/1"
        assert values_that_words_lack(report) == []
        # Its exit code is its verdict.
        severe = [f for f in report["findings"] if f["severity"] != "note"]
        assert done.returncode == (1 if severe else 0)
        return report


def kinds(report):
    return [finding["kind"] for finding in report["findings"]]


def only(report, kind, severity):
    """Returns the only finding, which must be of this kind and severity."""
    (finding,) = report["findings"]
    assert (finding["kind"], finding["severity"]) == (kind, severity), finding
    return finding


def compiled(path, source="int main() {}", *options):
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-o", str(path), "-x", "c", "-", "-x", "none", *map(str, options)]
    subprocess.run(command, input=source, text=True, check=True, timeout=60)
    return path


def library(path, source="int nothing;", *options):
    return compiled(path, source, "-shared", "-fPIC", f"-Wl,-soname,{path.name}", *options)


def script(path, first_line, rest=""):
    path.write_text(f"#!{first_line}\n{rest}")
    path.chmod(0o755)
    return path
