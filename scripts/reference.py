#!/usr/bin/env python3
"""Writes the commands and options of docs/command-line.md from the commands themselves.

For `make generate` and `make check-generated`; with `--man DIR` the manual pages, for `make man`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cachewright.cli import reference

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
BEGIN, END = "<!-- begin commands -->\n", "<!-- end commands -->\n"


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="make the list of the page anew")
    what.add_argument("--check", action="store_true", help="fail where it is stale")
    what.add_argument("--man", type=Path, metavar="DIR", help="write the manual pages")
    chosen = parser.parse_args()
    if chosen.man:
        chosen.man.mkdir(parents=True, exist_ok=True)
        for name, text in reference.manuals().items():
            (chosen.man / name).write_text(text, encoding="utf-8")
        print(f"manual pages: {chosen.man}")
        return 0
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, closed, tail = rest.partition(END)
    if not closed:
        print(f"{PAGE}: found no block of commands, expected one", file=sys.stderr)
        return 1
    new = f"{head}{BEGIN}\n{reference.listing()}\n\n{END}{tail}"
    if new != text and chosen.check:
        print("docs/command-line.md: stale, run `make generate`", file=sys.stderr)
    elif new != text:
        PAGE.write_text(new, encoding="utf-8")
        print("wrote docs/command-line.md")
    return int(chosen.check and new != text)


if __name__ == "__main__":
    sys.exit(main())
