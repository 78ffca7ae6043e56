#!/usr/bin/env python3
"""Links objects into one in which the listed functions are called standin_<name>.

An older library is made of today's objects. Where a prototype changed, today's body gets another
name, and the name belongs to the old library's own body.
"""

import argparse
import pathlib
import subprocess

from stubs import names_in


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--objcopy", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("objects", nargs="+")
    args = parser.parse_args()
    subprocess.run([args.compiler, "-r", "-nostdlib", *args.objects, "-o", args.output], check=True)
    renames = pathlib.Path(args.output + ".names")
    renames.write_text("".join(f"{n} standin_{n}\n" for n in sorted(names_in(args.names))))
    subprocess.run([args.objcopy, f"--redefine-syms={renames}", args.output], check=True)


if __name__ == "__main__":
    main()
