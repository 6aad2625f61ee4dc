"""The tables of `reproduce PAPER --quick`: where they are found, how they are kept and compared.

For: `test_reproduced_answers`. Must never know: any figure. Of each paper the Markdown is kept, and
a digest per figure of its unrounded numbers. Left out are the claims, which nothing small decides,
and what a clock has measured on the machine (`TIMED`). What JAX has trained depends on its version
and on the processor's instructions, which stand beside the digests.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from answers import kept

from cachewright.tables import measures
from cachewright_lab.reproduce import measured

SPECS = Path(__file__).resolve().parents[1] / "papers"
KEPT = Path(__file__).resolve().parent / "kept"
PAPERS = ("icache", "oc-cache", "rc-rnn", "shiro", "soft-qos")
LEARNED = ("icache", "rc-rnn")
"""Papers whose tables hold what JAX has trained."""

PACKAGES = ("jax", "jaxlib", "optax", "scikit-learn", "numpy")
INSTRUCTIONS = ("fma", "avx2", "avx512f")
TIMED = ("answer takes",)
"""Columns of times that the machine took: how long a model computes."""

TABLES, HEADING, CLAIMS = "tables.md", "### ", "Claims of the paper"
TRACES = "Traces"
"""The table of what the figures of one run replay: some figures have a part of its rows."""
QUICK = "quick"


@dataclass(frozen=True)
class Run:
    """What one run of some of a paper's figures wrote."""

    paper: str
    folder: Path

    @property
    def document(self) -> dict[str, Any]:
        """The numbers."""
        found: dict[str, Any] = json.loads((self.folder / measures.FILE).read_text())
        return found

    @property
    def whole(self) -> bool:
        """Whether every figure that is kept was run."""
        return set(self.digests) >= set(numbers(self.paper))

    @property
    def tables(self) -> dict[str, str]:
        """Every table by its title."""
        return sections((self.folder / TABLES).read_text(encoding="utf-8"))

    @property
    def digests(self) -> dict[str, Any]:
        """A digest of the unrounded numbers of each figure."""
        figures = _figures(self.document)
        return {name: kept.digest(values)[kept.DIGEST] for name, values in figures.items()}


def _figures(document: dict[str, Any]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, value in document["measures"].items():
        if not name.endswith(TIMED):
            found.setdefault(measures.figure_of(name), {})[name] = value
    return found


def sections(text: str) -> dict[str, str]:
    """Return the tables of a Markdown text by title; a title that is taken gets a number."""
    found: dict[str, str] = {}
    for part in text.split(f"\n{HEADING}") if text.strip() else ():
        title, _, body = part.removeprefix(HEADING).partition("\n")
        own, count = title, 1
        while own in found:
            count += 1
            own = f"{title} ({count})"
        found[own] = "\n".join(_without_times(body.strip().splitlines()))
    found.pop(CLAIMS, None)
    return found


def _without_times(lines: list[str]) -> Iterator[str]:
    """Give the lines of a table without the columns of times of this machine."""
    names = _cells(lines[0]) if lines else []
    left_out = [at for at, name in enumerate(names) if name in TIMED]
    for line in lines:
        cells = [cell for at, cell in enumerate(_cells(line)) if at not in left_out]
        yield f"| {' | '.join(cells)} |" if left_out and line.startswith("|") else line


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def runs(paper: str, root: Path) -> list[Run]:
    """Return the runs of a paper in small on the specs of the repository, below a folder."""
    found = []
    for file in sorted(root.glob(f"*/*/{measures.FILE}")):
        document = json.loads(file.read_text())
        if document.get("paper") == paper and (file.parent / TABLES).exists():
            figures = document["figures"].items()
            if all(_is_small(about) and _is_ours(paper, name, about) for name, about in figures):
                found.append(Run(paper, file.parent))
    return found


def _is_small(about: dict[str, Any]) -> bool:
    return bool(about["traces"]["kind"] == QUICK)


def _is_ours(paper: str, figure: str, about: dict[str, Any]) -> bool:
    return bool(about["specs"] == measured.digest(SPECS / paper, figure))


def machine() -> dict[str, str]:
    """Return what trained models depend on."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    file = Path("/proc/cpuinfo")
    flags = set(file.read_text().split()) if file.exists() else set()
    known = [name for name in INSTRUCTIONS if name in flags]
    return {**versions, "processor": " ".join([platform.machine(), *known])}


def text_file(paper: str) -> Path:
    """Return the kept tables of a paper."""
    return KEPT / f"{paper}.md"


def _number_file(paper: str) -> Path:
    return text_file(paper).with_suffix(".json")


def numbers(paper: str) -> dict[str, str]:
    """Return the kept digest of each figure; none where nothing is kept yet."""
    file = _number_file(paper)
    found: dict[str, str] = json.loads(file.read_text())["figures"] if file.exists() else {}
    return found


def made_on(paper: str) -> dict[str, str] | None:
    """Return what the kept tables of a paper depend on; nothing where nothing is trained."""
    found: dict[str, str] | None = json.loads(_number_file(paper).read_text())["made on"]
    return found


def write(run: Run) -> None:
    """Keep the tables of a run anew."""
    text_file(run.paper).parent.mkdir(parents=True, exist_ok=True)
    parts = [f"{HEADING}{title}\n\n{body}\n" for title, body in run.tables.items()]
    text_file(run.paper).write_text("\n".join(parts), encoding="utf-8")
    about = {"made on": machine() if run.paper in LEARNED else None, "figures": run.digests}
    _number_file(run.paper).write_text(json.dumps(about, indent=1) + "\n")


def differences(run: Run) -> Iterator[str]:
    """Give what differs from the kept tables of the same figures, then from their numbers."""
    old = sections(text_file(run.paper).read_text(encoding="utf-8"))
    new = run.tables
    for title in [*new, *(title for title in old if run.whole and title not in new)]:
        before = old.get(title)
        if title == TRACES and before is not None and not run.whole:
            rows = new[title].splitlines()
            before = "\n".join(line for line in before.splitlines() if line in rows)
        yield from _rows(title, before, new.get(title))
    digests = numbers(run.paper)
    for figure, found in run.digests.items():
        if digests.get(figure) != found:
            yield f"{figure}: kept other unrounded numbers"


def _rows(title: str, old: str | None, new: str | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{title}: {'found a new' if old is None else 'kept a'} table"
        return
    before, now = old.splitlines(), new.splitlines()
    if len(before) != len(now):
        yield f"{title}: kept {len(before)} lines, found {len(now)}"
    for kept_line, found in zip(before, now, strict=False):
        if kept_line != found:
            yield f"{title}:\n  kept  {kept_line}\n  found {found}"
