"""Papers on tenants kept apart on channels of one drive: which tenants disturb others, and where.

For: which replays the figures need, each made once. Must never know: how a figure is drawn, how
anything is measured. Each replay has a seed; a quiet one is the same with its noisy tenants silent.
`isolation_specs` says what a spec has. Units: bytes per second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cachewright import api
from cachewright.reproduce import isolation_specs
from cachewright.reproduce.isolation_measures import Outcome, Peak
from cachewright.reproduce.isolation_specs import BASE, Common, IsolationSpec, Layout, Point
from cachewright.reproduce.jobs import Job, each
from cachewright.reproduce.specs import Setup, merged

if TYPE_CHECKING:
    from cachewright.results import Result
    from cachewright.types import PathLike, Progress

# Later than any run ends: a tenant that begins then is silent.
NEVER = "1000000s"
PEAK_TRACE = """[synth]
seed = 1
[[tenant]]
name = "{name}"
count = {count}
arrival = {{ kind = "constant", rate = "1000000/s" }}
read_share = {share}
size = "4KiB"
pattern = {{ kind = "uniform", span = "{span}" }}
"""
PEAK_REQUESTS = 400_000


@dataclass(frozen=True)
class Asked:
    """One replay."""

    figure: str
    point: Point
    layout: Layout
    seed: int
    quiet: bool


@dataclass
class Isolation:
    """The figures of a paper with what was found for them."""

    setup: Setup
    common: Common
    figures: Sequence[IsolationSpec]
    results: dict[Asked, Result] = field(default_factory=dict)
    peak: Peak | None = None

    def count(self) -> int:
        """Return how many cases were run."""
        return len(self.results)

    def found(
        self, figure: IsolationSpec, point: Point, layout: Layout, *, quiet: bool = False
    ) -> list[Outcome]:
        """Return what a layout made of a point, by seed; quiet ones are of the first seed."""
        seeds = range(1, 1 + (1 if quiet else figure.seeds))
        asked = [Asked(figure.name, point, layout, seed, quiet) for seed in seeds]
        return [Outcome(self.results[one].answer.cases[0]) for one in asked]

    def base(self, figure: IsolationSpec, point: Point) -> list[Outcome]:
        """Return what the layout that others are measured by made of a point."""
        layout = next(one for one in figure.layouts if one.title == BASE)
        own = point if figure.of is None else Point(layout.title)
        return self.found(figure, own, layout)

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every replay of the figures once; with `out` results are kept in folders below."""
        with TemporaryDirectory() as nowhere:
            folder = Path(nowhere if out is None else out)
            folder.mkdir(parents=True, exist_ok=True)
            asked = [one for figure in self.figures for one in self._asked(figure)]
            peaks: list[Job[Result]] = [
                partial(self._peak, folder, name) for name in ("read", "write")
            ]
            jobs: list[Job[Result]] = [partial(self._run, one, folder) for one in asked]
            read, write, *found = each("replaying", [*peaks, *jobs], threads, progress)
            self.peak = Peak.of(read.answer.cases[0], write.answer.cases[0])
            self.results = dict(zip(asked, found, strict=True))

    def _asked(self, figure: IsolationSpec) -> list[Asked]:
        quiet = (False, True) if figure.shows == "isolation" else (False,)
        return [
            Asked(figure.name, point, layout, seed, silent)
            for point, layout in figure.rows()
            for seed in range(1, figure.seeds + 1)
            for silent in (quiet if seed == 1 else (False,))
        ]

    def _run(self, asked: Asked, folder: Path, progress: Progress) -> Result:
        figure = next(one for one in self.figures if one.name == asked.figure)
        own = {"layout": asked.layout.layout, "partition": asked.layout.partition}
        own |= {} if asked.layout.policy is None else {"policy": asked.layout.policy}
        settings = {**own, **dict(asked.point.settings)}
        first = asked.quiet and asked.seed == 1 and asked.layout == figure.layouts[0]
        stack = merged(self.common.stack, {"machine": {"alone": first}})
        tenants = [
            self._tenant(figure, place, asked)
            for place in range(asked.point.count or len(figure.tenants))
        ]
        parts = [asked.point.title, asked.layout.title, str(asked.seed)]
        parts += ["quiet"] if asked.quiet else []
        name = "-".join(part.replace(" ", "-") for part in parts if part)
        return api.run(
            {"name": figure.name, "seed": asked.seed, **stack, "tenant": tenants},
            settings=settings,
            out=folder / figure.name / name,
            threads=1,
            progress=progress,
        )

    def _tenant(self, figure: IsolationSpec, place: int, asked: Asked) -> dict[str, Any]:
        lap, at = divmod(place, len(figure.tenants))
        told = figure.tenants[at]
        name = told.app if lap == 0 else f"{told.app} {lap + 1}"
        trace = next(one.path for one in self.setup.workloads if one.name == told.app)
        known = {**self.common.tenant, **self.common.apps.get(told.app, {}), **dict(told.keys)}
        table = {"name": name, "trace": os.fspath(trace.resolve()), **known}
        if told.noisy:
            noise = dict(asked.point.noise) or dict(self.common.noise)
            table |= {"start": NEVER} if asked.quiet else {"noise": noise}
        return table

    def _peak(self, folder: Path, name: str, progress: Progress) -> Result:
        """Measure what the drive alone reads or writes per second."""
        about = self.common.peak
        trace = folder / f"peak-{name}.toml"
        share, span = (1.0, about["read_span"]) if name == "read" else (0.0, about["write_span"])
        trace.write_text(
            PEAK_TRACE.format(name=name, count=PEAK_REQUESTS, share=share, span=span),
            encoding="utf-8",
        )
        stack = merged(self.common.stack, {"cache": {"capacity": span, "policy": "lru"}})
        stack["device"] = {**stack["device"], "backing": {"model": "null"}}
        keys = {key: about[key] for key in ("queue_depth", "stop", "warmup")}
        # Else reads of blocks on their way come from memory, in no time.
        stack = merged(stack, {"replay": keys, "machine": {"fill": "before-answer"}})
        tenant = {"name": name, "trace": os.fspath(trace.resolve()), "repeat": True}
        return api.run(
            {"name": f"peak-{name}", "seed": 1, **stack, "tenant": [tenant]},
            out=folder / "peak" / name,
            threads=1,
            progress=progress,
        )


def load(setup: Setup) -> Isolation:
    """Return the figures of a paper, nothing run yet. Errors: `SpecError`."""
    common = Common.of(setup)
    return Isolation(setup, common, isolation_specs.figures(setup, common))
