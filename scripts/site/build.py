#!/usr/bin/env python3
"""Builds the site of the documents: `python -m scripts.site.build [FOLDER]`.

For: `make docs`. Must never know: the text of any page. Pages are gathered under their paths in the
repository, so that links between them stay as they are; pages of schemes and tutorials are made
from the registries and by running them. A broken link or a page outside the navigation fails.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

from scripts.site import front, gather, navigation, schemes, tutorials

ROOT = Path(__file__).resolve().parents[2]
# What the search needs where the site is opened from a folder; `mkdocs.yml` names it.
WORKER = "iframe-worker.js"
STYLE = "site.css"
DEFAULT = ROOT / "target" / "site"


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT, help="target/site")
    folder = parser.parse_args().folder.resolve()
    from mkdocs.exceptions import Abort

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        build(folder)
    except Abort as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 1
    print(f"site: {folder / 'html' / 'index.html'}")
    return 0


def build(folder: Path) -> Path:
    """Build the site below `folder` and return the folder of its pages.

    Errors: `Abort` for a broken link, a page without a place, or any other warning.
    """
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    pages, site = folder / "pages", folder / "html"
    for old in (pages, site):
        shutil.rmtree(old, ignore_errors=True)
    gather.gather(ROOT, pages)
    (pages / "assets").mkdir(parents=True, exist_ok=True)
    for name in (WORKER, STYLE):
        shutil.copyfile(Path(__file__).with_name(name), pages / "assets" / name)
    front.write(ROOT, pages)
    made = {"Schemes": schemes.write(ROOT, pages), "Tutorials": tutorials.write(ROOT, pages)}
    settings: dict[str, Any] = {
        "docs_dir": str(pages),
        "site_dir": str(site),
        "nav": navigation.of(pages, made),
        "strict": True,
    }
    build_site(load_config(str(ROOT / "mkdocs.yml"), **settings))
    return site


if __name__ == "__main__":
    sys.exit(main())
