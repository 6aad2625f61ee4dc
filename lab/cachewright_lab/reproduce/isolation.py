"""Papers on tenants kept apart on channels of one drive: which tenants disturb others, and where.

Of `setup.toml`, `[stack]` is the machine, `[tenant]` what all tenants have, `[app.NAME]` what those
of one program have beside, `[noise]` how a noisy one behaves (a point may say otherwise),
`[[layout]]` what is compared, `[peak]` how the drive's own bandwidth is measured. A figure names
its tenants (`app`, `noisy`; `trace`: a description beside it, with `small` over it on small traces)
and its points: settings that one layout takes in turn (`small_set`: on small traces). Each replay
has a seed and is made once; a quiet one is the same with its noisy tenants silent.

Measures are those of Wang et al. (oc-cache), V-B. C_v is the sum over tenants of mean by standard
deviation of their throughput in windows; isolation compares two C_v. A deviation counts as at least
one request per window, because C_v has no bound otherwise. The harmonic mean stands beside the sum,
because one steady tenant does not raise it alone. U_space is what tenants require by what is
allocated to them: buckets, and shares of the pool as Algorithm 1 allocates them. Space is the same
by whole channels, so that the rest of the pool counts too. Bandwidth is what all are answered by
what the drive could do with their share of writes. Where the paper is silent: a striped layout
allocates the capacity of the cache, another layout the channels that hold a tenant's blocks.
Units: bytes, bytes per second, nanoseconds; MB/s are millions of bytes; means are over seeds, ± is
the standard deviation of a seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, harmonic_mean, stdev
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import _native, api, words
from cachewright._native import SpecError
from cachewright.answers import (
    Case,
    ChannelGroup,
    Channels,
    Flash,
    RegionWindow,
    TenantThroughput,
    TenantTiming,
    Throughput,
    Timing,
)
from cachewright.report import charts, marks
from cachewright.report.charts import series_rows
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import PANEL_HEIGHT, Panel, Plot, Rows, Series, data, distinct, extent
from cachewright.tables import best_index, timing
from cachewright.tables.timing import holders
from cachewright_lab.report import grouped
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce import specs
from cachewright_lab.reproduce.jobs import Job, each
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup, among, merged

if TYPE_CHECKING:
    from cachewright.results import Result
    from cachewright.types import PathLike, Progress

SHOWN = ("isolation", "sweep", "counts", "choices")
# The layout that others are measured by: every figure has it.
BASE = "flashblox"
# What the layout of buckets and a pool is called.
POOLED = "on-demand"
Toml = dict[str, Any]


@dataclass(frozen=True)
class Tenant:
    """A tenant of a figure: its program, and keys of its own beside the program's.

    `trace` is a description beside the figure, in place of a trace of the setup.
    """

    app: str
    noisy: bool
    keys: tuple[tuple[str, Any], ...]
    trace: Path | None = None


@dataclass(frozen=True)
class Layout:
    """One row of a figure: a layout with the division, and maybe the policy, that go with it."""

    title: str
    layout: str
    partition: str
    policy: str | None = None


@dataclass(frozen=True)
class Point:
    """One place of a sweep: settings over the stack, how many tenants (0: the figure's), noise."""

    title: str
    settings: tuple[tuple[str, Any], ...] = ()
    count: int = 0
    noise: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class IsolationSpec(FigureSpec):
    """One figure: tenants, layouts, points, how many seeds.

    `of` names the layout that takes the settings of points; the others are run once. Without it
    all layouts are run at every point.
    """

    tenants: tuple[Tenant, ...]
    layouts: tuple[Layout, ...]
    points: tuple[Point, ...]
    seeds: int
    of: str | None

    def rows(self) -> list[tuple[Point, Layout]]:
        """Return every pair that is run, in the order of tables."""
        found = []
        for place, point in enumerate(self.points):
            for layout in self.layouts:
                if self.of is None or layout.title == self.of:
                    found.append((point, layout))
                elif place == 0:
                    found.append((Point(layout.title), layout))
        return found

    def title_of(self, point: Point, layout: Layout) -> str:
        """Return what a row is called."""
        return layout.title if self.of is None or layout.title != self.of else point.title


@dataclass(frozen=True)
class Common:
    """What all figures share."""

    stack: Toml
    tenant: Toml
    apps: Toml
    noise: Toml
    peak: Toml
    layouts: tuple[Layout, ...]

    @staticmethod
    def of(setup: Setup) -> Common:
        """Return what a setup says. Errors: `SpecError` for a key that is missing."""
        path = setup.folder / SETUP

        layouts = []
        for one in specs.key(path, setup.document, "layout"):
            title, layout, partition = (
                str(specs.key(path, one, key)) for key in ("title", "layout", "partition")
            )
            layouts.append(Layout(title, layout, partition, one.get("policy")))
        stack, tenant, apps = setup.table("stack"), setup.table("tenant"), setup.table("app")
        return Common(
            stack, tenant, apps, setup.table("noise"), setup.table("peak"), tuple(layouts)
        )


def figures(setup: Setup, common: Common) -> list[IsolationSpec]:
    """Return the figures of a paper. Errors: `SpecError`.

    On given volumes, those alone whose tenants all have one of them.
    """
    return [
        _figure(path, document, setup, common)
        for path, document in specs.figures(setup.folder)
        if not specs.lacks(setup, document) and not (setup.traces and _described(document))
    ]


def _described(document: Toml) -> bool:
    """Return whether tenants of a figure have traces made of descriptions beside it."""
    return any("trace" in one for one in document.get("tenant", []))


def _figure(path: Path, document: Toml, setup: Setup, common: Common) -> IsolationSpec:
    fields = specs.head(path, document, SHOWN)
    about = document["figure"]
    known = {one.name for one in setup.workloads}
    tenants = tuple(_tenant(path, one, setup) for one in specs.key(path, document, "tenant"))
    for tenant in tenants:
        if tenant.trace is None:
            among(path, "app", tenant.app, known)
    titles = [one.title for one in common.layouts]
    wanted = about.get("layouts", titles)
    for title in [*wanted, *([about["of"]] if "of" in about else [])]:
        among(path, "layouts", title, titles)
    if BASE not in wanted:
        found = ", ".join(wanted)
        raise SpecError(f"{path}: `layouts`: found {found}, expected `{BASE}` among them")
    small = "" if setup.whole else "small_"
    points = [_point(path, one, small) for one in document.get("point", [])]
    seeds = int(about.get("seeds", 1))
    return IsolationSpec(
        **fields,
        tenants=tenants,
        layouts=tuple(one for one in common.layouts if one.title in wanted),
        points=tuple(_fewer(points, setup)) or (Point(""),),
        seeds=1 if setup.quick else seeds,
        of=about.get("of"),
    )


# Keys of a figure's tenant that are no keys of a stack's.
OF_FIGURES = ("app", "noisy", "trace", "small")


def _tenant(path: Path, table: Toml, setup: Setup) -> Tenant:
    own = {key: value for key, value in table.items() if key not in OF_FIGURES}
    own |= {} if setup.whole else table.get("small", {})
    trace = path.parent / str(table["trace"]) if "trace" in table else None
    app = str(specs.key(path, table, "app"))
    return Tenant(app, bool(table.get("noisy")), tuple(own.items()), trace)


def _point(path: Path, table: Toml, small: str) -> Point:
    def given(key: str) -> tuple[tuple[str, Any], ...]:
        name = small + key if small + key in table else key
        found: Toml = table.get(name, {})
        return tuple(found.items())

    title = str(specs.key(path, table, "title"))
    return Point(title, given("set"), int(table.get("tenants", 0)), given("noise"))


def _fewer(points: Sequence[Point], setup: Setup) -> Sequence[Point]:
    """Return the first and the last point of a quick run, else all."""
    return [points[0], points[-1]] if setup.quick and len(points) > 2 else points


@dataclass(frozen=True)
class Peak:
    """What the drive alone reads and writes, in bytes per second."""

    read: float
    write: float

    @staticmethod
    def of(read: Case, write: Case) -> Peak:
        """Return the peaks that two replays of one tenant found."""
        return Peak(*(Outcome(case).windows[0].bytes_per_s_mean for case in (read, write)))

    def at(self, write_share: float) -> float:
        """Return what the drive could do with a share of writes."""
        return self.read * (1 - write_share) + self.write * write_share


@dataclass(frozen=True)
class Outcome:
    """One replay."""

    case: Case

    @property
    def timing(self) -> Timing:
        """What the replay measured of times."""
        return timing.of(self.case)

    @property
    def throughput_windows(self) -> Throughput:
        """Throughput in windows, which every stack of the study asks for."""
        if self.timing.throughput is None:
            raise ValueError("found no windows, expected a stack with `throughput_window`")
        return self.timing.throughput

    @property
    def windows(self) -> tuple[TenantThroughput, ...]:
        """Each tenant's throughput."""
        return self.throughput_windows.tenants

    @property
    def responses(self) -> tuple[TenantTiming, ...]:
        """Each tenant's responses."""
        return self.timing.tenants

    @property
    def steadiness(self) -> float:
        """C_v: how steady all tenants' throughput is together; an idle tenant adds 0."""
        return sum(self._steady)

    @property
    def harmonic(self) -> float:
        """The harmonic mean over tenants of mean by deviation; 0 if one is answered nothing."""
        return harmonic_mean(self._steady)

    @property
    def _steady(self) -> list[float]:
        return [one.bytes_mean_over_sd or 0.0 for one in self.windows]

    def isolation(self, base: Outcome) -> float:
        """Return C_v by that of another layout."""
        return self.steadiness / base.steadiness if base.steadiness else 0.0

    @property
    def throughput(self) -> float:
        """All tenants' bytes per second."""
        return sum(one.bytes_per_s_mean for one in self.windows)

    @property
    def write_share(self) -> float:
        """R_w: the share of writes of all block accesses."""
        total = self.case.total
        return total.write_accesses / max(total.accesses, 1)

    def bandwidth(self, peak: Peak) -> float:
        """Return the share of the drive's bandwidth that tenants are answered with."""
        return self.throughput / peak.at(self.write_share)

    @property
    def required(self) -> int | None:
        """What tenants require, as the division reports it; nothing where it does not."""
        blocks = [one.required_blocks for one in self.case.tenants]
        known = [one for one in blocks if one is not None]
        return sum(known) * self.case.block_bytes if len(known) == len(blocks) else None

    @property
    def allocated(self) -> int:
        """What the layout keeps for tenants."""
        if self._striped:
            return self.case.capacity_blocks * self.case.block_bytes
        return sum(one.capacity_bytes for one in self._had)

    def space(self, required: int) -> float:
        """Return the share of what is allocated that tenants require."""
        return required / self.allocated

    @property
    def granted(self) -> int:
        """What the layout allocates to tenants: their buckets, and their shares of a pool.

        A share is what a tenant requires beyond its bucket. A pool of one tenant is its bucket.
        """
        if self._striped or self._channels.layout != POOLED or self.required is None:
            return self.allocated
        found = 0
        for one in self.case.tenants:
            own = [group.capacity_bytes for group in self._had if group.tenants == (one.name,)]
            required = (one.required_blocks or 0) * self.case.block_bytes
            found += max(sum(own), required)
        return found

    def space_granted(self, required: int) -> float:
        """Return U_space: the share of what is allocated to tenants that they require."""
        return required / self.granted

    @property
    def erases(self) -> int:
        """Blocks of the cache device erased."""
        return self._flash.erases

    @property
    def moved_pages(self) -> int:
        """Valid pages that cleaning moved on the cache device."""
        return self._flash.moved_pages

    @property
    def _flash(self) -> Flash:
        for device in self.timing.devices:
            if device.flash is not None:
                return device.flash
        raise ValueError("found no flash, expected a drive with flash")

    def steady(self, place: int) -> float:
        """Return the mean of a tenant's throughput by its deviation; 0 if it is idle."""
        return self.windows[place].bytes_mean_over_sd or 0.0

    @property
    def channels(self) -> int:
        """Groups of channels that tenants have; those lent to the pool are not counted."""
        return len(self._had)

    @property
    def groups(self) -> tuple[ChannelGroup, ...]:
        """All groups of channels."""
        return self._channels.groups

    @property
    def _channels(self) -> Channels:
        if self.timing.channels is None:
            raise ValueError("found no channels, expected a drive with flash")
        return self.timing.channels

    @property
    def _striped(self) -> bool:
        return self._channels.layout == "striped"

    @property
    def _had(self) -> list[ChannelGroup]:
        return [one for one in self.groups if one.tenants and not one.lent]

    @property
    def swaps(self) -> int | None:
        """Pairs of blocks that changed places, hot for cold; nothing where channels are common."""
        if self._striped:
            return None
        done = self.timing.migrations
        return sum(one.swaps for one in done.tenants) if done else 0

    @property
    def rooms(self) -> tuple[RegionWindow, ...]:
        """Where tenants' blocks lay at the end of each window; empty where channels are common."""
        return self.timing.rooms.windows if self.timing.rooms else ()

    @property
    def hit_ratio(self) -> float:
        """Of all tenants' block accesses."""
        return self.case.total.hit_ratio


def mean(values: Sequence[float]) -> float:
    """Return the mean; 0 without values."""
    return fmean(values) if values else 0.0


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample; 0 of fewer than two."""
    return stdev(values) if len(values) > 1 else 0.0


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
        trace = told.trace or next(one.path for one in self.setup.workloads if one.name == told.app)
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
    return Isolation(setup, common, figures(setup, common))


MB = 1e6
Row = tuple[Point, Layout]


@dataclass(frozen=True)
class Values:
    """The measures of a row, a value per seed."""

    isolation: list[float]
    steadiness: list[float]
    harmonic: list[float]
    space: list[float]
    granted: list[float]
    bandwidth: list[float]
    throughput_mb: list[float]
    hit_ratio: list[float]
    channels: list[float]


@dataclass(frozen=True)
class Measure:
    """One of them, and its title."""

    title: str
    of: Callable[[Values], list[float]]

    def mean(self, values: Values) -> float:
        """Return the mean over seeds."""
        return mean(self.of(values))


ISOLATION = Measure("isolation", lambda values: values.isolation)
STEADINESS = Measure("C_v", lambda values: values.steadiness)
HARMONIC = Measure("harmonic mean", lambda values: values.harmonic)
SPACE = Measure("space", lambda values: values.space)
GRANTED = Measure("U_space", lambda values: values.granted)
BANDWIDTH = Measure("bandwidth", lambda values: values.bandwidth)
THROUGHPUT = Measure("MB/s", lambda values: values.throughput_mb)


def values_of(what: Isolation, figure: IsolationSpec, row: Row) -> Values:
    """Return the measures of a row."""
    if what.peak is None:
        raise RuntimeError("nothing was run")
    point, layout = row
    outcomes, peak = what.found(figure, point, layout), what.peak
    pairs = list(zip(outcomes, what.base(figure, point), strict=True))
    return Values(
        isolation=[one.isolation(base) for one, base in pairs],
        steadiness=[one.steadiness for one in outcomes],
        harmonic=[one.harmonic for one in outcomes],
        space=[one.space(_required(one, base)) for one, base in pairs],
        granted=[one.space_granted(_required(one, base)) for one, base in pairs],
        bandwidth=[one.bandwidth(peak) for one in outcomes],
        throughput_mb=[one.throughput / MB for one in outcomes],
        hit_ratio=[one.hit_ratio for one in outcomes],
        channels=[float(one.channels) for one in outcomes],
    )


def _required(one: Outcome, base: Outcome) -> int:
    """Return what tenants require: where all share one pool, as the base layout's division says."""
    own = one.required or base.required
    return own if own is not None else one.allocated


def throughput(rows: Rows) -> Plot:
    """Draw each tenant's throughput over time, a panel per layout and a line per tenant.

    Rows have `layout`, `tenant`, `seconds`, `mb`.
    """
    series = Series("tenant", distinct(rows, "tenant"), "tenant")
    x = charts.seconds(rows, "time after the warm-up (s)")
    top = alt.Scale(domain=[0, max(row["mb"] for row in rows) or 1.0], nice=True)
    y = alt.Y("mb:Q", scale=top).title("throughput (MB/s)")
    tips = [Tip("tenant", "tenant"), Tip("time", "seconds", "seconds")]
    tips.append(Tip("throughput (MB/s)", "mb", "number"))
    panels = [
        marks.lines(
            [row for row in rows if row["layout"] == layout], series, x, y, tips,
            title=layout, height=PANEL_HEIGHT - 40,
        )
        for layout in distinct(rows, "layout")
    ]  # fmt: skip
    return Plot(panels, [series])


def measures(rows: Rows, across: str) -> Plot:
    """Draw measures against a sweep, a panel per measure, a line per layout.

    Rows have `measure`, `row`, `layout`, `value`.
    """
    titles = distinct(rows, "measure")
    series = Series("layout", distinct(rows, "layout"), "layout", shaped=True)
    x = alt.X("row:O").sort(distinct(rows, "row")).title(across).axis(labelAngle=0)

    def drawn(title: str) -> Panel:
        own = [row for row in rows if row["measure"] == title]
        y = alt.Y("value:Q").title(title).scale(zero=True)
        tips = [Tip("layout", "layout"), Tip(across, "row"), Tip(title, "value", "ratio")]
        return marks.lines(own, series, x, y, tips, height=PANEL_HEIGHT, points=True)

    return Plot([drawn(title) for title in titles], [series], columns=min(len(titles), 3))


def regions(rows: Rows) -> Plot:
    """Draw what each tenant holds over time, a panel per tenant and an area per region.

    Rows have `tenant`, `region`, `seconds`, `size_bytes`.
    """
    series = Series("region", distinct(rows, "region"), "held in", "box")
    tenants = distinct(rows, "tenant")
    x = charts.seconds(rows)
    tips = [Tip("held in", "region"), Tip("time", "seconds", "seconds")]
    tips.append(Tip("held", "size_bytes", "size"))
    held: dict[tuple[str, float], float] = {}
    for row in rows:
        at = (row["tenant"], row["seconds"])
        held[at] = held.get(at, 0.0) + row["size_bytes"]
    axis = marks.size_axis("cache held", marks.size_ticks(max(held.values())))
    scale = alt.Scale(domain=extent([0.0, max(held.values())]), nice=False)

    def drawn(title: str) -> Panel:
        own = [row for row in rows if row["tenant"] == title]
        y = alt.Y("size_bytes:Q", axis=axis, scale=scale).stack("zero")
        base = alt.Chart(data(own)).encode(x, y, series.colour())
        near = marks.tipped(base.mark_point(filled=True, size=marks.POINT_SIZE, opacity=1), tips)
        return Panel(
            [base.mark_area(opacity=0.75)], near, PANEL_HEIGHT - 70, title, series.field,
            quiet=True, says=marks.reading(own, tips),
        )  # fmt: skip

    columns = 2 if len(tenants) > 1 else 1
    return Plot([drawn(title) for title in tenants], [series], columns=columns)


# Where blocks lie: the name of the region, and the blocks of each tenant there.
REGIONS: tuple[tuple[str, Callable[[RegionWindow], Sequence[int]]], ...] = (
    ("bucket", lambda window: window.own_blocks),
    ("pool", lambda window: window.common_blocks),
)
NS_PER_S = 1e9
# The layouts that others are compared with, the paper's and ours, and the one with common channels.
OWN, SHARED = "oc-cache", "shared-cache"
COMPARED = (OWN, "oc-cache-x")
BASES = (SHARED, "flashblox")
BESIDE = (ISOLATION, HARMONIC, GRANTED, SPACE, BANDWIDTH)
QUANTILES: tuple[tuple[str, Callable[[TenantTiming], float]], ...] = (
    ("p50", lambda one: one.p50_ns),
    ("p99", lambda one: one.p99_ns),
    ("p99.9", lambda one: one.p999_ns),
)
# Of which the best row is marked, and what changes with a choice.
MARKED = (ISOLATION, STEADINESS, HARMONIC, GRANTED, SPACE, BANDWIDTH)
CHANGED = (STEADINESS, HARMONIC, THROUGHPUT, GRANTED, SPACE)


def notes(what: Isolation) -> list[str]:
    """Return what to know before the numbers."""
    found = [
        "Isolation is C_v by that of flashblox on the same seed. C_v is the sum over all tenants, "
        "noisy ones too, of the mean of throughput by its standard deviation. Throughput is that "
        "of windows after the warm-up, a deviation at least one request per window. The harmonic "
        "mean is that of the same quotients. U_space is what the hulls say that tenants require, "
        "by what is allocated to them: buckets and shares of the pool, or the cache's capacity "
        "where all share all channels. Space is the same by whole channels. Channels lent to the "
        "pool do not count."
    ]
    if what.peak is not None:
        read, write = what.peak.read / MB, what.peak.write / MB
        found.append(
            f"The drive alone reads {read:.0f} MB/s and writes {write:.0f} MB/s in steady state, "
            "blocks of 4 KiB at random."
        )
    return found


def shared(what: Isolation) -> list[Table]:
    """Return no table: every figure has its own."""
    return []


def shown(what: Isolation, figure: IsolationSpec) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    if figure.shows == "choices":
        return [_choices(what, figure)]
    found: list[Table | Figure] = [_measures(what, figure)]
    if figure.shows != "isolation":
        found += _swept_beside(what, figure) if figure.of is not None else []
        found.append(_swept(what, figure))
        return found
    found += [
        _bars(what, figure),
        _beside(what, figure),
        _steadier(what, figure),
        _cleaning(what, figure),
        _requirements(what, figure),
        _tenants(what, figure),
        _throughput(what, figure),
        _occupancy(what, figure),
        *_rooms(what, figure),
        _map(what, figure),
    ]
    return found


def _beside(what: Isolation, figure: IsolationSpec) -> Table:
    """Return the measures of the paper's layout and ours as quotients by every other layout."""
    rows = {layout.title: (point, layout) for point, layout in figure.rows()}
    known = {title: values_of(what, figure, row) for title, row in rows.items()}
    cells = []
    for own in (title for title in COMPARED if title in rows):
        texts = [own]
        for measure in BESIDE:
            for other in BASES:
                base = measure.mean(known[other]) if other in known else 0.0
                texts.append(words.times(measure.mean(known[own]), base))
        cells.append(texts)
    headers = ["", *(f"{one.title} by {other}" for one in BESIDE for other in BASES)]
    return plain(figure.heading, "beside the other layouts: quotients", headers, cells, 1, "beside")


def _swept_beside(what: Isolation, figure: IsolationSpec) -> list[Table]:
    """Return the measures at each point of a sweep as quotients by layouts that are run once."""
    known = {figure.title_of(*row): values_of(what, figure, row) for row in figure.rows()}
    bases = [one for one in BASES if one in known]
    cells = []
    for point in figure.points:
        texts = [point.title]
        for measure in BESIDE:
            own = measure.mean(known[point.title])
            texts += [words.times(own, measure.mean(known[base])) for base in bases]
        cells.append(texts)
    headers = ["", *(f"{one.title} by {base}" for one in BESIDE for base in bases)]
    title = "beside the other layouts: quotients"
    return [plain(figure.heading, title, headers, cells, 1, "beside")] if bases else []


def _steadier(what: Isolation, figure: IsolationSpec) -> Table:
    """Return how much steadier each tenant is than with all channels shared.

    The last column sets what shared channels cost it beside what they cost the tenant that misses
    most.
    """
    rows = {layout.title: (point, layout) for point, layout in figure.rows()}
    found = {title: what.found(figure, *row) for title, row in rows.items()}
    others = [title for title in (*COMPARED, BASE) if title in found]
    places = range(len(figure.tenants))

    def quotient(title: str, place: int) -> float:
        base = mean([one.steady(place) for one in found[SHARED]])
        own = mean([one.steady(place) for one in found[title]])
        return own / base if base else 0.0

    first = found[BASE][0].case.tenants
    most = max(places, key=lambda place: first[place].required_miss_ratio or 0.0)
    cells = []
    for place in places if SHARED in found else ():
        texts = [first[place].name]
        texts += [words.significant(quotient(title, place)) for title in others]
        texts.append(words.times(quotient(BASE, place), quotient(BASE, most)))
        cells.append(texts)
    headers = ["tenant", *(f"{title} by {SHARED}" for title in others)]
    headers.append(f"{BASE}'s, by that of who misses most")
    title = f"mean by deviation of throughput by that under {SHARED}: quotients"
    return plain(figure.heading, title, headers, cells, 1, "steadier")


def _cleaning(what: Isolation, figure: IsolationSpec) -> Table:
    """Return what cleaning does on the cache device, warm-up included."""
    cells = []
    for point, layout in figure.rows():
        outcomes = what.found(figure, point, layout)
        erased = mean([float(one.erases) for one in outcomes])
        moved = mean([float(one.moved_pages) for one in outcomes])
        cells.append([layout.title, words.count(erased), words.count(moved)])
    headers = ["layout", "blocks erased", "pages moved"]
    return plain(figure.heading, "cleaning, warm-up included", headers, cells, 1, "cleaning")


def _measures(what: Isolation, figure: IsolationSpec) -> Table:
    headers = ["", *(one.title for one in MARKED)]
    headers += ["MB/s", "hit ratio", "channels", "swaps"]
    rows, compared = [], []
    for point, layout in figure.rows():
        values = values_of(what, figure, (point, layout))
        texts = [_spread(one.of(values)) for one in (ISOLATION, STEADINESS, HARMONIC)]
        texts += [words.percent(one.mean(values)) for one in (GRANTED, SPACE, BANDWIDTH)]
        texts += [words.fixed(THROUGHPUT.mean(values), 1), words.ratio(mean(values.hit_ratio))]
        texts.append(words.fixed(mean(values.channels), 0))
        swaps = [one.swaps for one in what.found(figure, point, layout)]
        known = [float(one) for one in swaps if one is not None]
        texts.append(words.count(mean(known)) if known else words.NOTHING)
        title = figure.title_of(point, layout)
        if figure.of is None and point.title:
            title = f"{point.title}, {layout.title}"
        rows.append([title, *texts])
        compared.append([one.mean(values) for one in MARKED])
    best = [
        set(),
        *(best_index(list(column), highest=True) for column in zip(*compared, strict=True)),
    ]
    single = len(figure.points) == 1
    marked = [*best, set(), set(), set(), set()] if single else [set() for _ in headers]
    seeds = words.counted(figure.seeds, "seed")
    return Table(figure.heading, f"means of {seeds}", headers, rows, marked)


def _bars(what: Isolation, figure: IsolationSpec) -> Figure:
    """Return the three measures of each layout as the paper draws them."""
    rows = []
    for point, layout in figure.rows():
        values = values_of(what, figure, (point, layout))
        for measure in BESIDE:
            row = {"measure": measure.title, "layout": layout.title}
            rows.append({**row, "value": measure.mean(values)})
    chart = grouped.bars(rows, "measure", "layout", "by that of flashblox; shares")
    caption = "Isolation is beside flashblox; space and bandwidth are shares that are used."
    return Figure(f"{figure.name}-measures", f"{figure.title}: measures", caption, chart)


def _spread(values: Sequence[float]) -> str:
    spread = f" ± {deviation(values):.2f}" if len(values) > 1 else ""
    return words.Number(f"{mean(values):.2f}{spread}", mean(values))


def _tenants(what: Isolation, figure: IsolationSpec) -> Table:
    """Return what each tenant gets under each layout, with the noisy ones and without."""
    headers = ["tenant", "layout", "MB/s", "mean by deviation", "deviation by mean"]
    headers += ["hit ratio"]
    headers += [name for name, _ in QUANTILES]
    headers += ["p99, noisy ones silent", "p99 alone", "p99 by that with silent ones"]
    alone = _alone(what, figure)
    rows = []
    for place, told in enumerate(figure.tenants):
        loud = told.noisy
        for point, layout in figure.rows():
            outcomes = what.found(figure, point, layout)
            quiet = what.found(figure, point, layout, quiet=True)
            name = outcomes[0].responses[place].name + (" (noisy)" if loud else "")
            texts = [name, layout.title]
            answered = _windows(outcomes, place, lambda one: one.bytes_per_s_mean)
            texts.append(words.fixed(answered / MB, 2))
            steady = _windows(outcomes, place, lambda one: one.bytes_mean_over_sd)
            texts.append(words.fixed(steady, 2))
            varies = _windows(outcomes, place, lambda one: one.bytes_sd_over_mean)
            texts.append(words.significant(varies))
            hits = [one.case.tenants[place].hit_ratio for one in outcomes]
            texts.append(words.ratio(mean(hits)))
            texts += [words.duration(_responses(outcomes, place, of)) for _, of in QUANTILES]
            texts.append(words.NOTHING if loud else words.duration(_p99(quiet, place)))
            texts.append(words.duration(alone[place]) if alone[place] else words.NOTHING)
            texts.append(words.NOTHING if loud else _disturbed(outcomes, quiet, place))
            rows.append(texts)
    return plain(figure.heading, "tenants", headers, rows, 2, "tenants")


def _disturbed(loud: Sequence[Outcome], quiet: Sequence[Outcome], place: int) -> str:
    """Return how many times longer a tenant's p99 is with the noisy ones (first seed)."""
    with_noise, without = (one[0].responses[place].p99_ns for one in (loud, quiet))
    return words.times(with_noise, without or 0.0)


def _requirements(what: Isolation, figure: IsolationSpec) -> Table:
    """Return what the hulls say that each tenant requires, of the first seed."""
    rows = []
    for point, layout in figure.rows():
        outcome = what.found(figure, point, layout)[0]
        if layout.title != OWN or outcome.required is None:
            continue
        group = outcome.groups[0]
        channel = group.capacity_bytes // len(group.channels)
        for one in outcome.case.tenants:
            size = (one.required_blocks or 0) * outcome.case.block_bytes
            rows.append(
                [
                    one.name,
                    words.size(size),
                    words.fixed(size / channel, 2),
                    words.fixed(one.required_miss_ratio, 2),
                ]
            )
    headers = ["tenant", "S_r", "S_r by a channel", "R_e"]
    return plain(figure.heading, "what tenants require", headers, rows, 1, "requirements")


def _responses(
    outcomes: Sequence[Outcome], place: int, of: Callable[[TenantTiming], float]
) -> float:
    """Return the mean over seeds of a number of a tenant's responses."""
    return mean([float(of(one.responses[place])) for one in outcomes])


def _p99(outcomes: Sequence[Outcome], place: int) -> float:
    return _responses(outcomes, place, lambda one: one.p99_ns)


def _windows(
    outcomes: Sequence[Outcome], place: int, of: Callable[[TenantThroughput], float | None]
) -> float:
    """Return the mean over seeds of a number of a tenant's throughput; 0 where it has none."""
    return mean([float(of(one.windows[place]) or 0.0) for one in outcomes])


def _alone(what: Isolation, figure: IsolationSpec) -> list[float]:
    """Return each tenant's p99 with the whole cache to itself; 0 where it sent nothing."""
    point, layout = figure.rows()[0]
    first = what.found(figure, point, layout, quiet=True)[0]
    return [float(one.alone_p99_ns or 0.0) for one in first.responses]


def _throughput(what: Isolation, figure: IsolationSpec) -> Figure:
    warmup_ns = _native.parse_duration(what.common.stack["replay"]["warmup"])
    rows = []
    for point, layout in figure.rows():
        found = what.found(figure, point, layout)[0].throughput_windows
        width_s, first = found.window_ns / NS_PER_S, -(-warmup_ns // found.window_ns)
        for one in found.tenants:
            last = first + one.windows
            for at, (_, count) in enumerate(one.series[first:last]):
                seconds, mb = (at + 1) * width_s, count / width_s / MB
                row = {"layout": layout.title, "tenant": one.name}
                rows.append({**row, "seconds": round(seconds, 6), "mb": mb})
    caption = "Bytes answered per window of the first seed, after the warm-up."
    chart = throughput(rows)
    title = f"{figure.title}: throughput over time"
    return Figure(f"{figure.name}-throughput", title, caption, chart)


def _occupancy(what: Isolation, figure: IsolationSpec) -> Figure:
    rows: list[dict[str, Any]] = []
    for point, layout in figure.rows():
        result = what.results[Asked(figure.name, point, layout, 1, quiet=False)]
        rows += series_rows(result, {0: layout.title})
    caption = "At the end of each window of the first seed, the warm-up too; dashed is the quota."
    title = f"{figure.title}: cache held over time"
    return Figure(f"{figure.name}-occupancy", title, caption, charts.occupancy(rows))


def _rooms(what: Isolation, figure: IsolationSpec) -> list[Figure]:
    """Return how much of what each tenant holds lies on channels of its own and in the pool."""
    rows = []
    for point, layout in figure.rows():
        outcome = what.found(figure, point, layout)[0]
        block = outcome.case.block_bytes
        names = [one.name for one in outcome.responses]
        for window in outcome.rooms if layout.title == OWN else []:
            for region, held in REGIONS:
                for name, blocks in zip(names, held(window), strict=True):
                    row = {"tenant": name, "region": region, "size_bytes": blocks * block}
                    rows.append({**row, "seconds": window.time_ns / NS_PER_S})
    if not rows:
        return []
    caption = f"At the end of each window under {OWN}, of the first seed, the warm-up too."
    title = f"{figure.title}: buckets and pool over time"
    return [Figure(f"{figure.name}-rooms", title, caption, regions(rows))]


def _map(what: Isolation, figure: IsolationSpec) -> Table:
    """Return which channels hold whose blocks and what was moved over them, of the first seed."""
    headers = ["layout", "channels", "tenants", "read", "written", "MB/s"]
    rows = []
    for point, layout in figure.rows():
        outcome = what.found(figure, point, layout)[0]
        for held in dict.fromkeys(holders(one) for one in outcome.groups):
            own = [one for one in outcome.groups if holders(one) == held]
            rows.append(
                [
                    layout.title,
                    _channels([number for one in own for number in one.channels]),
                    held,
                    words.size(sum(one.read_bytes for one in own)),
                    words.size(sum(one.write_bytes for one in own)),
                    words.fixed(sum(one.bytes_per_s for one in own) / MB, 1),
                ]
            )
    return plain(figure.heading, "channels, warm-up included", headers, rows, 3, "channels")


def _choices(what: Isolation, figure: IsolationSpec) -> Table:
    """Return what the paper's layout is beside the others under each choice."""
    beside = [one for one in figure.layouts if one.title != OWN]
    own = next(one for one in figure.layouts if one.title == OWN)
    headers = ["choice"]
    for measure in CHANGED:
        headers += [f"{measure.title} by {one.title}'s" for one in beside]
    small = figure.tenants[0].app
    headers += [f"p99 of {small}, {one.title}" for one in figure.layouts]
    rows = []
    for point in figure.points:
        values = {one.title: values_of(what, figure, (point, one)) for one in figure.layouts}
        row = [point.title]
        for measure in CHANGED:
            for one in beside:
                top, base = measure.mean(values[own.title]), measure.mean(values[one.title])
                row.append(words.times(top, base))
        waits = [_p99(what.found(figure, point, one), 0) for one in figure.layouts]
        rows.append([*row, *(words.duration(wait) for wait in waits)])
    told = f"{OWN} by the others; means of {words.counted(figure.seeds, 'seed')}"
    return plain(figure.heading, told, headers, rows, 1)


def _channels(numbers: Sequence[int]) -> str:
    """Return neighbouring numbers as ranges."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{one[0]}-{one[-1]}" if len(one) > 1 else f"{one[0]}" for one in parts)


def _swept(what: Isolation, figure: IsolationSpec) -> Figure:
    rows = []
    for point, layout in figure.rows():
        values = values_of(what, figure, (point, layout))
        for measure in (ISOLATION, SPACE, BANDWIDTH):
            title = point.title if figure.of is None else figure.title_of(point, layout)
            row = {"measure": measure.title, "row": title, "layout": layout.title}
            rows.append({**row, "value": measure.mean(values)})
    caption = "Isolation is beside flashblox; the others are shares."
    chart = measures(rows, figure.title)
    return Figure(figure.name, figure.title, caption, chart)
