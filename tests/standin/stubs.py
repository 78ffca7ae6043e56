#!/usr/bin/env python3
"""Writes C++ for every name of a real library that none of our objects defines.

A harmless name returns 0. Any other one prints its name on stderr and aborts, so that the user
learns what the stand-in lacks.
"""

import argparse
import pathlib
import re
import subprocess


def names_in(path, version=None):
    """Returns the names that a file lists, one in a line. `name[_twin]` stands for itself with and without
    the part in brackets. Versions behind a name are those of the library that have it; without any, all do."""
    names = set()
    for line in pathlib.Path(path).read_text().splitlines():
        name, *versions = line.split("#")[0].split() or [""]
        if name and (not versions or version in versions):
            names |= {re.sub(r"\[.*\]", "", name), re.sub(r"[][]", "", name)}
    return names


def names_of(symbols, soname):
    """Returns what the real library exports. The runtimes of all versions share a list."""
    runtime = re.match(r"(libcudart)\.so\.(\d+)", soname)
    name, version = runtime.groups() if runtime else (soname, None)
    return names_in(pathlib.Path(symbols) / f"{name}.txt", version)


def defined_in(objects):
    lines = subprocess.run(["nm", "--defined-only", "--extern-only", "-P", *objects],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0] for line in lines if len(line.split()) > 1}


def source(missing, harmless, library):
    yield "#include <cstdio>\n#include <cstdlib>\n"
    yield "[[noreturn]] [[maybe_unused]] static void missing(const char* name) {\n"
    yield f'  std::fprintf(stderr, "standin: {library}: %s has no body\\n", name);\n'
    yield '  std::abort();\n}\nextern "C" {\n'
    for name in sorted(missing):
        body = "return 0;" if name in harmless else f'missing("{name}");'
        yield f"long {name}();\nlong {name}() {{ {body} }}\n"
    yield "}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symbols", required=True, help="folder of what the real libraries export")
    parser.add_argument("--library", required=True)
    parser.add_argument("--output", required=True, help="C++ source")
    parser.add_argument("--version-script", help="exports exactly the names")
    parser.add_argument("--version-node", default="", help="their version, if they have one")
    parser.add_argument("objects", nargs="+")
    args = parser.parse_args()
    names = names_of(args.symbols, args.library)
    harmless = names_in(pathlib.Path(args.symbols) / "harmless.txt")
    text = "".join(source(names - defined_in(args.objects), harmless, args.library))
    pathlib.Path(args.output).write_text(text)
    if args.version_script:
        exported = "".join(f"  {name};\n" for name in sorted(names))
        pathlib.Path(args.version_script).write_text(
            f"{args.version_node} {{ global:\n{exported} local: *; }};\n")


if __name__ == "__main__":
    main()
