"""Writes the generated blocks of the papers' pages, and keeps the results they are made from.

`python -m cachewright_lab.pages` for `make generate`, `make check-generated`, `make figures` and
accepting new results.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cachewright import Error
from cachewright_lab.report import papers as pages

# The laboratory: the folder of this package, its papers and its pages.
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="make the blocks of all pages anew")
    what.add_argument("--check", action="store_true", help="fail where a block is stale")
    what.add_argument("--changes", type=Path, metavar="DIR", help="what a run changes")
    what.add_argument("--accept", type=Path, metavar="DIR", help="keep the results of a run")
    chosen = parser.parse_args()
    try:
        if chosen.changes:
            return changes(chosen.changes)
        if chosen.accept:
            path, _ = pages.accept(ROOT, chosen.accept)
            print(f"kept: {path.relative_to(ROOT)}")
        return write(check=chosen.check)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def write(*, check: bool) -> int:
    """Write every page, or say which are stale; claims must name measures that there are."""
    status = 0
    for name in pages.names(ROOT):
        paper = pages.Paper.of(ROOT, name)
        for problem in pages.problems(paper):
            print(problem, file=sys.stderr)
            status = 1
        text = pages.written(paper)
        page = paper.page.relative_to(ROOT)
        if text == paper.text():
            continue
        if check:
            print(f"{page}: stale, run `make generate`", file=sys.stderr)
            status = 1
        else:
            paper.page.write_text(text, encoding="utf-8")
            print(f"wrote {page}")
    return status


def changes(folder: Path) -> int:
    """Print what a run changes beside the kept results, and how to keep it."""
    if not pages.run_of(ROOT, folder).whole:
        print(f"{folder}: results in small, which are not compared with the kept ones")
        return 0
    found, added = pages.compared(ROOT, folder)
    for change in found:
        print("changed: {}: {} before, {} now ({})".format(*change.row()))
    if added:
        print(f"not kept before: {', '.join(added)}")
    if found or added:
        print(f"to keep these results: python -m cachewright_lab.pages --accept {folder}")
    else:
        print(f"{folder}: nothing changed since the kept results")
    return 0


if __name__ == "__main__":
    sys.exit(main())
