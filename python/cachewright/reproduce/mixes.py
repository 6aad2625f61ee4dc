"""Papers on mixes of applications: tenants with goals in one cache, under several partitions.

For: which mixes, sizes and partitions a figure needs, and running them. Must never know: how a
figure is drawn, how anything is measured. `[stack]` of `setup.toml` is the machine, `[app.NAME]`
how an application sends its requests, `[[partition]]` what is compared, `[[variant]]` other
readings of the paper, each with settings of its own for figures with `variants`; a figure names its
tenants.
Units: MiB in specs, divided by `quick_divide` where traces are small.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, api
from cachewright._native import SpecError
from cachewright.answers import Case, PlanAnswer
from cachewright.reproduce import specs
from cachewright.reproduce.specs import SETUP, FigureSpec, Setup, among

if TYPE_CHECKING:
    from cachewright.results import Curves, Result
    from cachewright.types import PathLike, Progress

SHOWN = ("mix", "alone", "alone-over-time")
MIB = 1 << 20
NS_PER_MS = 1_000_000
# Share by which a planned size may be too large.
PRECISION = 0.05


@dataclass(frozen=True)
class Division:
    """One row of a figure: a partition with its settings; `settings` differ from the stack's.

    They are by dotted key; a key of `tenant` is set for every tenant.
    """

    title: str
    partition: str
    settings: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Tenant:
    """A tenant of a figure: its application, its goal, and keys of its own."""

    app: str
    goal: float | None
    keys: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class MixSpec(FigureSpec):
    """One figure: tenants with goals, sizes of the cache in MiB, partitions.

    `plan` names the partitions (titles) for which the smallest cache that meets all goals is
    sought.
    """

    sizes: tuple[float, ...]
    tenants: tuple[Tenant, ...]
    divisions: tuple[Division, ...]
    plan: tuple[str, ...]
    over_time: bool


@dataclass
class Found:
    """What was run for a figure; what it does not show is absent."""

    result: Result | None = None
    variants: list[Result] = field(default_factory=list)
    plan: PlanAnswer | None = None
    curves: Curves | None = None
    alone: dict[str, Result] = field(default_factory=dict)


@dataclass
class Mixes:
    """The figures of a paper with what was found for them."""

    setup: Setup
    figures: Sequence[MixSpec]
    found: dict[str, Found] = field(default_factory=dict)

    @property
    def divide(self) -> float:
        """What sizes are divided by: small traces have small working sets."""
        whole = self.setup.whole
        return 1.0 if whole else float(self.setup.document.get("quick_divide", 1))

    def size(self, mib: float) -> str:
        """Return a size of a figure as a stack has it."""
        return f"{round(mib * MIB / self.divide)}B"

    def cases(self, figure: MixSpec, size: float) -> list[tuple[Division, Case]]:
        """Return the cases of a figure at one of its sizes, with their partitions."""
        result = self.found[figure.name].result
        if result is None:
            return []
        at = figure.sizes.index(size)
        found: list[tuple[Division, Case]] = []
        runs = [result, *self.found[figure.name].variants]
        for run, divisions in zip(runs, _apart(figure), strict=True):
            width = len(divisions)
            cases = run.answer.cases[at * width : (at + 1) * width]
            found += zip(divisions, cases, strict=True)
        return found

    def count(self) -> int:
        """Return how many cases were run."""
        return sum(
            len(one.answer.cases)
            for found in self.found.values()
            for one in (found.result, *found.variants, *found.alone.values())
            if one is not None
        )

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every figure; with `out` the results are kept in folders below it."""
        for figure in self.figures:
            folder = None if out is None else Path(out) / figure.name
            found = self.found[figure.name] = Found()
            if figure.shows == "mix":
                for number, divisions in enumerate(_apart(figure)):
                    own = folder if folder is None or not number else folder / f"variant-{number}"
                    result = self._compare(figure, divisions, own, threads, progress)
                    if number:
                        found.variants.append(result)
                    else:
                        found.result = result
                found.plan = self._plan(figure, threads, progress)
            elif figure.shows == "alone":
                found.curves = self._curves(figure, threads, progress)
            else:
                for tenant in figure.tenants:
                    stack = self._stack(figure, [tenant])
                    own = None if folder is None else folder / tenant.app
                    found.alone[tenant.app] = api.run(
                        stack, out=own, threads=threads, progress=progress
                    )

    def _stack(self, figure: MixSpec, tenants: Sequence[Tenant]) -> dict[str, Any]:
        stack = {key: dict(table) for key, table in self.setup.document["stack"].items()}
        stack["cache"]["capacity"] = self.size(figure.sizes[0])
        if not self.setup.whole:
            for key, own in self.setup.document.get("quick_stack", {}).items():
                stack[key] |= own
        tables = [self._tenant(tenant) for tenant in tenants]
        return {"name": figure.name, "seed": 1, **stack, "tenant": tables}

    def _tenant(self, tenant: Tenant) -> dict[str, Any]:
        trace = next(one.path for one in self.setup.workloads if one.name == tenant.app)
        own = dict(tenant.keys)
        own |= {key: self._when(own[key]) for key in ("start", "stop") if key in own}
        known = {**self._app(tenant.app), **own}
        table = {"name": tenant.app, "trace": os.fspath(trace.resolve()), **known}
        if tenant.goal is not None:
            table["goal_hit_ratio"] = tenant.goal
        return table

    def _when(self, time: str) -> str:
        """Return when a tenant starts or stops: small traces are shorter, as sizes are smaller.

        A share of its requests (`30%`) stays.
        """
        if self.setup.whole or time.endswith("%"):
            return time
        return f"{round(_native.parse_duration(time) / NS_PER_MS / self.divide)}ms"

    def _app(self, app: str) -> dict[str, Any]:
        own = dict(self.setup.document["app"][app])
        if not self.setup.whole:
            # Small traces know nothing of processes.
            own.pop("pauses", None)
        return own

    def _compare(
        self,
        figure: MixSpec,
        divisions: Sequence[Division],
        folder: Path | None,
        threads: int,
        progress: Progress | None,
    ) -> Result:
        vary = {
            "capacity": [self.size(size) for size in figure.sizes],
            "partition": [one.partition for one in divisions],
        }
        stack = self._stack(figure, figure.tenants)
        for key, value in divisions[0].settings:
            table, name = key.split(".")
            for one in stack["tenant"] if table == "tenant" else [stack[table]]:
                one[name] = value
        return api.compare(stack, vary, out=folder, threads=threads, progress=progress)

    def _plan(self, figure: MixSpec, threads: int, progress: Progress | None) -> PlanAnswer | None:
        if any(tenant.goal is None for tenant in figure.tenants):
            return None
        named = {one.title: one.partition for one in figure.divisions}
        wanted = [] if self.setup.quick else [named[title] for title in figure.plan]
        stack = self._stack(figure, figure.tenants)
        return api.plan(stack, wanted, precision=PRECISION, threads=threads, progress=progress)

    def _curves(self, figure: MixSpec, threads: int, progress: Progress | None) -> Curves:
        stack = self._stack(figure, figure.tenants)
        sizes = [self.size(size) for size in figure.sizes]
        return api.mrc(stack, latency=True, sizes=sizes, threads=threads, progress=progress)


def load(setup: Setup) -> Mixes:
    """Return the figures of a paper, nothing run yet. Errors: `SpecError`."""
    path = setup.folder / SETUP
    known = tuple(_division(path, one) for one in specs.key(path, setup.document, "partition"))
    variants = tuple(_division(path, one) for one in setup.document.get("variant", []))
    if not setup.whole:
        # Small traces know nothing of processes.
        variants = tuple(one for one in variants if "tenant.pauses" not in dict(one.settings))
    apps = {one.name for one in setup.workloads} & set(specs.key(path, setup.document, "app"))
    figures = [one for one in specs.figures(setup.folder) if not specs.lacks(setup, one[1])]
    return Mixes(setup, [_figure(*one, known, variants, apps) for one in figures])


def _division(path: Path, table: Mapping[str, Any]) -> Division:
    settings = table.get("settings", {})
    for key in settings:
        if key.count(".") != 1:
            raise SpecError(f"{path}: `settings`: found `{key}`, expected `table.key`")
    title, partition = (str(specs.key(path, table, key)) for key in ("title", "partition"))
    return Division(title, partition, tuple(settings.items()))


def _tenant(path: Path, table: Mapping[str, Any]) -> Tenant:
    own = tuple((key, value) for key, value in table.items() if key not in ("app", "goal"))
    return Tenant(str(specs.key(path, table, "app")), table.get("goal"), own)


def _apart(figure: MixSpec) -> list[list[Division]]:
    """Return the divisions of a figure by stack: first those of the paper's own settings."""
    found: dict[str, list[Division]] = {str(()): []}
    for one in figure.divisions:
        found.setdefault(str(one.settings), []).append(one)
    return [group for group in found.values() if group]


def _figure(
    path: Path,
    document: dict[str, Any],
    known: tuple[Division, ...],
    variants: tuple[Division, ...],
    apps: set[str],
) -> MixSpec:
    fields = specs.head(path, document, SHOWN)
    about = document["figure"]
    titles = {one.title: one for one in known}
    others = variants if about.get("variants", False) else ()
    for title in about.get("partitions", []):
        among(path, "partitions", title, titles)
    chosen = [titles[title] for title in about.get("partitions", titles)]
    for title in about.get("plan", []):
        among(path, "plan", title, [one.title for one in chosen])
    tenants = tuple(_tenant(path, one) for one in specs.key(path, document, "tenant"))
    for tenant in tenants:
        among(path, "app", tenant.app, apps)
        if "plan" in about and tenant.goal is None:
            raise SpecError(
                f"{path}: `plan`: found no goal of `{tenant.app}`, expected one of each tenant"
            )
    return MixSpec(
        **fields,
        sizes=tuple(float(size) for size in specs.key(path, about, "sizes_mib")),
        tenants=tenants,
        divisions=(*chosen, *others),
        plan=tuple(about.get("plan", [])),
        over_time=bool(about.get("over_time", False)),
    )
