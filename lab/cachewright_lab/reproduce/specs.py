"""What all papers' specs share: where they are, their traces, what is said of both.

For: `lab/papers/PAPER/setup.toml` and the head of every figure beside it. Must never know: what a
figure shows or how a case is run. Reference traces are looked for in CACHEWRIGHT_SHARED, else
`../shared`; a folder of the user's own volumes takes their place (`volumes`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachewright._native import SpecError
from cachewright.tables.measures import GIVEN, WHOLE
from cachewright_lab.reproduce import volumes

SETUP = "setup.toml"
# Where copies of a paper's specs are looked for, in the current folder and above it.
SPECS = "specs"
# The papers' own specs: beside this package in a source tree, in it in a wheel.
PACKAGE = Path(__file__).resolve().parents[1]
PAPERS = (PACKAGE.parent / "papers", PACKAGE / "papers")
SHARED = "CACHEWRIGHT_SHARED"
# What every setup says in words.
HEAD = ("paper", "machine", "study")
LAST = 1000
# Says in a setup that the paths of `[[trace]]` are relative to it, not to the reference folder.
HERE = "traces_here"


@dataclass(frozen=True)
class Workload:
    """One trace: the table that names it, and where it is."""

    name: str
    path: Path
    load: Path | None
    table: Mapping[str, Any]

    @property
    def loop(self) -> bool:
        """Whether it is repeated."""
        return bool(self.table.get("loop", False))


@dataclass(frozen=True)
class Setup:
    """What all figures of a paper share.

    `kind` says which traces there are: `trace` (of reference), `given` (a folder's), `bundled` or
    `quick`; `document` is the whole file; `traces` is the folder of those given.
    """

    paper: str
    machine: str
    study: str
    kind: str
    folder: Path
    workloads: tuple[Workload, ...]
    document: Mapping[str, Any]
    traces: Path | None = None

    @property
    def quick(self) -> bool:
        """Whether small traces are asked for."""
        return self.kind == "quick"

    @property
    def whole(self) -> bool:
        """Whether machines and traces are of full size."""
        return self.kind in WHOLE

    def key(self, name: str) -> str:
        """Return the name of a table for the traces there are, `quick_NAME` among them."""
        return name if self.whole else f"{self.kind}_{name}"

    def table(self, name: str) -> dict[str, Any]:
        """Return a table of the file, with what differs for the traces there are.

        Errors: `SpecError` for a table that is missing.
        """
        found = key(self.folder / SETUP, self.document, name)
        return merged(found, {} if self.whole else self.document.get(self.key(name), {}))

    @property
    def absent(self) -> list[str]:
        """The paper's workloads that a folder has no trace of."""
        there = {one.name for one in self.workloads}
        wanted = [str(one["name"]) for one in self.document["trace"]]
        return [name for name in wanted if self.kind == GIVEN and name not in there]


@dataclass(frozen=True)
class FigureSpec:
    """The head of a figure: what it shows, and what the paper has."""

    name: str
    place: int
    title: str
    source: str
    shows: str
    paper: Mapping[str, Any]

    @property
    def heading(self) -> str:
        """Its title and where the paper has it, above its tables."""
        return f"{self.title} ({self.source})"


def head(path: Path, document: Mapping[str, Any], shown: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of `FigureSpec`. Errors: `SpecError` for `shows` not among `shown`."""
    about = key(path, document, "figure")
    shows = str(key(path, about, "shows"))
    if shows not in shown:
        raise SpecError(f"{path}: `shows`: found `{shows}`, expected one of {', '.join(shown)}")
    return {
        "name": path.stem,
        "place": int(about.get("place", LAST)),
        "title": str(key(path, about, "title")),
        "source": str(key(path, about, "source")),
        "shows": shows,
        "paper": document.get("paper", {}),
    }


def figures(folder: Path, study: str | None = None) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Give the files of a paper with a `[figure]` table of a study; without, those that name none.

    Those are of the paper's own study.
    """
    for path, document in _figures(folder):
        if document["figure"].get("study") == study:
            yield path, document


def lacks(setup: Setup, document: Mapping[str, Any]) -> bool:
    """Return whether a folder of given traces has none for a tenant (`app`) of a figure."""
    apps = {str(one.get("app")) for one in document.get("tenant", [])}
    return not apps.isdisjoint(setup.absent)


def other_studies(folder: Path) -> list[str]:
    """Return the studies that figures name beside the paper's own, each once."""
    named = {document["figure"].get("study") for _, document in _figures(folder)}
    return sorted(str(name) for name in named if name is not None)


def figure_files(folder: Path) -> list[Path]:
    """Return the files of a paper's figures."""
    return [path for path, _ in _figures(folder)]


def _figures(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(folder.glob("*.toml")):
        document = toml(path)
        if "figure" in document:
            if not isinstance(document["figure"], dict):
                raise SpecError(f"{path}: `figure`: found no table, expected `[figure]`")
            yield path, document


def figures_of_papers() -> dict[str, list[str]]:
    """Return the names of the figures of every paper of the laboratory."""
    folders = {path.parent for root in PAPERS for path in root.glob(f"*/{SETUP}")}
    return {
        folder.name: [path.stem for path, _ in _figures(folder)]
        for folder in sorted(folders, key=lambda folder: folder.name)
    }


def folder_of(paper: str, specs: Path | None) -> Path:
    """Return the folder of a paper's specs, the laboratory's own unless another is nearer.

    Looked for below `specs`; without it below a folder `specs` here or above, then in `PAPERS`.
    """
    here = Path.cwd()
    own = [*(folder / SPECS for folder in (here, *here.parents)), *PAPERS]
    roots = [specs] if specs is not None else own
    for root in roots:
        if (root / paper / SETUP).is_file():
            return root / paper
    known = sorted({path.parent.name for root in roots for path in root.glob(f"*/{SETUP}")})
    if known:
        raise SpecError(f"found paper `{paper}`, expected one of {', '.join(known)}")
    expected = "expected it here, above, or as --specs"
    raise SpecError(f"found no folder `{SPECS}/{paper}` with `{SETUP}`, {expected}")


def setup_in(folder: Path, *, quick: bool, traces: Path | None = None) -> Setup:
    """Return what the figures in a folder share, on reference traces or those of a folder.

    Errors: `SpecError` for a key that is missing.
    """
    path = folder / SETUP
    document = toml(path)
    paper, machine, study = (str(key(path, document, name)) for name in HEAD)
    reference = _listed(path, document, "trace")
    shared = folder if document.get(HERE) else _shared()
    if traces is not None:
        kind, base = GIVEN, traces
    elif quick:
        kind, base = "quick", folder
    elif shared is not None and all(_there(shared, t) for t in reference):
        kind, base = "trace", shared
    else:
        kind, base = "bundled", folder
    return Setup(
        paper,
        machine,
        study,
        kind,
        folder,
        _workloads(base, _tables(path, document, kind, traces, _others(document, document))),
        document,
        traces,
    )


def _tables(
    path: Path,
    document: Mapping[str, Any],
    kind: str,
    traces: Path | None,
    others: Sequence[str] = (),
    *,
    needed: bool = True,
) -> list[dict[str, Any]]:
    """Return the tables of the traces there are. Errors: `SpecError`."""
    if traces is None:
        return _listed(path, document, kind)
    tables = volumes.given(traces, _listed(path, document, "trace"), others, needed=needed)
    return [one for one in tables if volumes.usable(one)]


def _others(document: Mapping[str, Any], table: Mapping[str, Any]) -> list[str]:
    """Return the names of traces in a setup that are of other studies than a table's."""
    tables = [document, *(one for one in document.values() if isinstance(one, Mapping))]
    return [
        str(one.get("name")) for own in tables if own is not table for one in own.get("trace", [])
    ]


def _listed(path: Path, document: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the tables of traces of a kind. Errors: `SpecError` for one without name or path."""
    tables: list[dict[str, Any]] = key(path, document, kind)
    for table in tables:
        for name in ("name", "path"):
            key(path, table, name)
    return tables


def workloads(setup: Setup, document: Mapping[str, Any]) -> tuple[Workload, ...]:
    """Return the workloads of a study's own table, as those of `setup.toml` are found."""
    own = setup.document.get(HERE) or setup.kind != "trace"
    base = setup.folder if own else _shared()
    others = _others(setup.document, document)
    path = setup.folder / SETUP
    tables = _tables(path, document, setup.kind, setup.traces, others, needed=False)
    return _workloads(base or setup.folder, tables)


def _workloads(base: Path, tables: Sequence[Mapping[str, Any]]) -> tuple[Workload, ...]:
    return tuple(
        Workload(
            str(one["name"]),
            base / one["path"],
            base / one["load"] if "load" in one else None,
            one,
        )
        for one in tables
    )


def _shared() -> Path | None:
    """Return the folder of reference data: CACHEWRIGHT_SHARED, else `../shared`, if it is there."""
    given = os.environ.get(SHARED)
    source = Path(__file__).resolve().parents[3]
    for folder in [Path(given)] if given else [Path("../shared"), source.parent / "shared"]:
        if folder.is_dir():
            return folder
    return None


def _there(shared: Path, trace: Mapping[str, Any]) -> bool:
    return all((shared / trace[key]).is_file() for key in ("path", "load") if key in trace)


def toml(path: Path) -> dict[str, Any]:
    """Return a file's document. Errors: `SpecError` where it is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: {error}") from None


def key(path: Path, table: Mapping[str, Any], key: str) -> Any:
    """Return a key of a table. Errors: `SpecError` where there is none."""
    if key not in table:
        raise SpecError(f"{path}: found no `{key}`, expected one")
    return table[key]


def merged(table: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the keys of another over its own, tables inside likewise."""
    found = dict(table)
    for key, value in over.items():
        own = found.get(key)
        both = isinstance(own, Mapping) and isinstance(value, Mapping)
        found[key] = merged(own, value) if both and own is not None else value
    return found


def among(path: Path, key: str, found: Any, known: Any) -> None:
    """Check that a value is known. Errors: `SpecError`."""
    if found not in known:
        expected = ", ".join(sorted(known))
        raise SpecError(f"{path}: `{key}`: found `{found}`, expected one of {expected}")
