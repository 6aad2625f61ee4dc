#!/usr/bin/env python3
"""Writes docs/cli.md and the manual pages in docs/man from the commands themselves.

For: `make generate` and `make check-generated`. Must never know: any command. What is written comes
from `cachewright.cli.reference`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cachewright.cli import reference

DOCS = Path(__file__).resolve().parent.parent / "docs"


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="make all pages anew")
    what.add_argument("--check", action="store_true", help="fail where a page is stale")
    check = parser.parse_args().check
    pages = {DOCS / "cli.md": reference.page()}
    pages |= {DOCS / "man" / name: text for name, text in reference.manuals().items()}
    left = [path for path in sorted((DOCS / "man").glob("*.1")) if path not in pages]
    stale = [path for path, text in pages.items() if not same(path, text)]
    for path in (*stale, *left):
        shown = path.relative_to(DOCS.parent)
        if check:
            print(f"{shown}: stale, run `make generate`", file=sys.stderr)
        elif path in pages:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages[path], encoding="utf-8")
            print(f"wrote {shown}")
        else:
            path.unlink()
            print(f"removed {shown}")
    return int(check and bool(stale or left))


def same(path: Path, text: str) -> bool:
    """Return whether a file holds a text."""
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
