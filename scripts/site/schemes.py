"""One page per scheme, from the registry and from the tables of kept measurements.

For: `write`. Must never know: the name of any scheme. A page says what the scheme does, from where
it is, what it needs, its settings, which pages speak of it, and every row of a measured table that
is about it; a table is linked, not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachewright import registries
from cachewright.answers import SchemeEntry
from cachewright.tables import markdown, of_texts

# Stages with a page per entry: the registry, a title, and the key of a stack file.
STAGES: list[tuple[registries.Registry, str, str]] = [
    ("policies", "Policies", "cache.policy"),
    ("partitions", "Partitioners", "cache.partition"),
    ("layouts", "Layouts", "cache.layout"),
    ("characterizers", "Characterizers", "cache.characterize"),
    ("separations", "Separations", "flash.separation"),
    ("reclaims", "Reclaim policies", "flash.reclaim"),
    ("devices", "Devices", "device.cache.model"),
]
FOLDER = "docs/schemes"
# Where measurements are kept, and where schemes are discussed.
MEASURED = (
    "crates/**/benches/*.md",
    "benches/*.md",
    "docs/which-scheme.md",
    "docs/ssd-validation.md",
    "lab/papers/*/README.md",
)
DISCUSSED = ("docs/which-scheme.md", "docs/tutorials/*.md", "docs/*.md", "lab/*.md",
             "lab/papers/*/README.md", "docs/design/*.md", "benches/*.md")  # fmt: skip
# Generated references name every scheme.
REFERENCES = {"registries.md", "devices.md", "stack-file.md", "command-line.md", "result.md"}
ROWS = 8
# Longest paragraph above a table that is taken for its caption.
CAPTION = 240
# Where the code of a stage's schemes lies; the header of a scheme's file says what it leaves open.
CODE = {
    "policies": "policy",
    "partitions": "partition",
    "layouts": "layout",
    "characterizers": "characterize",
    "separations": "ftl",
    "reclaims": "ftl",
}
NEEDS = {
    "future": "It reads the future: a bound for others, not a choice.",
    "benefit": "It reads benefits that are made from the future: a bound, not a choice.",
    "model": "It needs a trained model ([training](../../training.md)).",
    "requests": "It looks at whole requests, not at blocks alone.",
    "goals": "It needs goals of tenants ([tenants](../../tenants.md)).",
}


@dataclass(frozen=True)
class Shown:
    """A table of a page, with the heading and the paragraph above it."""

    page: str
    heading: str
    caption: str
    headers: list[str]
    rows: list[list[str]]


def write(root: Path, pages: Path) -> list[Any]:
    """Write all pages below `pages` and return their part of the navigation."""
    tables = [one for path in _paths(root, MEASURED) for one in tables_of(root, path)]
    texts = {path: path.read_text(encoding="utf-8") for path in _paths(root, DISCUSSED)}
    found: list[Any] = [f"{FOLDER}/index.md"]
    index = ["# Schemes", "", "One page per entry of the registries.", ""]
    for stage, title, key in STAGES:
        entries = registries.list(stage)
        names = []
        index += [f"## {title}", "", "| scheme | what it does |", "|---|---|"]
        for entry in entries:
            path = f"{FOLDER}/{stage}/{entry.name}.md"
            (pages / path).parent.mkdir(parents=True, exist_ok=True)
            text = page(root, stage, entry, key, tables, texts)
            (pages / path).write_text(text, encoding="utf-8")
            names.append({entry.name: path})
            index.append(f"| [{entry.name}]({stage}/{entry.name}.md) | {_cell(entry.doc)} |")
        index.append("")
        found.append({title: names})
    (pages / FOLDER / "index.md").write_text("\n".join(index), encoding="utf-8")
    return found


def page(
    root: Path,
    stage: str,
    entry: SchemeEntry,
    key: str,
    tables: list[Shown],
    texts: dict[Path, str],
) -> str:
    """Return the page of one scheme."""
    lines = [f"# {entry.name}", "", f"{entry.doc[:1].upper()}{entry.doc[1:]}.", ""]
    lines += [f"- **Source**: {entry.source}", f'- **In a stack file**: `{key} = "{entry.name}"`']
    if named := [one.name for one in registries.list("schemes") if entry.name in one.keys.values()]:
        lines.append(f"- **Part of**: {', '.join(f'`{name}`' for name in named)}")
    lines += ["", "## When to use it", ""]
    lines += [f"- {NEEDS[need]}" for need in entry.needs if need in NEEDS]
    if signals := [f"`{need}`" for need in entry.needs if need not in NEEDS]:
        lines.append(f"- It needs what a run measures for it: {', '.join(signals)}.")
    lines += [f"- {advice}" for advice in _advice(root, entry.name)]
    if links := list(_mentions(root, entry.name, texts)):
        lines.append(f"- Discussed in {', '.join(links)}.")
    if lines[-1] == "":
        lines.append("No page compares it with others yet.")
    if entry.settings:
        rows = [
            [f"`{one.name}`", one.doc, one.unit, f"`{one.default}`", f"`{one.accepted}`"]
            for one in entry.settings
        ]
        headers = ["setting", "meaning", "unit", "default", "range"]
        lines += ["", "## Settings", "", markdown(of_texts("", headers, rows, len(headers)))]
    if notes := _notes(root, stage, entry.name):
        lines += ["", "## Notes of its source", "", notes]
    lines += ["", "## Cost and measured results", ""]
    measured = list(_measured(root, entry.name, tables))
    lines += measured or ["No kept table has a row for it."]
    return "\n".join(lines) + "\n"


def tables_of(root: Path, path: Path) -> Iterator[Shown]:
    """Yield the tables of a page, each with the nearest heading above it."""
    heading, paragraph, block = "", list[str](), list[str]()
    name, before = path.relative_to(root).as_posix(), ""
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            block.append(line)
            continue
        if len(block) > 2:
            headers, _, *rows = [_cells(row) for row in block]
            yield Shown(name, heading, " ".join(paragraph), headers, rows)
        begins = bool(block) or not before.strip()
        block, before = [], line
        if line.startswith("#"):
            heading, paragraph = line.lstrip("# "), []
        elif line.strip() and not line.startswith("<!--"):
            paragraph = [line.strip()] if begins else [*paragraph, line.strip()]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(cell: str) -> str:
    """Return a cell without marks of code, emphasis and a trailing note."""
    return cell.replace("*", "").replace("`", "").split(" (")[0].split(",")[0].strip()


def _measured(root: Path, name: str, tables: list[Shown]) -> Iterator[str]:
    """Yield the rows about a scheme: those whose first cells name it."""
    page = ""
    for table in tables:
        rows = [row for row in table.rows if name in [_plain(cell) for cell in row[:2]]]
        if not rows or len(table.headers) < 2 or any(_has_links(row) for row in rows):
            continue
        width = len(table.headers)
        rows = [[cell.replace("\\|", "|") for cell in row] for row in rows if len(row) == width]
        if not rows:
            continue
        if table.page != page:
            page = table.page
            yield f"### {_title(root / page)}\n\nSee [the whole page](../../../{page}).\n"
        yield f"**{table.heading}**{_caption(table)}\n"
        yield markdown(of_texts("", table.headers, rows[:ROWS], 1)) + "\n"


def _caption(table: Shown) -> str:
    """Return the paragraph above a table, where it is short and has no link of its page."""
    text = table.caption.strip("*")
    fits = text.endswith((":", ".")) and len(text) <= CAPTION and "](" not in text
    return f". {text}" if fits or table.caption.startswith("**") else ""


def _has_links(row: list[str]) -> bool:
    return any("](" in cell for cell in row)


def _notes(root: Path, stage: str, name: str) -> str:
    """Return the header of the scheme's file of code; nothing where no file has its name."""
    stem, code = (
        name.replace("-", "_"),
        root / "crates" / "decide" / CODE.get(stage, "none") / "src",
    )
    found = [*code.glob(f"**/{stem}.rs"), *code.glob(f"**/{stem}/mod.rs")]
    if len(found) != 1:
        return ""
    header = []
    for line in found[0].read_text(encoding="utf-8").splitlines():
        if not line.startswith("//!"):
            break
        header.append(line.removeprefix("//!").removeprefix(" "))
    # Links of Rust's documents lead to items of code, which the site does not have.
    # What other code may know of it is of no use to who chooses a scheme.
    text = re.sub(r"\s*Must never know:.*?\.(?=\s|$)", "", "\n".join(header), flags=re.DOTALL)
    return re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", text).strip()


def _advice(root: Path, name: str) -> Iterator[str]:
    """Yield the items of the page on choosing that name the scheme."""
    page = root / "docs" / "which-scheme.md"
    for line in page.read_text(encoding="utf-8").splitlines():
        item = re.match(r"\d+\. (.*)", line)
        if item and re.search(rf"`{re.escape(name)}`", item[1]):
            yield item[1]


def _mentions(root: Path, name: str, texts: dict[Path, str]) -> Iterator[str]:
    """Yield links to the pages that speak of the scheme."""
    for path, text in texts.items():
        if path.name not in REFERENCES and re.search(rf"`{re.escape(name)}[`( ]", text):
            yield f"[{_title(path)}](../../../{path.relative_to(root).as_posix()})"


def _title(path: Path) -> str:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].replace("`", "")
    return path.stem


def _paths(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return list(dict.fromkeys(path for one in patterns for path in sorted(root.glob(one))))
