"""What is kept of the results of a paper, beside its page: `digest.json`.

A run writes every number to `measures.json`, thousands of them. Kept are where each figure's
numbers come from, a digest of them all, and the numbers that claims name; a page's tables are kept
as the page shows them, here with a digest of their text. So a page is known to be of the kept
results, and a run to be equal to them or not, without the numbers themselves. Runs on the paper's
own traces and on given volumes are kept apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from cachewright import words
from cachewright._native import SpecError
from cachewright.documents import dump, load
from cachewright.tables.measures import Measured, Traces, is_number

FILE = "digest.json"
SCHEMA = 1
# Digits of a number that count: processors differ in later ones.
DIGITS = 9
# Hexadecimal digits of a digest.
LENGTH = 16
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Took:
    """What the run of a figure took that found nothing in its folder."""

    # Of processors.
    seconds: float
    # Of its traces, each once, up to where the figure stops.
    requests: int


@dataclass(frozen=True, kw_only=True)
class KeptFigure:
    """Where the numbers of a figure come from, and a digest of them."""

    # Version of Cachewright.
    cachewright: str
    # Digest of the specs.
    specs: str
    # Digest of all numbers.
    numbers: str
    traces: Traces
    # Absent where another run had left results in the folder.
    took: Took | None = None


@dataclass
class Kept:
    """What is kept of runs on the same kind of traces."""

    figures: dict[str, KeptFigure] = field(default_factory=dict)
    # Numbers that claims name.
    measures: dict[str, float] = field(default_factory=dict)
    # Digests of the tables on the page, by the names of their blocks.
    tables: dict[str, str] = field(default_factory=dict)

    def take(
        self,
        run: Measured,
        named: Iterable[str],
        tables: Mapping[str, str],
        took: Mapping[str, Took] = MappingProxyType({}),
    ) -> None:
        """Put a run's figures in place of those kept: numbers of these names, tables by their text.

        `tables` is the text of the run's tables on the page, by the names of their blocks; `took`
        what figures took.
        """
        for figure, where in run.figures.items():
            self.figures[figure] = KeptFigure(
                cachewright=where.cachewright,
                specs=where.specs,
                numbers=numbers(run, figure),
                traces=where.traces,
                took=took.get(figure),
            )
        own = {name: run.measures[name] for name in named if name in run.measures}
        self.measures = _other(self.measures, run) | own
        self.tables = _other(self.tables, run) | {key: text(one) for key, one in tables.items()}

    def drop(self, figures: Iterable[str]) -> None:
        """Forget figures that are no more."""
        for figure in figures:
            del self.figures[figure]
            self.measures = {k: v for k, v in self.measures.items() if _figure(k) != figure}
            self.tables = {k: v for k, v in self.tables.items() if _figure(k) != figure}


@dataclass
class Digest:
    """What is kept of a paper: of its own traces, and of given volumes."""

    paper: str
    own: Kept = field(default_factory=Kept)
    elsewhere: Kept = field(default_factory=Kept)

    def write(self, path: Path) -> Path:
        """Write the digest, a figure or a number a line, and return the path."""
        head = {"schema_version": SCHEMA, "paper": self.paper}
        parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        parts += [_section(name, kept) for name, kept in self._parts().items()]
        path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
        return path

    def _parts(self) -> dict[str, Kept]:
        return {"own": self.own, "elsewhere": self.elsewhere}


def read(path: Path, paper: str) -> Digest:
    """Return what is kept in a file; nothing where there is none. Errors: `SpecError`."""
    expected = "expected what `python -m cachewright_lab.pages --accept` keeps"
    if not path.is_file():
        return Digest(paper)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        kept = [_kept(document[name]) for name in ("own", "elsewhere")]
    except OSError as error:
        raise SpecError(f"{path}: {words.reason(error)}; {expected}") from None
    except (ValueError, TypeError, KeyError, AttributeError, SpecError) as error:
        raise SpecError(f"{path}: found no digest ({error}), {expected}") from None
    if document.get("schema_version") != SCHEMA:
        found = document.get("schema_version")
        raise SpecError(f"{path}: `schema_version`: found `{found}`, expected {SCHEMA}")
    return Digest(paper, *kept)


def _kept(document: Mapping[str, Any]) -> Kept:
    figures = {name: load(KeptFigure, one) for name, one in document["figures"].items()}
    measures, tables = document["measures"], document["tables"]
    if not all(is_number(value) for value in measures.values()):
        raise ValueError("a measure is no number")
    return Kept(figures, dict(measures), dict(tables))


def numbers(run: Measured, figure: str) -> str:
    """Return a digest of all numbers of a figure, to nine digits."""
    own = {name: f"{value:.{DIGITS}g}" for name, value in run.of(figure).items()}
    return text(json.dumps(own, sort_keys=True))


def text(content: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(content.encode()).hexdigest()[:LENGTH]


def _figure(name: str) -> str:
    return name.partition("/")[0]


def _other(values: Mapping[str, T], run: Measured) -> dict[str, T]:
    """Return the values of figures that a run does not have."""
    return {name: value for name, value in values.items() if _figure(name) not in run.figures}


def _section(name: str, kept: Kept) -> str:
    parts: dict[str, Any] = {
        "figures": dump(kept.figures),
        "measures": kept.measures,
        "tables": kept.tables,
    }
    shown = []
    for key, values in parts.items():
        lines = [
            f"   {json.dumps(one, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
            for one, value in sorted(values.items())
        ]
        body = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
        shown.append(f'  "{key}": {body}')
    return f' "{name}": {{\n' + ",\n".join(shown) + "\n }"
