"""Papers on write amplification: what it costs in time, on one drive that is replayed.

A trace is replayed twice: as fast as the drive goes, which gives its bandwidth, then at its own
times, of which the last part gives response times. Synthetic writes of one size give what
predictions cost. Units: bytes, nanoseconds; MB/s are millions of bytes; flash writes per host write
are a ratio.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import _native, api, words
from cachewright.answers import Case, ResponseTimes, Timing
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series
from cachewright.tables import timing
from cachewright.tables.measures import GIVEN
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce import specs
from cachewright_lab.reproduce.jobs import Job, each
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup, Workload, merged
from cachewright_lab.reproduce.volumes import reach_bytes, span_ns

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress

NS_PER_S = 1e9
PARTS = 10
"""Equal parts of the bytes of a replay; the traces of the papers' kind write a drive in each."""


@dataclass(frozen=True)
class Phase:
    """The only tenant of one case of a replay's result."""

    case: Case

    @property
    def total(self) -> ResponseTimes:
        """Response times and throughput of all requests that count."""
        return self._timing.total

    @property
    def amplification(self) -> float:
        """Flash writes per host write, of the whole replay."""
        drive = self._timing.drive
        if drive is None:
            raise ValueError("found no drive, expected one that is the whole machine")
        return drive.write_amplification

    @property
    def _timing(self) -> Timing:
        return timing.of(self.case)

    def bandwidths(self) -> list[float]:
        """Return the bytes per second of each of ten equal parts of the bytes answered."""
        series = self._timing.series
        width_ns, ends, done = float(series.width_ns), [0.0], 0
        answered = [size for _, size, _ in series.tenants[0]]
        part = sum(answered) / PARTS
        for place, found in enumerate(answered):
            while len(ends) <= PARTS and found and done + found >= part * len(ends):
                ends.append(width_ns * (place + (part * len(ends) - done) / found))
            done += found
        if not part:
            return [0.0] * PARTS
        return [part * NS_PER_S / max(end - begin, 1.0) for begin, end in pairwise(ends)]

    def later_mean_ns(self) -> float:
        """Return the mean response of the later half of the replay's time."""
        windows = self._timing.series.tenants[0]
        later = windows[len(windows) // 2 :]
        requests = sum(count for count, _, _ in later)
        return sum(count * mean_ns for count, _, mean_ns in later) / max(requests, 1)


STUDY, TABLE = "drive-replays", "replays"
SHOWN = ("phases", "predictions")
# Keys of a scheme that are none of its drive: its name, whether it is of rules, what the title of
# its base is, where writes go, and what the controller does for each logical page of a command.
OWN = ("title", "rule", "beside", "span", "at_command", "logical_page")
LOADED, TIMED = "as fast as it can", "at its own times"
# A trace of writes of one size at random.
WRITES = """[synth]
seed = 1
[[tenant]]
name = "writes"
count = {count}
arrival = {{ kind = "constant", rate = "1000000/s" }}
read_share = 0.0
size = "{size}"
pattern = {{ kind = "uniform", span = "{span}", align = "{size}" }}
"""


@dataclass(frozen=True)
class Scheme:
    """A drive: what separates its pages, and what else differs."""

    title: str
    rule: bool
    """Whether it is an earlier scheme, of rules."""

    device: tuple[tuple[str, Any], ...] = field(hash=False)
    """Keys of `[device.ssd]`; a scheme among them may be a table."""

    beside: str | None = None
    """Title of what its times are shown beside, unless the figure's base."""

    span: str | None = None
    """Where random writes go, unless the setup says so."""

    at_command: str | None = None
    """Work of the controller on each logical page of a write command, before its next command."""

    logical_page: str | None = None
    """Bytes of those pages, unless a page of flash."""


@dataclass(frozen=True)
class ReplaysSpec(FigureSpec):
    """One figure: traces under schemes, or writes of some sizes and depths under schemes."""

    schemes: tuple[Scheme, ...]
    base: str
    workloads: tuple[str, ...]
    sizes: tuple[str, ...]
    depths: tuple[int, ...]


@dataclass(frozen=True)
class Asked:
    """One replay: of a workload in one of two ways, or of writes of a size at a queue depth."""

    scheme: Scheme
    workload: str = ""
    timed: bool = False
    size: str = ""
    depth: int = 0

    @property
    def name(self) -> str:
        """A name for a folder."""
        what = f"{self.workload}-{TIMED if self.timed else LOADED}"
        if not self.workload:
            what = f"{self.size}-{self.depth}"
        return f"{what}-{self.scheme.title}".replace(" ", "-").replace(",", "")


@dataclass
class DriveReplays:
    """The figures of a paper with what was found for them."""

    setup: Setup
    figures: Sequence[ReplaysSpec]
    workloads: Sequence[Workload]
    about: Mapping[str, Any]
    found: dict[Asked, Phase] = field(default_factory=dict)

    def count(self) -> int:
        """Return how many replays were made."""
        return len(self.found)

    def phase(self, scheme: Scheme, workload: str, *, timed: bool) -> Phase:
        """Return what a scheme made of a workload, at its own times or as fast as it can."""
        return self.found[Asked(scheme, workload, timed)]

    def writes(self, scheme: Scheme, size: str, depth: int) -> Phase:
        """Return what a scheme made of writes of a size, so many under way."""
        return self.found[Asked(scheme, size=size, depth=depth)]

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run every replay of the figures once; with `out` results are kept in folders below."""
        asked = list(dict.fromkeys(one for figure in self.figures for one in _asked(figure)))
        with TemporaryDirectory() as nowhere:
            folder = Path(nowhere if out is None else out)
            folder.mkdir(parents=True, exist_ok=True)
            jobs: list[Job[Phase]] = [partial(self._run, one, folder) for one in asked]
            phases = each("replaying", jobs, threads, progress)
        self.found = dict(zip(asked, phases, strict=True))

    def _run(self, asked: Asked, folder: Path, progress: Progress) -> Phase:
        stack = self._trace(asked) if asked.workload else self._writes(asked, folder)
        result = api.run(
            {"name": asked.name, "seed": 1, **stack},
            out=folder / asked.name,
            threads=1,
            progress=progress,
        )
        return Phase(result.answer.cases[0])

    def _trace(self, asked: Asked) -> dict[str, Any]:
        """Return the stack of a workload's replay."""
        workload = next(one for one in self.workloads if one.name == asked.workload)
        tenant: dict[str, Any] = {
            "name": workload.name,
            "trace": os.fspath(workload.path.resolve()),
        }
        replay: dict[str, Any] = {"loop": "closed", "queue_depth": self.about["queue_depth"]}
        if asked.timed:
            scale = float(self.about["time_scale"])
            counted_from = span_ns(workload.path) * scale * (1 - float(self.about["last"]))
            replay = {"loop": "open", "warmup": f"{int(counted_from)}ns"}
            tenant["time_scale"] = scale
        own = {"device": {"ssd": {**self._drive(workload), **dict(asked.scheme.device)}}}
        stack = merged(self.about["stack"], own)
        return merged(stack, {"tenant": [tenant], "replay": replay})

    def _writes(self, asked: Asked, folder: Path) -> dict[str, Any]:
        """Return the stack of writes of one size; their trace is written beside the results."""
        about = self.about["writes"]
        scheme = asked.scheme
        count = _native.parse_bytes(about["bytes"]) // _native.parse_bytes(asked.size)
        trace = folder / f"{asked.name}.toml"
        text = WRITES.format(count=count, size=asked.size, span=scheme.span or about["span"])
        trace.write_text(text, encoding="utf-8")
        drive = {**about["device"], **dict(scheme.device)}
        if scheme.at_command is not None:
            page = scheme.logical_page or drive["page"]
            drive["command_time"] = command_time(scheme.at_command, page, asked.size)
        cache = {"capacity": about["buffer"], "block": drive["page"]}
        stack = merged(self.about["stack"], {"device": {"ssd": drive}, "cache": cache})
        replay = {"loop": "closed", "queue_depth": asked.depth}
        tenant = {"name": "writes", "trace": os.fspath(trace.resolve())}
        return merged(stack, {"tenant": [tenant], "replay": replay})

    def _drive(self, workload: Workload) -> dict[str, Any]:
        """Return the size of the drive: its volume's, else up to the last byte that is touched."""
        table, reserve = workload.table, int(self.about["reserve"])
        superblock = _native.parse_bytes(self.about["superblock"])
        if "capacity" in table:
            capacity = _native.parse_bytes(table["capacity"])
        else:
            capacity = -(-reach_bytes(workload.path) // superblock) * superblock
        raw = capacity * (1 + float(self.about["over_provisioning"]))
        blocks = -(-int(raw) // superblock) + reserve
        least = reserve / blocks
        found = {"capacity": f"{capacity}B", "blocks": blocks}
        found |= {"clean_below": least, "clean_hard_below": least}
        return found | {key: table[key] for key in ("occupancy",) if key in table}


def command_time(each: str, page: str, size: str) -> str:
    """Return the controller's work on a write command, so much for each logical page of it."""
    pages = -(-_native.parse_bytes(size) // _native.parse_bytes(page))
    return f"{pages * _native.parse_duration(each)}ns"


def _asked(figure: ReplaysSpec) -> list[Asked]:
    found = []
    for scheme in figure.schemes:
        for workload in figure.workloads:
            found += [Asked(scheme, workload), Asked(scheme, workload, timed=True)]
        for size in figure.sizes:
            found += [Asked(scheme, size=size, depth=depth) for depth in figure.depths]
    return found


def load(setup: Setup) -> DriveReplays:
    """Return the figures of a paper, nothing run yet. Errors: `SpecError`."""
    path = setup.folder / SETUP
    own = specs.key(path, setup.document, TABLE)
    about = merged(own, setup.document.get(setup.key(TABLE), {}))
    workloads = specs.workloads(setup, own)
    names = [one.name for one in workloads]
    found = []
    for where, document in specs.figures(setup.folder, STUDY):
        figure = _figure(where, document, setup, names)
        # Writes of one size are of no trace: on given volumes they say nothing new.
        if figure.workloads or (figure.sizes and setup.kind != GIVEN):
            found.append(figure)
    return DriveReplays(setup, found, workloads, about)


def _figure(
    path: Path, document: dict[str, Any], setup: Setup, names: Sequence[str]
) -> ReplaysSpec:
    fields = specs.head(path, document, SHOWN)
    about = document["figure"]
    schemes = tuple(
        Scheme(
            str(specs.key(path, one, "title")),
            bool(one.get("rule", False)),
            tuple((key, value) for key, value in one.items() if key not in OWN),
            **{key: str(one[key]) for key in OWN[2:] if key in one},
        )
        for one in specs.key(path, document, "scheme")
    )
    base = str(specs.key(path, about, "base"))
    titles = [scheme.title for scheme in schemes]
    for title in (base, *(one.beside for one in schemes if one.beside is not None)):
        specs.among(path, "base", title, titles)
    wanted = tuple(str(one) for one in about.get("workloads", ()))
    if setup.kind == "trace":
        for one in wanted:
            specs.among(path, "workloads", one, names)
    elif wanted and setup.kind != GIVEN:
        wanted = tuple(names)
    quick = document.get("quick", {}) if setup.quick else {}
    return ReplaysSpec(
        **fields,
        schemes=schemes,
        base=base,
        workloads=tuple(one for one in wanted if one in names),
        sizes=tuple(quick.get("sizes", about.get("sizes", ()))),
        depths=tuple(quick.get("depths", about.get("depths", ()))),
    )


MB, NS_PER_US = 1e6, 1e3
Of = Callable[[ResponseTimes], float]
QUANTILES: dict[str, Of] = {
    "p50": lambda found: found.p50_ns,
    "p90": lambda found: found.p90_ns,
    "p99": lambda found: found.p99_ns,
    "p99.9": lambda found: found.p999_ns,
}
# The paper has twenty drive writes and says what changes after the fifth: parts before and after.
EARLY, LATE = 2, range(3, PARTS)
# Where each percentile stands on an axis of the share of requests that take longer.
BEYOND = {"p50": 0.5, "p90": 0.1, "p99": 0.01, "p99.9": 0.001}


def notes(what: DriveReplays) -> list[str]:
    """Return what to know before the numbers."""
    last = words.percent(float(what.about["last"]))
    return [
        f"Bandwidth is of all bytes answered, {what.about['queue_depth']} requests under way, in "
        f"ten equal parts of them. Response times are of the last {last} of a trace's time, its "
        f"times stretched {words.significant(float(what.about['time_scale']))} times."
    ]


def shared(what: DriveReplays) -> list[Table]:
    """Return no table: every figure has its own."""
    return []


def shown(what: DriveReplays, figure: ReplaysSpec) -> list[Table | Figure]:
    """Return the tables and charts of a figure in the order of the page."""
    if figure.shows == "predictions":
        return [_predictions(what, figure)]
    found: list[Table | Figure] = [
        _bandwidth(what, figure),
        _bandwidth_chart(what, figure),
        _responses(what, figure),
        _responses_chart(what, figure),
        _beside_others(what, figure),
    ]
    return found


def _base(figure: ReplaysSpec) -> Scheme:
    return next(one for one in figure.schemes if one.title == figure.base)


def _bandwidth(what: DriveReplays, figure: ReplaysSpec) -> Table:
    rows = []
    for name in figure.workloads:
        last = {
            scheme: what.phase(scheme, name, timed=False).bandwidths()[-1]
            for scheme in figure.schemes
        }
        base = last[_base(figure)]
        rule = max((last[scheme] for scheme in figure.schemes if scheme.rule), default=0.0)
        for scheme in figure.schemes:
            phase = what.phase(scheme, name, timed=False)
            parts = phase.bandwidths()
            cells = [words.significant(one / MB) for one in parts]
            whole = words.significant(phase.total.bytes_per_s / MB)
            cells += [whole, words.change(parts[-1], base), words.change(parts[-1], rule)]
            cells.append(words.fixed(phase.amplification, 3))
            rows.append([name, scheme.title, *cells])
    headers = ["trace", "scheme", *(f"part {at + 1}" for at in range(PARTS))]
    headers += ["all, MB/s", f"last part beside {figure.base}", "last part beside the best rule"]
    headers.append("F/U")
    caption = "MB/s in each tenth of the bytes, as fast as the drive goes"
    return plain(figure.heading, caption, headers, rows, 2, "bandwidth")


def _bandwidth_chart(what: DriveReplays, figure: ReplaysSpec) -> Figure:
    points = [
        {"trace": name, "scheme": scheme.title, "part": at + 1, "mb": found / MB}
        for name in figure.workloads
        for scheme in figure.schemes
        for at, found in enumerate(what.phase(scheme, name, timed=False).bandwidths())
    ]
    tips = [Tip("scheme", "scheme"), Tip("part", "part"), Tip("MB/s", "mb", "number")]
    x = alt.X("part:Q").title("tenth of the bytes").axis(tickCount=PARTS)
    y = alt.Y("mb:Q").title("bandwidth (MB/s)")
    plot = _panels(figure, points, x, y, tips)
    caption = "bandwidth in each tenth of the bytes"
    return Figure(f"{figure.name}-bandwidth", "Bandwidth", caption, plot)


def _panels(figure: ReplaysSpec, points: Rows, x: alt.X, y: alt.Y, tips: list[Tip]) -> Plot:
    """Draw a panel per trace, a line per scheme."""
    series = Series("scheme", [one.title for one in figure.schemes], "scheme")
    panels = [
        marks.lines(
            [one for one in points if one["trace"] == name],
            series, x, y, tips, title=name, height=PANEL_HEIGHT, points=True,
        )
        for name in figure.workloads
    ]  # fmt: skip
    return Plot(panels, [series])


def _responses(what: DriveReplays, figure: ReplaysSpec) -> Table:
    rows = []
    for name in figure.workloads:
        base = what.phase(_base(figure), name, timed=True).total
        for scheme in figure.schemes:
            found = what.phase(scheme, name, timed=True).total
            times = (found.mean_ns, *(of(found) for of in QUANTILES.values()))
            cells = [words.significant(one / NS_PER_US) for one in times]
            change = words.change(found.mean_ns, base.mean_ns)
            rows.append([name, scheme.title, *cells, change])
    headers = ["trace", "scheme", "mean, us", *(f"{one}, us" for one in QUANTILES)]
    headers.append(f"mean beside {figure.base}")
    caption = "response times of the last part, at the trace's own times"
    return plain("", caption, headers, rows, 2, "responses")


def _beside_others(what: DriveReplays, figure: ReplaysSpec) -> Table:
    """Bandwidth of early and of later parts, and the middle response, beside other schemes."""
    rows = []
    for name in figure.workloads:
        base = _base(figure)
        parts = {
            scheme: what.phase(scheme, name, timed=False).bandwidths() for scheme in figure.schemes
        }
        middle = {
            scheme: what.phase(scheme, name, timed=True).total.p50_ns for scheme in figure.schemes
        }
        others = [scheme for scheme in figure.schemes if scheme.rule or scheme == base]
        for scheme in figure.schemes:
            early, early_base = (sum(parts[one][:EARLY]) for one in (scheme, base))
            best = [
                max((parts[one][at] for one in others if one != scheme), default=0.0)
                for at in range(PARTS)
            ]
            worst = min(LATE, key=lambda at: parts[scheme][at] / best[at] if best[at] else 0.0)
            least = words.change(parts[scheme][worst], best[worst])
            change = words.change(middle[scheme], middle[base])
            rows.append([name, scheme.title, words.change(early, early_base), least, change])
    headers = ["trace", "scheme", f"parts 1 to {EARLY} beside {figure.base}"]
    headers.append(f"parts {LATE[0] + 1} to {PARTS}, least beside the best of the others")
    headers.append(f"p50 beside {figure.base}")
    caption = f"bandwidth and the middle response beside {figure.base} and rules"
    return plain("", caption, headers, rows, 2, "beside")


def _responses_chart(what: DriveReplays, figure: ReplaysSpec) -> Figure:
    points = [
        {
            "trace": name,
            "scheme": scheme.title,
            "percentile": label,
            "beyond": BEYOND[label],
            "us": of(what.phase(scheme, name, timed=True).total) / NS_PER_US,
        }
        for name in figure.workloads
        for scheme in figure.schemes
        for label, of in QUANTILES.items()
    ]
    tips = [Tip("scheme", "scheme"), Tip("percentile", "percentile")]
    tips.append(Tip("response (us)", "us", "number"))
    scale = alt.Scale(type="log", reverse=True, nice=False)
    x = alt.X("beyond:Q", scale=scale).title("share of requests that take longer")
    y = alt.Y("us:Q", scale=alt.Scale(type="log", nice=True)).title("response (us)")
    plot = _panels(figure, points, x, y, tips)
    caption = "response times by the share of requests that take longer"
    return Figure(f"{figure.name}-responses", "Response times", caption, plot)


def _predictions(what: DriveReplays, figure: ReplaysSpec) -> Table:
    rows = []
    for depth in figure.depths:
        for scheme in figure.schemes:
            cells, changes = [], []
            for size in figure.sizes:
                own = what.writes(scheme, size, depth).later_mean_ns()
                base = what.writes(_beside(figure, scheme), size, depth).later_mean_ns()
                cells += [words.significant(own / NS_PER_US), words.change(own, base)]
                changes.append(own / base - 1 if base else 0.0)
            cells += [words.signed(sum(changes) / len(changes)), words.signed(_slower(changes))]
            rows.append([f"{depth} under way", scheme.title, *cells])
    headers = ["", "scheme"]
    for size in figure.sizes:
        headers += [f"{size}, us", f"{size}, beside {figure.base}"]
    headers += [f"mean beside {figure.base}", f"throughput beside {figure.base}"]
    caption = "mean response of random writes, later half of the replay"
    return plain(figure.heading, caption, headers, rows, 2, "predictions")


def _slower(changes: Sequence[float]) -> float:
    """Return what longer responses make of throughput, so many writes always under way."""
    return sum(1 / (1 + one) - 1 for one in changes) / len(changes)


def _beside(figure: ReplaysSpec, scheme: Scheme) -> Scheme:
    """Return the scheme that another's times are shown beside."""
    wanted = scheme.beside or figure.base
    return next(one for one in figure.schemes if one.title == wanted)
