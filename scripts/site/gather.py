"""Gathers the pages of the repository for the site, under the paths that they have there.

For: `gather`. Must never know: the text of any page. Three things of Markdown differ between a
repository's host and the site: a fence with a file name, a link to a folder, and a link to a file
that is no page. The first becomes a title, the second a page that lists the folder, the third a
copy of the file.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

# Folders with pages, by how deep they are searched.
PLACES = ("*.md", "docs/**/*.md", "benches/*.md", "crates/**/*.md", "data/*.md",
          "lab/*.md", "lab/*/README.md", "lab/papers/*/README.md")  # fmt: skip
# Made from their own sources: `tutorials` runs them.
APART = ("docs/tutorials/",)
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^```(\w+) ([^\s`=]+)$", re.MULTILINE)
LISTING = "index.md"
# Folders whose text files are shown in their listing.
SHOWN = {".toml"}


def gather(root: Path, target: Path) -> list[Path]:
    """Copy all pages and what they link to from `root` to `target`; return the pages' paths."""
    sources = [path for place in PLACES for path in sorted(root.glob(place))]
    pages = [path for path in sources if not _is_apart(path.relative_to(root))]
    for page in pages:
        place(root, target, page.relative_to(root), page.read_text(encoding="utf-8"))
    return [page.relative_to(root) for page in pages]


def place(root: Path, target: Path, page: Path, text: str) -> None:
    """Write the text of a page at its path in `target`, and what it links to."""
    text = FENCE.sub(r'```\1 title="\2"', text)

    def linked(found: re.Match[str]) -> str:
        link, anchor = found[1], found[2] or ""
        path = Path(os.path.normpath(page.parent / link))
        source = root / path
        if source.is_dir():
            _list_folder(source, target / path)
            return f"{link.rstrip('/')}/{LISTING}{anchor}"
        if source.is_file() and source.suffix != ".md":
            _copy(source, target / path)
        return f"{link}{anchor}"

    written = target / page
    written.parent.mkdir(parents=True, exist_ok=True)
    written.write_text(LINK.sub(linked, text), encoding="utf-8")


def _is_apart(path: Path) -> bool:
    return path.as_posix().startswith(APART)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _list_folder(source: Path, target: Path) -> None:
    """Write the page of a folder: its files, those of text in full."""
    if (target / LISTING).exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    lines = [f"# {source.name}", ""]
    for path in sorted(source.iterdir()):
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.suffix in SHOWN:
            text = path.read_text(encoding="utf-8")
            lines += [f"## {path.name}", "", f"```{path.suffix[1:]}", text.rstrip(), "```", ""]
        elif path.suffix == ".md":
            lines += [f"- [{path.stem}]({path.name})"]
        else:
            _copy(path, target / path.name)
            lines += [f"- [{path.name}]({path.name})"]
    (target / LISTING).write_text("\n".join(lines) + "\n", encoding="utf-8")
