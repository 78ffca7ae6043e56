"""`tprof manual` and `tprof completion` say what the commands' help says."""

import re
import shutil
import subprocess

import pytest
from lib.build import TPROF


def told(*words):
    return subprocess.run([TPROF, *words], capture_output=True, text=True, check=True).stdout


COMMANDS = re.findall(r"^  ([a-z]+) {2,}", told("--help").split("Subcommands:")[1], re.MULTILINE)


def options_of(command):
    text = told(command, "--help").split("Options:")[1].split("\n\n")[0]
    return {option for line in re.findall(r"^  (-\S+)", text, re.MULTILINE) for option in line.split(",")}


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manual") / "man1"
    told("manual", str(folder))
    return folder


def test_each_command_has_a_page_with_all_its_options(manual):
    assert len(COMMANDS) > 18
    assert {page.name for page in manual.iterdir()} == {"tprof.1", *(f"tprof-{name}.1" for name in COMMANDS)}
    for command in COMMANDS:
        page = (manual / f"tprof-{command}.1").read_text().replace("\\-", "-")
        assert {o for o in options_of(command) if f"\\fB{o}\\fR" not in page} == set(), command
    assert "TPROF_OUTPUT_DIR" in (manual / "tprof.1").read_text()


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_groff_has_nothing_to_warn_of(manual):
    for page in manual.iterdir():
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), page.name


def completed(*words):
    """Returns what bash offers for the last of these words."""
    script = f"""{told("completion", "bash")}
COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
_tprof; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return set(subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_offers_commands_options_values_and_other_programs():
    assert completed("tprof", "") == {*COMMANDS, "--help", "--version"}
    assert completed("tprof", "su") == {"summary"}
    for command in COMMANDS:
        assert completed("tprof", command, "-") >= options_of(command) - {"-h", "--help"}, command
    assert completed("tprof", "run", "--events", "") == {"on", "off", "all"}
    assert "env" in completed("tprof", "run", "--quiet", "--", "en")
    assert completed("tprof", "summary", "") == set()  # files, which bash knows itself


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_theirs(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    script = tmp_path / "script"
    script.write_text(told("completion", shell))
    assert subprocess.run([shell, "-n", script], capture_output=True, text=True, check=True).stderr == ""
    if shell == "fish":
        asked = f"source {script}; complete -C 'tprof summary --'"
        offered = subprocess.run(["fish", "-c", asked], capture_output=True, text=True, check=True).stdout
        assert {o for o in options_of("summary") if o.startswith("--")} - {"--help"} <= {line.split("\t")[0] for line in offered.splitlines()}
