"""Specs of papers on data caches inside drives: machines, mixes, schemes, figures.

For: reading `setup.toml` and the figures beside it. Must never know: how anything is run or drawn.
Tables whose names begin with `quick_` or `bundled_` change or replace those without when the traces
are others. A figure may have machines, schemes and mixes of its own beside those of the setup:
tables of the same names. One with mixes of its own shows those. Units as stacks have them; lengths
of intervals in steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cachewright._native import SpecError
from cachewright.tables.measures import GIVEN
from cachewright.train import ICacheTraining, MLCacheTraining
from cachewright_lab.reproduce import specs, volumes
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup, among, merged

# Figures of mixes, and the rest.
OUTCOMES = (
    "interference",
    "slowdown",
    "response",
    "fairness",
    "tail",
    "hits",
    "summary",
    "group",
    "pairs",
)
# Figures of mixes in several settings.
SETTINGS = ("settings", "loads")
SHOWN = (
    *OUTCOMES,
    *SETTINGS,
    "bounds",
    "labels",
    "sizes",
    "gains",
    "features-alone",
    "signs",
    "overheads",
    "models",
    "features",
    "elsewhere",
)
JOINT, EACH = "mlcache", "icache"
# Models of all tenants together, by the hits that their labels count.
JOINTS = {JOINT: "all", "mlcache-writes": "writes"}
# Keys that a setting may change: of training, of the partitioner.
TRAINING = ("from_off", "least_gain", "gain_of", "share", "retrain_every")
RULE = ("spread", "idle", "reserve")
Table = dict[str, Any]


@dataclass(frozen=True)
class Scheme:
    """How the cache is divided; `model` says whose models it asks, `bound` that it sees ahead."""

    title: str
    partition: str
    model: str | None
    bound: bool


@dataclass(frozen=True)
class Member:
    """A tenant of a mix: its name there, the workload, keys of its own."""

    name: str
    workload: str
    keys: tuple[tuple[str, Any], ...]

    @property
    def sensitive(self) -> bool:
        """Whether it is sensitive to latency, for schemes that treat such tenants apart."""
        return ("sensitive", True) in self.keys


@dataclass(frozen=True)
class Mix:
    """Tenants that share the drive."""

    name: str
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Setting:
    """What replays and models depend on beside tenants: machine, cache, interval, granules.

    `time_scale` stretches the traces: 2 is half their speed. `keys` are of `TRAINING` and `RULE`.
    """

    machine: str
    cache: str
    steps: int
    granules: int
    time_scale: float = 1.0
    stride: int | None = None
    keys: tuple[tuple[str, Any], ...] = ()

    def of(self, known: Sequence[str]) -> Table:
        """Return those of its keys that are among `known`."""
        return {key: value for key, value in self.keys if key in known}

    @property
    def usual(self) -> Setting:
        """The setting without what only models and the partitioner depend on."""
        return replace(self, stride=None, keys=())


@dataclass(frozen=True)
class DriveFigure(FigureSpec):
    """One figure: mixes under schemes, in one setting or several; `about` is its whole table."""

    setting: Setting
    mixes: tuple[Mix, ...]
    schemes: tuple[Scheme, ...]
    seeds: int
    settings: tuple[tuple[str, Setting], ...]
    machines: Mapping[str, Table]
    """Machines of its own, beside those of the setup."""

    about: Mapping[str, Any]
    document: Mapping[str, Any]

    def splits(self, mix: Mix) -> list[tuple[int, ...]]:
        """Return the static divisions of a mix that the figure tries, in equal parts.

        `parts` says by number of tenants into how many parts the cache is cut; each tenant has at
        least one.
        """
        parts = int(self.about.get("parts", {}).get(str(len(mix.members)), 0))
        return _compositions(parts, len(mix.members))

    @property
    def where(self) -> str:
        """On what it runs, in words: cache and machine."""
        return f"{self.setting.cache}, {self.setting.machine}"

    def groups(self) -> list[tuple[str, list[Mix]]]:
        """Return the mixes by number of tenants: means of different numbers are not alike."""
        counts = sorted({len(mix.members) for mix in self.mixes})
        return [
            (f"{count} tenants", [mix for mix in self.mixes if len(mix.members) == count])
            for count in counts
        ]

    @property
    def replays(self) -> bool:
        """Whether mixes are replayed for it."""
        return self.shows in (*OUTCOMES, *SETTINGS, "bounds")

    @property
    def alone(self) -> tuple[Mix, ...]:
        """Its workloads as mixes of one tenant."""
        return tuple(Mix(name, (Member(name, name, ()),)) for name in self.workloads)

    @property
    def alone_on(self) -> tuple[str, ...]:
        """The machines on which tenants that differ in one feature run for it."""
        match self.shows:
            case "features-alone":
                return (self.setting.machine,)
            case "signs":
                return tuple(str(one) for one in self.about["machines"])
        return ()

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Workloads that train a model, each with the other that judges it."""
        return tuple((str(one), str(other)) for one, other in self.about.get("pairs", ()))

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workloads of its pairs or of its mixes, each once."""
        names = [member.workload for mix in self.mixes for member in mix.members]
        if self.pairs:
            names = [name for pair in self.pairs for name in pair]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class Training:
    """How models learn unless a setting says otherwise: one per tenant, one of all together."""

    each: ICacheTraining
    joint: MLCacheTraining
    seeds: int
    """How many models of each tenant are trained."""

    @staticmethod
    def of(path: Path, table: Table) -> Training:
        """Return what `[training]` says. Errors: `SpecError` for a key that there is not."""
        own = {key: value for key, value in table.items() if key not in ("joint", "seeds")}
        for key in own:
            among(path, "training", key, ICacheTraining.__dataclass_fields__)
        each = ICacheTraining(**own)
        joint = MLCacheTraining(share=each.share, **table.get("joint", {}))
        return Training(each, joint, int(specs.key(path, table, "seeds")))


@dataclass(frozen=True)
class Common:
    """What all figures share, for the traces there are."""

    stack: Table
    machines: dict[str, Table]
    training: Training
    mixes: tuple[Mix, ...]
    schemes: tuple[Scheme, ...]

    @staticmethod
    def of(setup: Setup) -> Common:
        """Return what `setup.toml` says. Errors: `SpecError` for a key that is missing."""
        path = setup.folder / SETUP
        for key in ("scheme", setup.key("mix")):
            specs.key(path, setup.document, key)
        training = Training.of(path, setup.table("training"))
        empty = Common(setup.table("stack"), {}, training, (), ())
        return empty.with_own(path, {**setup.document, "drive": setup.table("drive")}, setup)

    def with_own(self, path: Path, document: Mapping[str, Any], setup: Setup) -> Common:
        """Return this with the machines, schemes and mixes of a document behind its own.

        Errors: `SpecError` for a key that is missing, or a name that is taken.
        """
        known = {one.name for one in setup.workloads}
        tables = document.get(setup.key("mix"), ())
        there = [one for one in tables if not set(one.get("tenants", [])) & set(setup.absent)]
        mixes = [_mix(path, one, known) for one in there]
        schemes = [_scheme(path, one) for one in document.get("scheme", ())]
        over = {} if setup.whole else document.get(setup.key("drive"), {})
        machines = merged(document.get("drive", {}), over)
        if setup.kind == GIVEN:
            shares = specs.key(setup.folder / SETUP, setup.document, "given_span")
            machines = {name: _paced(one, setup, shares) for name, one in machines.items()}
        taken = [one.name for one in self.mixes] + [one.title for one in self.schemes]
        for name in (*machines, *(one.name for one in mixes), *(one.title for one in schemes)):
            if name in self.machines or name in taken:
                raise SpecError(f"{path}: found a second `{name}`, expected other names than those "
                                f"of {SETUP}")  # fmt: skip
        return Common(
            self.stack,
            self.machines | machines,
            self.training,
            (*self.mixes, *mixes),
            (*self.schemes, *schemes),
        )


def _paced(machine: Table, setup: Setup, shares: Mapping[str, Any]) -> Table:
    """Return a machine whose times are shares of the shortest given trace."""
    span = min(volumes.span_ns(one.path) for one in setup.workloads)
    stop = round(span * float(shares["stop"]))
    warmup = round(stop * float(shares["warmup"]))
    interval = stop // int(shares["intervals"])
    if interval == 0:
        raise SpecError(f"--traces: {setup.traces}: found a trace of {span} ns, expected seconds")
    replay = {"warmup": f"{warmup}ns", "interval": f"{interval}ns"}
    return merged(machine, {"replay": replay, "tenant": {"stop": f"{stop}ns"}})


def figures(setup: Setup, common: Common) -> list[DriveFigure]:
    """Return the figures of a paper that these traces can show. Errors: `SpecError`."""
    found = [
        _figure(path, document, setup, common) for path, document in specs.figures(setup.folder)
    ]
    alone = ("features-alone", "signs", "overheads")
    return [one for one in found if one.pairs or one.mixes or one.shows in alone]


def machines(common: Common, found: Sequence[DriveFigure]) -> dict[str, Table]:
    """Return the machines of the setup and of figures by name.

    Errors: `SpecError` for two figures that call different machines alike.
    """
    known = dict(common.machines)
    for figure in found:
        for name, table in figure.machines.items():
            if known.setdefault(name, table) != table:
                raise SpecError(f"{figure.name}: `drive.{name}`: found another machine of that "
                                "name, expected the same in every figure")  # fmt: skip
    return known


def _mix(path: Path, table: Mapping[str, Any], known: set[str]) -> Mix:
    members: list[Member] = []
    sensitive = table.get("sensitive", [])
    for workload in specs.key(path, table, "tenants"):
        among(path, "tenants", workload, known)
        before = sum(member.workload == workload for member in members)
        name = workload if before == 0 else f"{workload} {before + 1}"
        keys: Table = {"start": f"{before}s"} if before else {}
        if workload in sensitive:
            keys["sensitive"] = True
        members.append(Member(name, workload, tuple(keys.items())))
    return Mix(str(specs.key(path, table, "name")), tuple(members))


def _scheme(path: Path, table: Mapping[str, Any]) -> Scheme:
    model = table.get("model")
    if model is not None:
        among(path, "model", model, (*JOINTS, EACH))
    title, partition = (str(specs.key(path, table, key)) for key in ("title", "partition"))
    return Scheme(title, partition, model, bool(table.get("bound", False)))


def _figure(path: Path, document: dict[str, Any], setup: Setup, common: Common) -> DriveFigure:
    fields = specs.head(path, document, SHOWN)
    about = dict(document["figure"])
    if not setup.whole:
        own = f"{setup.kind}_"
        about |= {k.removeprefix(own): v for k, v in about.items() if k.startswith(own)}
    shared, common = common, common.with_own(path, document, setup)
    about.setdefault("mixes", [str(one["name"]) for one in document.get(setup.key("mix"), ())])
    if not about["mixes"]:
        del about["mixes"]
    for name in (about.get("machine", "modern"), *about.get("machines", ())):
        among(path, "machine", name, common.machines)
    setting = _usual(about, common)
    if "pairs" in about:
        missing = set(setup.absent)
        about["pairs"] = [pair for pair in about["pairs"] if missing.isdisjoint(pair)]
    for pair in about.get("pairs", ()):
        if len(pair) != 2:
            raise SpecError(f"{path}: `pairs`: found {pair}, expected two workloads each")
        for workload in pair:
            among(path, "pairs", workload, {one.name for one in setup.workloads})
    # Bounds see ahead and cost many replays: only figures that name them have them.
    about.setdefault("schemes", [one.title for one in common.schemes if not one.bound])
    schemes = _named(path, "schemes", about, common.schemes, [s.title for s in common.schemes])
    seeds = int(about.get("seeds", common.training.seeds))
    others = document.get(setup.key("setting"), document.get("setting", []))
    return DriveFigure(
        **fields,
        setting=setting,
        mixes=_mixes(path, about, document, setup, common),
        schemes=schemes,
        seeds=min(seeds, common.training.seeds),
        settings=tuple(_setting(path, one, setting) for one in others),
        machines={k: v for k, v in common.machines.items() if k not in shared.machines},
        about=about,
        document=document,
    )


def _mixes(
    path: Path,
    about: Mapping[str, Any],
    document: Mapping[str, Any],
    setup: Setup,
    common: Common,
) -> tuple[Mix, ...]:
    """Return the mixes that a figure names, by name or by number of tenants, else all.

    A figure of named mixes shows all that small traces make instead. Mixes and pairs of given
    traces are those named, or none.
    """
    documents = (setup.document, document)
    keys = ("mix", setup.key("mix"))
    tables = [one for of in documents for key in keys for one in of.get(key, [])]
    for name in about.get("mixes", ()):
        among(path, "mixes", name, {str(one.get("name")) for one in tables})
    if "pairs" in about and not about["pairs"]:
        return ()
    counts = about.get("tenants")
    mixes = _named(path, "mixes", about, common.mixes, [mix.name for mix in common.mixes])
    found = tuple(mix for mix in mixes if counts is None or len(mix.members) in counts)
    return found if found or counts is not None or setup.whole else common.mixes


def _usual(about: Mapping[str, Any], common: Common) -> Setting:
    """Return the setting of a figure."""
    machine = str(about.get("machine", "modern"))
    speed = common.machines[machine].get("tenant", {}).get("time_scale", 1.0)
    return Setting(
        machine,
        str(about.get("cache", common.stack["cache"]["capacity"])),
        common.training.each.steps,
        common.training.each.granules,
        float(about.get("time_scale", speed)),
        keys=_keys(about),
    )


def _keys(table: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((key, table[key]) for key in (*TRAINING, *RULE) if key in table)


def _setting(path: Path, table: Mapping[str, Any], base: Setting) -> tuple[str, Setting]:
    own = replace(
        base,
        steps=int(table.get("steps", base.steps)),
        granules=int(table.get("granules", base.granules)),
        time_scale=float(table.get("time_scale", base.time_scale)),
        stride=table.get("stride"),
        keys=_keys(dict(base.keys) | dict(table)),
    )
    return str(specs.key(path, table, "title")), own


def _compositions(parts: int, tenants: int) -> list[tuple[int, ...]]:
    """Return every way to give so many parts to tenants, at least one to each."""
    if tenants == 1:
        return [(parts,)] if parts > 0 else []
    return [
        (first, *rest)
        for first in range(1, parts - tenants + 2)
        for rest in _compositions(parts - first, tenants - 1)
    ]


def _named(
    path: Path, key: str, about: Mapping[str, Any], known: Sequence[Any], names: list[str]
) -> tuple[Any, ...]:
    """Return those that the figure names, or all; mixes that these traces do not make are none."""
    wanted = about.get(key, names)
    if key == "schemes":
        for name in wanted:
            among(path, key, name, names)
    return tuple(one for one, name in zip(known, names, strict=True) if name in wanted)
