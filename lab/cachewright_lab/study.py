"""The engine of all studies: volumes x schemes x settings -> rows -> tables -> a page.

A study runs schemes on subjects, a volume alone or a mix of several, under settings such as the
capacity. Each case gives a row: subject, setting, scheme, and the values that were measured. Tables
are made of rows, and take the places of blocks on a page that is otherwise written by hand, between
`<!-- begin NAME -->` and `<!-- end NAME -->`. Finished cases lie in the folder of results, so that
a study that was stopped goes on; its rows lie there as `STUDY.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import cachewright
from cachewright.answers import Case

LAB = Path(__file__).resolve().parents[1]
ROOT = LAB.parent
BUNDLED = ("oltp", "mail", "web", "lu")


@dataclass(frozen=True)
class Volume:
    """A capture of one volume: its name, its file, and its seed where there are several."""

    name: str
    path: Path
    group: str = ""
    seed: int = 0

    @property
    def label(self) -> str:
        """A name that no other capture has."""
        return f"{self.group}-{self.name}-{self.seed}" if self.group else self.name

    @property
    def load(self) -> Path:
        """The capture of what was before the run; it need not be there."""
        return self.path.with_name(self.path.name.replace(".csv.zst", ".load.csv.zst"))

    def tenant(self) -> dict[str, Any]:
        """Return the volume as a tenant of a stack."""
        return {"name": self.label, "trace": str(self.path)}


@dataclass(frozen=True)
class Mix:
    """Volumes that share a cache."""

    name: str
    volumes: tuple[Volume, ...]


@dataclass(frozen=True)
class Row:
    """What one scheme gave on one subject under one setting."""

    subject: str
    setting: str
    scheme: str
    values: dict[str, float]
    group: str = ""
    seed: int = 0
    # Volumes of the subject.
    tenants: int = 1


Measures = Mapping[str, Callable[[Case], float]]


@dataclass(frozen=True)
class Replay:
    """One stack under every combination of some keys, and what is measured of each case."""

    subject: Volume | Mix
    stack: Mapping[str, Any]
    vary: Mapping[str, Sequence[str]]
    measures: Measures
    # Where finished cases are kept.
    folder: Path
    # The key of the cache whose values are the schemes, and the one whose values are the settings.
    scheme: str = "policy"
    setting: str = "capacity"

    def cases(self) -> tuple[Case, ...]:
        """Run what is not kept yet and return all cases."""
        cases = cachewright.compare(self.stack, self.vary, out=self.folder).answer.cases
        print(f"{self.folder.name}: {len(cases)} cases", file=sys.stderr)
        return tuple(cases)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each case."""
        for case in self.cases():
            setting = case.settings[f"cache.{self.setting}"]
            scheme = case.settings[f"cache.{self.scheme}"]
            values = {name: measure(case) for name, measure in self.measures.items()}
            yield row_of(self.subject, setting, scheme, values)


def row_of(subject: Volume | Mix, setting: str, scheme: str, values: dict[str, float]) -> Row:
    """Return the row of a subject."""
    if isinstance(subject, Mix):
        return Row(subject.name, setting, scheme, values, tenants=len(subject.volumes))
    return Row(subject.name, setting, scheme, values, subject.group, subject.seed)


def misses(case: Case) -> float:
    """Return the accesses that found no block, at least 1."""
    return max(case.total.misses, 1)


def mean_response(case: Case) -> float:
    """Return the mean response of all requests in ns."""
    assert case.timing is not None, "the stack has devices"
    return case.timing.total.mean_ns


def worst_slowdown(case: Case) -> float:
    """Return the slowdown of the tenant that is slowed down most beside the others."""
    assert case.timing is not None, "the stack has devices"
    assert case.timing.fairness is not None, "tenants were replayed alone"
    return case.timing.fairness.max_slowdown


def bundled() -> list[Volume]:
    """Return the bundled volumes."""
    return [Volume(name, ROOT / "data" / f"{name}.csv.zst") for name in BUNDLED]


def present(volumes: Iterable[Volume]) -> list[Volume]:
    """Return the volumes whose files are there; say which are not."""
    every = list(volumes)
    missing = [volume.label for volume in every if not volume.path.is_file()]
    if missing:
        print(f"left out, no file: {', '.join(missing)}", file=sys.stderr)
    return [volume for volume in every if volume.path.is_file()]


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Return a table in Markdown; the first `texts` columns are text, the others numbers."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * texts}{'--:|' * (len(head) - texts)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


@dataclass(frozen=True)
class Study:
    """Rows to be measured, and the tables that they make, by the names of their blocks."""

    rows: Callable[[argparse.Namespace], Iterable[Row]]
    tables: Callable[[argparse.Namespace, Sequence[Row]], dict[str, str]]
    # Whether it runs where none is named.
    usual: bool = True


@dataclass(frozen=True)
class Programme:
    """The studies of a page, run by one command line: `python -m cachewright_lab.NAME`."""

    about: str
    # Without a page, tables are printed alone.
    page: Path | None
    studies: Mapping[str, Study]
    # Adds what is given beside `--out`, `--only` and `--write`.
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    # Tables of all studies together, of the rows by study.
    together: Callable[[argparse.Namespace, Mapping[str, Sequence[Row]]], dict[str, str]] = field(
        default=lambda _given, _rows: {}
    )

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Do what the command line says; return the exit status."""
        parser = argparse.ArgumentParser(description=self.about)
        parser.add_argument("--out", type=Path, required=True, help="folder for results")
        parser.add_argument(
            "--only", choices=self.studies, action="append", help="the study to run"
        )
        if self.page is not None:
            about = "write the tables into the page"
            parser.add_argument("--write", action="store_true", help=about)
        self.options(parser)
        given = parser.parse_args(arguments)
        chosen = given.only or [name for name, study in self.studies.items() if study.usual]
        rows: dict[str, Sequence[Row]] = {}
        for name in chosen:
            rows[name] = list(self.studies[name].rows(given))
            if not rows[name]:
                raise SystemExit(f"{name}: found no volume to run, expected one")
            self._show(given, self.studies[name].tables(given, rows[name]))
            given.out.mkdir(parents=True, exist_ok=True)
            kept = json.dumps([asdict(row) for row in rows[name]], indent=1)
            (given.out / f"{name.replace(' ', '-')}.json").write_text(kept, encoding="utf-8")
        self._show(given, self.together(given, rows))
        return 0

    def _show(self, given: argparse.Namespace, tables: Mapping[str, str]) -> None:
        for name, text in tables.items():
            print(f"{name}\n\n{text}\n")
        if self.page is not None and given.write:
            write_blocks(self.page, tables)


def write_blocks(path: Path, blocks: Mapping[str, str]) -> None:
    """Replace the blocks of these names on a page; a name without a block ends the program."""
    page = path.read_text(encoding="utf-8")
    for name, text in blocks.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        head, found, rest = page.partition(begin)
        _, closed, tail = rest.partition(end)
        if not (found and closed):
            raise SystemExit(f"{path}: found no block `{name}`, expected one")
        page = f"{head}{begin}\n{text}\n{end}{tail}"
    path.write_text(page, encoding="utf-8")
