"""A paper's figures, run from their specs: `specs/PAPER/*.toml`.

For: which traces, drives and schemes a figure needs, each run once for all figures that show it.
Must never know: how a figure is drawn, how anything is measured. `setup.toml` names traces and
drive; every other file with a `[figure]` table is one figure. Units: as `Amplification`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import api
from cachewright._native import SpecError

if TYPE_CHECKING:
    from cachewright.amplification import Amplification
    from cachewright.spec import PathLike
    from cachewright.types import Progress

SETUP = "setup.toml"
SPECS = "specs"
SHARED = "CACHEWRIGHT_SHARED"
RECLAIM = "cost-benefit"
SHOWN = ("extra-writes", "classifier", "accuracy", "ablation", "metadata")
Case = dict[str, Any]
# Options of `wa` by name, the over-provisioning among them.
Drive = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Workload:
    """One trace, what is replayed before it, and whether it is repeated."""

    name: str
    path: Path
    load: Path | None
    loop: bool


@dataclass(frozen=True)
class Scheme:
    """One row of a figure: a separation and the reclaim policy it is run with."""

    title: str
    separation: str
    reclaim: str


@dataclass(frozen=True)
class FigureSpec:
    """One figure: what it shows of which schemes, and what the paper has."""

    name: str
    place: int
    title: str
    source: str
    shows: str
    base: str | None
    learned: str | None
    op: tuple[str, ...]
    drive: tuple[tuple[str, Any], ...]
    schemes: tuple[Scheme, ...]
    paper: Mapping[str, Any]


@dataclass(frozen=True)
class Setup:
    """What all figures of a paper share."""

    paper: str
    machine: str
    kind: str
    workloads: tuple[Workload, ...]
    drive: Mapping[str, Any]


@dataclass
class Reproduction:
    """The figures of a paper with the documents and cases they show."""

    setup: Setup
    figures: Sequence[FigureSpec]
    documents: dict[tuple[str, Drive], dict[str, Any]] = field(default_factory=dict)
    found: dict[tuple[str, Drive, str, str], Case] = field(default_factory=dict)

    def document(self, workload: Workload, drive: Drive) -> dict[str, Any]:
        """Return what is known of a workload on a drive, whatever its over-provisioning."""
        return self.documents[workload.name, drive]

    def drives(self) -> list[Drive]:
        """Return the drives of the figures, over-provisioning aside."""
        return list(dict.fromkeys(figure.drive for figure in self.figures))

    def cases(self, figure: FigureSpec, scheme: Scheme, op: str) -> list[Case]:
        """Return the cases of a figure's scheme, one per workload."""
        drive = _drive(figure, op)
        names = [workload.name for workload in self.setup.workloads]
        return [self.found[name, drive, scheme.separation, scheme.reclaim] for name in names]

    def mean(self, figure: FigureSpec, scheme: Scheme, op: str, key: str = "extra_writes") -> float:
        """Return the mean over the workloads of one number of a scheme's cases."""
        numbers = [float(case[key]) for case in self.cases(figure, scheme, op)]
        return sum(numbers) / len(numbers)


def load(paper: str, only: str | None, *, quick: bool, specs: Path | None) -> Reproduction:
    """Return what is to be run. Errors: `SpecError` for an unknown paper or figure."""
    folder = _folder(paper, specs)
    setup = _setup(folder, quick)
    figures = []
    for path in sorted(folder.glob("*.toml")):
        document = _toml(path)
        if "figure" in document:
            figures.append(_figure(path, document, setup.drive, quick))
    figures.sort(key=lambda figure: figure.place)
    names = [figure.name for figure in figures]
    if only is not None and only not in names:
        raise SpecError(f"found figure `{only}`, expected one of {', '.join(names)}")
    wanted = [figure for figure in figures if only in (None, figure.name)]
    return Reproduction(setup, wanted)


def run(
    what: Reproduction,
    *,
    out: PathLike | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Reproduction:
    """Run every case of the figures once; with `out` the results are kept in folders below it."""
    for workload in what.setup.workloads:
        for (drive, reclaim), separations in _grouped(what.figures).items():
            sizes = [str(value) for _, value in drive]
            name = "-".join([workload.name, *sizes, reclaim]).replace("%", "").replace(" ", "-")
            folder = None if out is None else Path(out) / name
            result = _measure(
                what.setup, workload, drive, reclaim, separations, folder, threads, progress
            )
            what.documents[workload.name, drive[1:]] = result.document
            for separation, case in zip(separations, result.document["cases"], strict=True):
                what.found[workload.name, drive, separation, reclaim] = case
    return what


def _drive(figure: FigureSpec, op: str) -> Drive:
    return (("op", op), *figure.drive)


def _grouped(figures: Sequence[FigureSpec]) -> dict[tuple[Drive, str], list[str]]:
    """Return the separations to run for each drive and reclaim policy."""
    found: dict[tuple[Drive, str], list[str]] = {}
    for figure in figures:
        for op in figure.op:
            for scheme in figure.schemes:
                separations = found.setdefault((_drive(figure, op), scheme.reclaim), [])
                if scheme.separation not in separations:
                    separations.append(scheme.separation)
    return found


def _measure(
    setup: Setup,
    workload: Workload,
    own: Drive,
    reclaim: str,
    separations: list[str],
    folder: Path | None,
    threads: int,
    progress: Progress | None,
) -> Amplification:
    tenant = {"name": "trace", "trace": os.fspath(workload.path.resolve())}
    stack = {"name": workload.name, "cache": {"capacity": api.ANY_CAPACITY}, "tenant": [tenant]}
    drive = {**setup.drive, **dict(own)}
    writes, op = drive.pop("drive_writes", None), drive.pop("op")
    return api.wa(
        stack,
        separations,
        op=[op],
        reclaims=[reclaim],
        **drive,
        drive_writes=writes if workload.loop else None,
        loop=workload.loop,
        load=[] if workload.load is None else [workload.load],
        out=folder,
        threads=threads,
        progress=progress,
    )


def _folder(paper: str, specs: Path | None) -> Path:
    """Return the folder of a paper's specs: below `specs`, else in this folder or one above it."""
    here = Path.cwd()
    source = Path(__file__).resolve().parents[2]
    roots = [specs] if specs is not None else [f / SPECS for f in (here, *here.parents, source)]
    for root in roots:
        if (root / paper / SETUP).is_file():
            return root / paper
    known = sorted({path.parent.name for root in roots for path in root.glob(f"*/{SETUP}")})
    if known:
        raise SpecError(f"found paper `{paper}`, expected one of {', '.join(known)}")
    expected = "expected it here, above, or as --specs"
    raise SpecError(f"found no folder `{SPECS}/{paper}` with `{SETUP}`, {expected}")


def _setup(folder: Path, quick: bool) -> Setup:
    document = _toml(folder / SETUP)
    shared = _shared()
    drive = dict(_key(folder / SETUP, document, "drive"))
    if quick:
        kind, base = "quick", folder
        drive |= document.get("quick_drive", {})
    elif shared is not None and all(_there(shared, t) for t in document["trace"]):
        kind, base = "trace", shared
    else:
        kind, base = "bundled", folder
    workloads = tuple(
        Workload(
            str(one["name"]),
            base / one["path"],
            base / one["load"] if "load" in one else None,
            bool(one.get("loop", False)),
        )
        for one in _key(folder / SETUP, document, kind)
    )
    return Setup(document["paper"], document["machine"], kind, workloads, drive)


def _shared() -> Path | None:
    """Return the folder of reference data: CACHEWRIGHT_SHARED, else `../shared`, if it is there."""
    given = os.environ.get(SHARED)
    source = Path(__file__).resolve().parents[2]
    for folder in [Path(given)] if given else [Path("../shared"), source.parent / "shared"]:
        if folder.is_dir():
            return folder
    return None


def _there(shared: Path, trace: Mapping[str, Any]) -> bool:
    return all((shared / trace[key]).is_file() for key in ("path", "load") if key in trace)


def _figure(
    path: Path, document: dict[str, Any], drive: Mapping[str, Any], quick: bool
) -> FigureSpec:
    about = document["figure"]
    shows = str(_key(path, about, "shows"))
    if shows not in SHOWN:
        raise SpecError(f"{path}: `shows`: found `{shows}`, expected one of {', '.join(SHOWN)}")
    schemes = tuple(
        Scheme(
            str(_key(path, one, "title")),
            str(_key(path, one, "separation")),
            str(one.get("reclaim", RECLAIM)),
        )
        for one in _key(path, document, "scheme")
    )
    titles = [scheme.title for scheme in schemes]
    for key in ("base", "learned"):
        if about.get(key, titles[0]) not in titles:
            expected = ", ".join(titles)
            raise SpecError(f"{path}: `{key}`: found `{about[key]}`, expected one of {expected}")
    return FigureSpec(
        name=path.stem,
        place=int(about.get("place", len(SHOWN))),
        title=str(_key(path, about, "title")),
        source=str(_key(path, about, "source")),
        shows=shows,
        base=about.get("base"),
        learned=about.get("learned"),
        op=tuple(drive["op"] if quick else about.get("op", drive["op"])),
        drive=tuple(sorted(document.get("quick_drive" if quick else "drive", {}).items())),
        schemes=schemes,
        paper=document.get("paper", {}),
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: {error}") from None


def _key(path: Path, table: Mapping[str, Any], key: str) -> Any:
    if key not in table:
        raise SpecError(f"{path}: found no `{key}`, expected one")
    return table[key]
