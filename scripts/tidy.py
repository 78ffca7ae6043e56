"""Runs clang-tidy over every source of ours that the build compiles: tidy.py BUILD FOLDER...

Reading the headers of a file takes seconds, so a file that was found clean is not looked at again
until something changes that the verdict depends on: its preprocessed text, its flags, the .clang-tidy
files, clang-tidy itself.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parents[1]


def sources(build: pathlib.Path, folders: list[str]) -> dict[pathlib.Path, dict]:
    """Returns file -> its entry; a file that two targets compile is looked at once."""
    entries = json.loads((build / "compile_commands.json").read_text())
    roots = [REPO / folder for folder in folders]
    files = {pathlib.Path(entry["file"]): entry for entry in entries}
    return {
        file: entry
        for file, entry in sorted(files.items())
        if file.suffix == ".cpp" and any(root in file.parents for root in roots)
    }


def flags(entry: dict) -> list[str]:
    """Returns g++'s flags, without what it reads before the file: that is nothing to clang, and
    each file must include what it uses."""
    command = shlex.split(entry["command"])
    for option, words in (("-o", 2), ("-c", 2), ("-include", 2), ("-Winvalid-pch", 1)):
        if option in command:
            at = command.index(option)
            command[at : at + words] = []
    return command


def fingerprint(file: pathlib.Path, entry: dict, common: bytes) -> str:
    command = flags(entry)
    text = subprocess.run(
        [*command, "-E", str(file)], cwd=entry["directory"], capture_output=True, check=False
    ).stdout
    return hashlib.sha256(common + shlex.join(command).encode() + text).hexdigest()


def look_at(file: pathlib.Path, entry: dict, build: pathlib.Path, common: bytes) -> str:
    """Returns what clang-tidy complains of; empty if the file is clean."""
    stamp = build / ".tidy" / fingerprint(file, entry, common)
    if stamp.exists():
        return ""
    command = ["clang-tidy", "--quiet", str(file), "--", *flags(entry)[1:]]
    command += ["-Wno-unknown-warning-option"]
    done = subprocess.run(
        command, cwd=entry["directory"], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        stamp.touch()
        return ""
    return done.stdout or done.stderr


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    files = sources(build, sys.argv[2:])
    if not files:
        print(f"{build}/compile_commands.json names no source of {sys.argv[2:]}")
        return 1
    (build / ".tidy").mkdir(exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    configurations = [REPO / folder / ".clang-tidy" for folder in ("", *sys.argv[2:])]
    common = version + b"".join(path.read_bytes() for path in configurations if path.exists())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        looks = [pool.submit(look_at, f, entry, build, common) for f, entry in files.items()]
        complaints = [look.result() for look in looks]
    print("".join(complaints), end="")
    return 1 if any(complaints) else 0


if __name__ == "__main__":
    sys.exit(main())
