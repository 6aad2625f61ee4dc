"""Papers on write amplification: schemes on traces and drives.

For: which traces, drives and schemes a figure needs, each run once for all figures that show it.
Must never know: how a figure is drawn, how anything is measured. `[drive]` of `setup.toml` has the
options of `wa`; a trace may name the nominal size of its volume. Units: as `Amplification`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import api
from cachewright._native import SpecError
from cachewright.answers import AmplificationAnswer
from cachewright.answers import AmplificationCase as Case
from cachewright.reproduce import specs
from cachewright.reproduce.specs import SETUP, FigureSpec, Setup, Workload

if TYPE_CHECKING:
    from cachewright.results import Amplification
    from cachewright.types import PathLike, Progress

RECLAIM = "cost-benefit"
SHOWN = ("extra-writes", "classifier", "accuracy", "ablation", "metadata", "lifetimes")
# Keys of a trace that say how large its drive is, unless a figure does.
OWN = ("capacity",)
# Options of `wa` by name, the over-provisioning among them.
Drive = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Scheme:
    """One row of a figure: a separation and the reclaim policy it is run with."""

    title: str
    separation: str
    reclaim: str


@dataclass(frozen=True)
class SchemesSpec(FigureSpec):
    """One figure: what it shows of which schemes."""

    base: str | None
    learned: str | None
    op: tuple[str, ...]
    drive: tuple[tuple[str, Any], ...]
    schemes: tuple[Scheme, ...]


@dataclass
class Amplified:
    """The figures of a paper with the answers and cases they show."""

    setup: Setup
    drive: Mapping[str, Any]
    figures: Sequence[SchemesSpec]
    answers: dict[tuple[str, Drive], AmplificationAnswer] = field(default_factory=dict)
    found: dict[tuple[str, Drive, str, str], Case] = field(default_factory=dict)

    def answer(self, workload: Workload, drive: Drive) -> AmplificationAnswer:
        """Return what is known of a workload on a drive, whatever its over-provisioning."""
        return self.answers[workload.name, drive]

    def drives(self) -> list[Drive]:
        """Return the drives of the figures, over-provisioning aside."""
        return list(dict.fromkeys(figure.drive for figure in self.figures))

    def cases(self, figure: SchemesSpec, scheme: Scheme, op: str) -> list[Case]:
        """Return the cases of a figure's scheme, one per workload."""
        drive = _drive(figure, op)
        names = [workload.name for workload in self.setup.workloads]
        return [self.found[name, drive, scheme.separation, scheme.reclaim] for name in names]

    def count(self) -> int:
        """Return how many cases were run."""
        return len(self.found)

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every case once; with `out` the results are kept in folders below it."""
        for workload in self.setup.workloads:
            for (drive, reclaim), separations in _grouped(self.figures).items():
                sizes = [str(value) for _, value in drive]
                name = "-".join([workload.name, *sizes, reclaim])
                name = name.replace("%", "").replace(" ", "-")
                folder = None if out is None else Path(out) / name
                own = {key: workload.table[key] for key in OWN if key in workload.table}
                options = {**self.drive, **own, **dict(drive)}
                answer = _measure(
                    workload, options, reclaim, separations, folder, threads, progress
                ).answer
                self.answers[workload.name, drive[1:]] = answer
                for separation, case in zip(separations, answer.cases, strict=True):
                    self.found[workload.name, drive, separation, reclaim] = case

    def mean(self, figure: SchemesSpec, scheme: Scheme, op: str) -> float:
        """Return the mean over the workloads of a scheme's extra writes, (F-U)/U."""
        numbers = [case.extra_writes for case in self.cases(figure, scheme, op)]
        return sum(numbers) / len(numbers)


def load(setup: Setup) -> Amplified:
    """Return the figures of a paper, nothing run yet. Errors: `SpecError`."""
    drive = dict(specs.key(setup.folder / SETUP, setup.document, "drive"))
    if setup.quick:
        drive |= setup.document.get("quick_drive", {})
    found = [_figure(*one, drive, setup.quick) for one in specs.figures(setup.folder)]
    return Amplified(setup, drive, found)


def _drive(figure: SchemesSpec, op: str) -> Drive:
    return (("op", op), *figure.drive)


def _grouped(figures: Sequence[SchemesSpec]) -> dict[tuple[Drive, str], list[str]]:
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
    workload: Workload,
    drive: dict[str, Any],
    reclaim: str,
    separations: list[str],
    folder: Path | None,
    threads: int,
    progress: Progress | None,
) -> Amplification:
    tenant = {"name": "trace", "trace": os.fspath(workload.path.resolve())}
    stack = {"name": workload.name, "cache": {"capacity": api.ANY_CAPACITY}, "tenant": [tenant]}
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


def _figure(
    path: Path, document: dict[str, Any], drive: Mapping[str, Any], quick: bool
) -> SchemesSpec:
    fields = specs.head(path, document, SHOWN)
    about = document["figure"]
    schemes = tuple(
        Scheme(
            str(specs.key(path, one, "title")),
            str(specs.key(path, one, "separation")),
            str(one.get("reclaim", RECLAIM)),
        )
        for one in specs.key(path, document, "scheme")
    )
    titles = [scheme.title for scheme in schemes]
    for key in ("base", "learned"):
        if about.get(key, titles[0]) not in titles:
            expected = ", ".join(titles)
            raise SpecError(f"{path}: `{key}`: found `{about[key]}`, expected one of {expected}")
    return SchemesSpec(
        **fields,
        base=about.get("base"),
        learned=about.get("learned"),
        op=tuple(drive["op"] if quick else about.get("op", drive["op"])),
        drive=tuple(sorted(document.get("quick_drive" if quick else "drive", {}).items())),
        schemes=schemes,
    )
