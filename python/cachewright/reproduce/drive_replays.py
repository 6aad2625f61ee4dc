"""Papers on write amplification: what it costs in time, on one drive that is replayed.

For: which replays the figures need, each made once. Must never know: how a figure is drawn, how
anything is measured. A trace is replayed twice: as fast as the drive goes, which gives its
bandwidth, then at its own times, of which the last part gives response times. Synthetic writes of
one size give what predictions cost. Units: bytes, nanoseconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cachewright import _native, api
from cachewright.reproduce import specs
from cachewright.reproduce.jobs import Job, each
from cachewright.reproduce.replayed import Phase
from cachewright.reproduce.specs import SETUP, FigureSpec, Setup, Workload, merged
from cachewright.reproduce.volumes import reach_bytes, span_ns

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress

STUDY, TABLE = "drive-replays", "replays"
SHOWN = ("phases", "predictions")
# Keys of a scheme that are none of its drive.
OWN = ("title", "rule")
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
        count = _native.parse_bytes(about["bytes"]) // _native.parse_bytes(asked.size)
        trace = folder / f"{asked.name}.toml"
        text = WRITES.format(count=count, size=asked.size, span=about["span"])
        trace.write_text(text, encoding="utf-8")
        drive = {**about["device"], **dict(asked.scheme.device)}
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
        if figure.workloads or (figure.sizes and setup.kind != specs.GIVEN):
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
        )
        for one in specs.key(path, document, "scheme")
    )
    base = str(specs.key(path, about, "base"))
    specs.among(path, "base", base, [scheme.title for scheme in schemes])
    wanted = tuple(str(one) for one in about.get("workloads", ()))
    if setup.kind == "trace":
        for one in wanted:
            specs.among(path, "workloads", one, names)
    elif wanted and setup.kind != specs.GIVEN:
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
