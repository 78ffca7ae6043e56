#!/usr/bin/env python3
"""Writes C++ for every name of a real library that none of our objects defines.

A harmless name returns 0. Any other one prints its name on stderr and aborts, so that the user
learns what the stand-in lacks.
"""

import argparse
import pathlib
import subprocess


def names_in(path):
    lines = (line.split("#")[0].strip() for line in pathlib.Path(path).read_text().splitlines())
    return {line for line in lines if line}


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
    parser.add_argument("--names", required=True, help="what the real library exports")
    parser.add_argument("--harmless", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--output", required=True, help="C++ source")
    parser.add_argument("--version-script", help="exports exactly the names")
    parser.add_argument("--version-node", default="", help="their version, if they have one")
    parser.add_argument("objects", nargs="+")
    args = parser.parse_args()
    names = names_in(args.names)
    text = "".join(source(names - defined_in(args.objects), names_in(args.harmless), args.library))
    pathlib.Path(args.output).write_text(text)
    if args.version_script:
        exported = "".join(f"  {name};\n" for name in sorted(names))
        pathlib.Path(args.version_script).write_text(
            f"{args.version_node} {{ global:\n{exported} local: *; }};\n")


if __name__ == "__main__":
    main()
