"""Papers on mixes of applications: tenants with goals in one cache, under several partitions.

`[stack]` of `setup.toml` is the machine, `[app.NAME]` how an application sends its requests,
`[[partition]]` what is compared, `[[variant]]` other readings of the paper, each with settings of
its own for figures with `variants`; a figure names its tenants, and maybe variants of its own. One
with `reading` is of another reading of the paper or of another machine: its goals are counted
apart. `sizes` looks for the smallest of some caches in which all goals are met. Units: MiB in
specs, divided by `quick_divide` where traces are small; hit ratios are of block accesses over the
whole run; changes are relative; run times are simulated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import _native, api, words
from cachewright._native import SpecError, TraceError
from cachewright.answers import Case, CaseTenant, LatencyCurve, PlanAnswer
from cachewright.report import charts, marks
from cachewright.report.charts import series_rows
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series, distinct, extent
from cachewright.tables import best_index, timing
from cachewright.tables.measures import GIVEN
from cachewright.traces import TraceOptions, open_trace
from cachewright_lab.report import grouped
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce import specs
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup, among

if TYPE_CHECKING:
    from cachewright.results import Curves, Result
    from cachewright.types import PathLike, Progress

SHOWN = ("mix", "sizes", "alone", "alone-over-time")
# What is compared under several divisions.
COMPARED = ("mix", "sizes")
MIB = 1 << 20
# The format of traces with calls by process.
CALLS = "syscall"
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
    sought. `reading` says what is read otherwise than in other figures; `than` names the figure
    with other goals that this one is set beside; `alone`: each tenant is replayed alone too.
    """

    sizes: tuple[float, ...]
    tenants: tuple[Tenant, ...]
    divisions: tuple[Division, ...]
    plan: tuple[str, ...]
    over_time: bool
    reading: str
    than: str
    alone: bool


@dataclass
class Found:
    """What was run for a figure; what it does not show is absent."""

    result: Result | None = None
    variants: list[Result] = field(default_factory=list)
    other: Result | None = None
    plan: PlanAnswer | None = None
    curves: Curves | None = None
    alone: dict[str, Result] = field(default_factory=dict)


@dataclass
class Mixes:
    """The figures of a paper with what was found for them."""

    setup: Setup
    figures: Sequence[MixSpec]
    # All of the paper, those that are not run too.
    known: Sequence[MixSpec]
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
        given = progress
        for place, figure in enumerate(self.figures, 1):
            progress = _told(figure, place, len(self.figures), given)
            folder = None if out is None else Path(out) / figure.name
            found = self.found[figure.name] = Found()
            if figure.shows in COMPARED:
                for number, divisions in enumerate(_apart(figure)):
                    own = folder if folder is None or not number else folder / f"variant-{number}"
                    result = self._compare(figure, divisions, own, threads, progress)
                    if number:
                        found.variants.append(result)
                    else:
                        found.result = result
                if figure.shows == "mix":
                    found.plan = self._plan(figure, threads, progress)
                if figure.than:
                    than = next(one for one in self.known if one.name == figure.than)
                    own = None if folder is None else folder / figure.than
                    told = replace(figure, tenants=than.tenants)
                    found.other = self._compare(told, _apart(figure)[0], own, threads, progress)
                if figure.alone:
                    found.curves = self._curves(figure, threads, progress)
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
        if not self.setup.whole or app in self.without_calls:
            # Small traces know nothing of processes, nor do those of a block device.
            own.pop("pauses", None)
        return own

    @cached_property
    def without_calls(self) -> dict[str, Path]:
        """The applications whose given volumes have no calls by process, and the volumes."""
        if self.setup.kind != GIVEN:
            return {}
        apps = self.setup.document["app"]
        return {
            one.name: one.path
            for one in self.setup.workloads
            if "pauses" in apps.get(one.name, {}) and not _has_calls(one.path)
        }

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


def _has_calls(path: Path) -> bool:
    """Return whether a trace holds calls by process, between which pauses are recorded."""
    try:
        return len(open_trace(path, TraceOptions(CALLS)).read(1)[0]) > 0
    except (SpecError, TraceError):
        return False


def _told(figure: MixSpec, number: int, of: int, progress: Progress | None) -> Progress | None:
    """Return progress that names the figure, and which of them it is."""
    if progress is None:
        return None
    name = f"{figure.name} (figure {number} of {of}): "
    return lambda stage, done, total: progress(name + stage, done, total)


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
    found = [_figure(*one, known, variants, apps) for one in figures]
    for one in found:
        if one.than:
            among(setup.folder / f"{one.name}.toml", "than", one.than, [own.name for own in found])
    return Mixes(setup, found, found)


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
    others += tuple(_division(path, one) for one in document.get("variant", []))
    for title in about.get("partitions", []):
        among(path, "partitions", title, titles)
    chosen = [titles[title] for title in about.get("partitions", titles)]
    for title in about.get("plan", []):
        among(path, "plan", title, [one.title for one in chosen])
    tenants = tuple(_tenant(path, one) for one in specs.key(path, document, "tenant"))
    for tenant in tenants:
        among(path, "app", tenant.app, apps)
        if ("plan" in about or fields["shows"] == "sizes") and tenant.goal is None:
            key = "plan" if "plan" in about else "shows"
            raise SpecError(
                f"{path}: `{key}`: found no goal of `{tenant.app}`, expected one of each tenant"
            )
    return MixSpec(
        **fields,
        sizes=tuple(float(size) for size in specs.key(path, about, "sizes_mib")),
        tenants=tenants,
        divisions=(*chosen, *others),
        plan=tuple(about.get("plan", [])),
        over_time=bool(about.get("over_time", False)),
        reading=str(about.get("reading", "")),
        than=str(about.get("than", "")),
        alone=bool(about.get("alone", False)),
    )


# Partitions by title that others are set beside.
BASES = ("shared", "equal")
# What the names of partitions with goals begin with.
OURS = "soft-qos"
# Partitions drawn over time.
DRAWN = ("shared", "equal", "soft-qos", "soft-qos-x")
NS_PER_S = 1e9
Cases = list[tuple[Division, Case]]


def notes(what: Mixes) -> list[str]:
    """Return what to know before the numbers."""
    found = [
        "Goals are judged on the hit ratio of the whole run. A goal that is met is marked ✓.",
        "A block access waits if it misses, or if its block is still being read ahead.",
    ]
    for app, path in what.without_calls.items():
        found.append(
            f"{path.name} has no calls by process, so that no pauses were recorded: requests of "
            f"{app} follow each other after its think time."
        )
    if what.divide > 1:
        found.append(f"Sizes of caches are divided by {words.significant(what.divide)}.")
    return found


def shared(what: Mixes) -> list[Table]:
    """Return the tables of all figures together: which goals are met, and what that brings."""
    found: dict[str, list[tuple[MixSpec, float]]] = {}
    for figure in what.figures:
        if figure.shows == "mix":
            found.setdefault(figure.reading, []).extend((figure, size) for size in figure.sizes)
    tables = [
        _goals(what, mixes, "goals met" + (f", {reading}" if reading else ""))
        for reading, mixes in found.items()
    ]
    own = found.get("", [])
    return [*tables, *([_together(what, own)] if own else [])]


def _other_goals(what: Mixes, figure: MixSpec) -> list[Table]:
    """Return hit ratios by those of the same mix in the same cache with other goals."""
    other = what.found[figure.name].other
    if other is None:
        return []
    rows = []
    cases = what.cases(figure, figure.sizes[0])
    for (division, own), base in zip(cases, other.answer.cases, strict=True):
        rows.append([division.title, *map(_shown, _gains(own, base))])
    headers = ["partition", *(tenant.name for tenant in cases[0][1].tenants)]
    title = f"hit ratios by those with the goals of {figure.than}"
    return [plain(figure.heading, title, headers, rows, 1, "other goals")]


def _goals(what: Mixes, mixes: Sequence[tuple[MixSpec, float]], name: str) -> Table:
    """Return a row per mix: what its goals need and which schemes meet them."""
    rows = []
    for figure, size in mixes:
        cases = what.cases(figure, size)
        cells = [figure.title, words.size(_capacity(cases)), _needed(what, figure)]
        rows.append([*cells, *(_met(cases, title) for title in _titles(what))])
    fitting = [what.cases(figure, size) for figure, size in mixes if _fits(what, figure, size)]
    if fitting:
        last = ["mixes whose goals fit, all met", "", ""]
        rows.append([*last, *(_all_met(fitting, title) for title in _titles(what))])
    headers = ["mix", "cache", "goals need", *_titles(what)]
    return plain("", "Goals met, of those there are", headers, rows, 1, name, keys=2)


def _fits(what: Mixes, figure: MixSpec, size: float) -> bool:
    """Return whether a cache is as large as what the goals of its mix need."""
    plan = what.found[figure.name].plan
    if plan is None or plan.smallest_blocks is None:
        return False
    return plan.smallest_blocks * plan.block_bytes <= _capacity(what.cases(figure, size))


def _all_met(mixes: Sequence[Cases], title: str) -> str:
    """Return in how many mixes a partition meets every goal."""
    named = [case for cases in mixes for division, case in cases if division.title == title]
    met = sum(case.total.goals_met == case.total.goals for case in named)
    return words.Number(f"{met} of {len(named)}", met / len(named)) if named else words.NOTHING


def _together(what: Mixes, mixes: Sequence[tuple[MixSpec, float]]) -> Table:
    """Return hit ratios by those without goals over all mixes: the mean, least and greatest."""
    found: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for figure, size in mixes:
        named = {division.title: case for division, case in what.cases(figure, size)}
        for title, base in product(named, BASES):
            if title.startswith(OURS) and base in named:
                whole, gains = found.setdefault((title, base), ([], []))
                own, other = (named[one].total.hit_ratio for one in (title, base))
                whole += _known([_quotient(own, other)])
                gains += _known(_gains(named[title], named[base]))
    rows = []
    for (title, base), (whole, gains) in found.items():
        cells = [_picked(pick, whole) for pick in (_mean, min, max)]
        rows.append([title, base, *cells, _picked(max, gains)])
    headers = ["partition", "by", "mean", "least", "greatest", "greatest of one application"]
    title = "Hit ratios as quotients by those of partitions without goals, over all mixes"
    return plain("", title, headers, rows, 2, "beside")


def shown(what: Mixes, figure: MixSpec) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    if figure.shows == "alone":
        return [_alone(what, figure), _alone_chart(what, figure)]
    if figure.shows == "alone-over-time":
        return [_alone_over_time(what, figure)]
    if figure.shows == "sizes":
        return [_smallest(what, figure), _by_size(what, figure)]
    found: list[Table | Figure] = []
    for size in figure.sizes:
        found += [_table(what, figure, size), *_beside(what, figure, size)]
        found += [_figure_goals(what, figure, size), _bars(what, figure, size)]
    plan = what.found[figure.name].plan
    if plan is not None and figure.plan and not what.setup.quick:
        found.append(_planned(figure, plan))
    found += _other_goals(what, figure)
    if figure.alone:
        found += [_near_alone(what, figure, size) for size in figure.sizes]
    if figure.over_time:
        found += _over_time(what, figure)
    return found


def _figure_goals(what: Mixes, figure: MixSpec, size: float) -> Table:
    """Return how many goals each partition meets."""
    cases = what.cases(figure, size)
    rows = [[one.title, _met(cases, one.title)] for one, _ in cases]
    title = f"goals met, {words.size(_capacity(cases))}"
    headers = ["partition", "goals met"]
    return plain(figure.heading, title, headers, rows, 1, _named(figure, size, "goals"))


def _smallest(what: Mixes, figure: MixSpec) -> Table:
    """Return the smallest of the figure's caches in which each partition meets every goal."""
    found: dict[str, int] = {}
    titles = [one.title for one in figure.divisions]
    for size in sorted(figure.sizes):
        cases = what.cases(figure, size)
        for title in titles:
            if title not in found and _all_goals(cases, title):
                found[title] = _capacity(cases)
    base = found.get(BASES[0])
    rows = []
    for title in titles:
        own = found.get(title)
        cell = words.times(base, own) if base and own else words.NOTHING
        if base and own is None:
            cell = words.Number("0", 0.0)
        rows.append([title, "none of these" if own is None else words.size(own), cell])
    headers = ["partition", "smallest cache", f"{BASES[0]}'s by this"]
    title = "the smallest of these caches in which all goals are met; 0: in none"
    return plain(figure.heading, title, headers, rows, 1)


def _by_size(what: Mixes, figure: MixSpec) -> Table:
    """Return how many goals each partition meets in each cache."""
    titles = [one.title for one in figure.divisions]
    rows = []
    for size in sorted(figure.sizes):
        cases = what.cases(figure, size)
        rows.append([words.size(_capacity(cases)), *(_met(cases, title) for title in titles)])
    return plain(figure.heading, "goals met by size", ["cache", *titles], rows, 1, "by size")


def _all_goals(cases: Cases, title: str) -> bool:
    """Return whether a partition meets every goal."""
    named = [case for division, case in cases if division.title == title]
    return bool(named) and all(one.total.goals_met == one.total.goals for one in named)


def _near_alone(what: Mixes, figure: MixSpec, size: float) -> Table:
    """Return the hit ratio of each application by that alone in the same cache."""
    cases = what.cases(figure, size)
    blocks = cases[0][1].capacity_blocks
    alone = []
    for line in _latency(what, figure)[1]:
        alone.append(next(one.hit_ratio for one in line.points if one.size_blocks == blocks))
    rows = []
    for division, case in cases:
        pairs = zip(case.tenants, alone, strict=True)
        rows.append([division.title, *(words.times(own.hit_ratio, one) for own, one in pairs)])
    headers = ["partition", *(tenant.name for tenant in cases[0][1].tenants)]
    title = f"hit ratios by those alone, {words.size(_capacity(cases))}"
    return plain(figure.heading, title, headers, rows, 1, _named(figure, size, "alone"))


def _titles(what: Mixes) -> list[str]:
    mixes = [figure for figure in what.figures if figure.shows == "mix"]
    titles = [one.title for figure in mixes for one in figure.divisions]
    return list(dict.fromkeys(titles))


def _capacity(cases: Cases) -> int:
    case = cases[0][1]
    return case.capacity_blocks * case.block_bytes


def _needed(what: Mixes, figure: MixSpec) -> str:
    plan = what.found[figure.name].plan
    if plan is None:
        return words.NOTHING
    blocks = plan.smallest_blocks
    return "no size" if blocks is None else words.size(blocks * plan.block_bytes)


def _met(cases: Cases, title: str) -> str:
    for division, case in cases:
        goals, met = case.total.goals, case.total.goals_met
        if division.title == title and goals and met is not None:
            return words.Number(f"{met} of {goals}", met / goals)
    return words.NOTHING


def _beside(what: Mixes, figure: MixSpec, size: float) -> list[Table]:
    """Return partitions with goals as quotients by those without: hits and run times."""
    named = {division.title: case for division, case in what.cases(figure, size)}
    rows = []
    for title, case in named.items():
        for base in BASES if title.startswith(OURS) else ():
            if base in named:
                rows.append([title, base, *_quotients(case, named[base])])
    if not rows:
        return []
    names = [tenant.name for tenant in what.cases(figure, size)[0][1].tenants]
    headers = ["partition", "by", "hit ratio", *(f"{name} hits" for name in names), "most gained"]
    headers += ["run time", *(f"{name} runs" for name in names)]
    headers += ["least run time", *(f"{name} waits" for name in names)]
    title = (
        f"quotients by partitions without goals, {words.size(_capacity(what.cases(figure, size)))}"
    )
    return [plain(figure.heading, title, headers, rows, 2, _named(figure, size, "beside"))]


def _quotients(case: Case, base: Case) -> list[str]:
    """Return hit ratios and run times by those of another partition, of all and of each tenant."""
    pairs = list(zip(case.tenants, base.tenants, strict=True))
    gains = _gains(case, base)
    cells = [words.times(case.total.hit_ratio, base.total.hit_ratio)]
    cells += [*map(_shown, gains), _picked(max, _known(gains))]
    cells.append(words.times(case.total.run_time_ns or 0, base.total.run_time_ns or 0))
    runs = [_quotient(own.run_time_ns or 0, other.run_time_ns or 0) for own, other in pairs]
    cells += [*map(_shown, runs), _picked(min, _known(runs))]
    waits = [(_waits(case, at), _waits(base, at)) for at in range(len(pairs))]
    return cells + [words.times(own, other) for own, other in waits]


def _waits(case: Case, tenant: int) -> int:
    """Return how many block accesses of a tenant waited for the backing device to read."""
    return timing.of(case).tenants[tenant].demand_misses


def _gains(case: Case, base: Case) -> list[float | None]:
    pairs = zip(case.tenants, base.tenants, strict=True)
    return [_quotient(own.hit_ratio, other.hit_ratio) for own, other in pairs]


def _quotient(own: float, base: float) -> float | None:
    """Return how many times a base a value is; nothing where the base is 0."""
    return own / base if base else None


def _known(quotients: Sequence[float | None]) -> list[float]:
    return [one for one in quotients if one is not None]


def _shown(quotient: float | None) -> str:
    return words.NOTHING if quotient is None else words.significant(quotient)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _picked(pick: Callable[[Sequence[float]], float], known: Sequence[float]) -> str:
    """Return one of some quotients, or their mean; nothing where none is known."""
    return words.significant(pick(known)) if known else words.NOTHING


def _named(figure: MixSpec, size: float, name: str = "") -> str:
    """Return the name of a table of a figure at one of its sizes."""
    own = f"{size:g}MiB" if len(figure.sizes) > 1 else ""
    return ", ".join(part for part in (own, name) if part)


def _table(what: Mixes, figure: MixSpec, size: float) -> Table:
    """Return a row per partition: hit ratios, goals, run times, movement of quotas."""
    cases = what.cases(figure, size)
    tenants = cases[0][1].tenants
    overall = [case.total.hit_ratio for _, case in cases]
    columns = [[words.ratio(value) for value in overall]]
    best = [best_index(overall, highest=True)]
    headers = ["partition", "overall"]
    for at, tenant in enumerate(tenants):
        own = [case.tenants[at] for _, case in cases]
        goal = tenant.goal_hit_ratio
        headers.append(f"{tenant.name}, goal {goal:g}" if goal is not None else tenant.name)
        columns.append([_hits(one) for one in own])
        best.append(best_index([one.hit_ratio for one in own], highest=True))
    for at, tenant in enumerate(tenants):
        times = [case.tenants[at].run_time_ns or 0 for _, case in cases]
        headers.append(f"{tenant.name} runs")
        columns.append([words.Number(f"{time / NS_PER_S:.0f}s", time) for time in times])
        best.append(best_index(times, highest=False))
    for at, tenant in enumerate(tenants):
        waits = [_waits(case, at) for _, case in cases]
        headers.append(f"{tenant.name} waits")
        columns.append([words.count(one) for one in waits])
        best.append(best_index(waits, highest=False))
    headers += ["moved each time", "turns"]
    columns.append([words.percent(case.total.moved_mean) for _, case in cases])
    columns.append([words.count(case.total.turns) for _, case in cases])
    rows = [[division.title] for division, _ in cases]
    for column in columns:
        for row, text in zip(rows, column, strict=True):
            row.append(text)
    best = [set(), *best, set(), set()]
    title = f"{words.size(_capacity(cases))}; the goals need {_needed(what, figure)}"
    return Table(figure.heading, title, headers, rows, best, name=_named(figure, size))


def _hits(tenant: CaseTenant) -> str:
    """Return a tenant's hit ratio, marked where its goal is met."""
    text = words.ratio(tenant.hit_ratio)
    mark = " ✓" if tenant.goal_met else ""
    return words.Number(text + mark, words.value_of(text))


def _planned(figure: MixSpec, plan: PlanAnswer) -> Table:
    """Return the smallest cache that meets all goals, by partition."""
    needs = [tenant.alone_blocks for tenant in plan.tenants if tenant.alone_blocks is not None]
    reached = len(needs) == len(plan.tenants)
    smallest = sum(needs) if reached else None
    sized = [("each tenant alone, added up", smallest)]
    # A quota that stays is a cache of the tenant's own.
    sized.append(("equal", max(needs) * len(needs) if reached else None))
    known = zip(figure.plan, plan.partitions, strict=False)
    sized += [(title, one.smallest_blocks) for title, one in known]
    rows = [
        [
            title,
            "no size" if blocks is None else words.size(blocks * plan.block_bytes),
            words.times(blocks, smallest) if blocks and smallest else words.NOTHING,
        ]
        for title, blocks in sized
    ]
    headers = ["partition", "smallest cache", "times the goals' need"]
    title = "The smallest cache that meets all goals"
    return plain(figure.heading, title, headers, rows, 1, "smallest")


def _bars(what: Mixes, figure: MixSpec, size: float) -> Figure:
    cases = what.cases(figure, size)
    rows = [
        {"partition": division.title, "application": name, "value": value}
        for division, case in cases
        for name, value in [
            *((tenant.name, tenant.hit_ratio) for tenant in case.tenants),
            ("overall", case.total.hit_ratio),
        ]
    ]
    capacity = words.size(_capacity(cases))
    title = f"{figure.title}, {capacity}"
    caption = "Hit ratio of each application and of all together under each partition."
    chart = grouped.bars(rows, "application", "partition", "hit ratio")
    return Figure(f"{figure.name}-{capacity}", title, caption, chart)


def _over_time(what: Mixes, figure: MixSpec) -> list[Figure]:
    result = what.found[figure.name].result
    if result is None:
        return []
    chosen = what.cases(figure, figure.sizes[-1])
    labels = {case.case: one.title for one, case in chosen if one.title in DRAWN}
    rows = series_rows(result, labels)
    return [
        Figure(
            f"{figure.name}-hits-over-time",
            f"{figure.title}: hit ratio over time",
            "Per tenant, in windows of equal numbers of requests; a better cache ends sooner.",
            charts.hits_over_time([row for row in rows if row["hit_ratio"] is not None]),
        ),
        Figure(
            f"{figure.name}-occupancy",
            f"{figure.title}: cache held over time",
            "At the end of each window; the dashed line is the quota.",
            charts.occupancy(rows),
        ),
    ]


def _alone(what: Mixes, figure: MixSpec) -> Table:
    """Return the hit ratio of each application alone by size."""
    block, lines = _latency(what, figure)
    sizes = [point.size_blocks for point in lines[0].points]
    headers = ["cache", *(line.tenant for line in lines)]
    rows = [
        [words.size(size * block) if size else "none"]
        + [words.ratio(line.points[at].hit_ratio) for line in lines]
        for at, size in enumerate(sizes)
    ]
    return plain(figure.heading, "hit ratio of each application alone", headers, rows, 1)


def _latency(what: Mixes, figure: MixSpec) -> tuple[int, tuple[LatencyCurve, ...]]:
    """Return the bytes of a block, and each application alone by size."""
    curves = what.found[figure.name].curves
    if curves is None or curves.answer.latency is None:
        raise RuntimeError("nothing was run")
    return curves.answer.block_bytes, curves.answer.latency


def _alone_chart(what: Mixes, figure: MixSpec) -> Figure:
    block, lines = _latency(what, figure)
    rows: Rows = [
        {
            "application": line.tenant,
            "size_bytes": point.size_blocks * block,
            "hit_ratio": point.hit_ratio,
        }
        for line in lines
        for point in line.points
        if point.size_blocks
    ]
    series = Series("application", distinct(rows, "application"), "application")
    sizes = sorted({row["size_bytes"] for row in rows})
    axis = marks.size_axis("cache", sizes[:: max(1, -(-len(sizes) // 9))])
    scale = alt.Scale(type="log", base=2, nice=False, domain=extent(sizes))
    tips = [Tip("application", "application"), Tip("cache", "size_bytes", "size")]
    x = alt.X("size_bytes:Q", axis=axis, scale=scale)
    y = alt.Y("hit_ratio:Q").scale(domain=[0, 1]).title("hit ratio")
    panel = marks.lines(
        rows, series, x, y, [*tips, charts.HIT_RATIO], height=PANEL_HEIGHT + 60, points=True
    )
    chart = Plot([panel], [series])
    caption = "Each application alone in the cache, read-ahead included."
    return Figure(figure.name, figure.title, caption, chart)


def _alone_over_time(what: Mixes, figure: MixSpec) -> Figure:
    rows: Rows = []
    for name, result in what.found[figure.name].alone.items():
        rows += series_rows(result, {result.answer.cases[0].case: name})
    chart = charts.hits_over_time([row for row in rows if row["hit_ratio"] is not None])
    caption = f"Each alone in {words.size(_alone_size(what, figure))}, by windows of requests."
    return Figure(figure.name, figure.title, caption, chart)


def _alone_size(what: Mixes, figure: MixSpec) -> float:
    return figure.sizes[0] * (1 << 20) / what.divide
