"""Papers on mixes of tenants in one drive's data cache, under schemes that may predict.

For: which replays, models and curves the figures need, each made once for all that show it. Must
never know: how a figure is drawn, how anything is measured. `drive_specs` says what a spec has,
`taught` keeps what was learned. Units: nanoseconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cachewright import _native, api
from cachewright.answers import Case, TenantTiming
from cachewright.tables import timing
from cachewright.train import ICacheTraining, judged_icache
from cachewright.train.reports import TenantReport
from cachewright_lab.reproduce import drive_specs, features_alone
from cachewright_lab.reproduce.drive_specs import (
    EACH,
    JOINTS,
    RULE,
    SETTINGS,
    Common,
    DriveFigure,
    Member,
    Mix,
    Scheme,
    Setting,
)
from cachewright_lab.reproduce.jobs import Job, each
from cachewright_lab.reproduce.specs import Setup, merged
from cachewright_lab.reproduce.taught import Lessons, Taught

if TYPE_CHECKING:
    from cachewright.train.demand import Segments
    from cachewright.types import PathLike, Progress

MODELS, RUNS = "models", "runs"
# Whose replay has every tenant alone beside it.
BASE = Scheme("shared", "shared", None, bound=False)
STATIC = Scheme("best static", "static", None, bound=True)


@dataclass(frozen=True)
class Outcome:
    """One mix under one scheme: the responses of each tenant, and its mean response alone."""

    case: Case
    alone_ns: tuple[float, ...]

    @property
    def tenants(self) -> tuple[TenantTiming, ...]:
        """The responses of each tenant."""
        return timing.of(self.case).tenants

    @property
    def slowdown_by_tenant(self) -> list[float | None]:
        """How many times longer than alone each tenant waits; nothing for one without requests."""
        pairs = zip(self.tenants, self.alone_ns, strict=True)
        return [one.mean_ns / alone if one.requests and alone > 0 else None for one, alone in pairs]

    @property
    def slowdowns(self) -> list[float]:
        """The slowdowns of the tenants that have requests."""
        return [one for one in self.slowdown_by_tenant if one is not None]

    @property
    def max_slowdown(self) -> float:
        """The worst of them."""
        return max(self.slowdowns, default=1.0)

    @property
    def fairness(self) -> float:
        """The least performance ratio by the greatest."""
        return min(self.slowdowns, default=1.0) / self.max_slowdown

    def mean(self, of: Callable[[TenantTiming], float] = lambda one: one.mean_ns) -> float:
        """Return the mean over tenants with requests of a number of their responses."""
        busy = [float(of(one)) for one in self.tenants if one.requests]
        return sum(busy) / max(len(busy), 1)

    @property
    def hit_ratio(self) -> float:
        """Of all tenants' block accesses."""
        return self.case.total.hit_ratio


@dataclass(frozen=True)
class Asked:
    """One replay: a mix in a setting under a scheme, with models of a seed."""

    setting: Setting
    mix: Mix
    scheme: Scheme
    seed: int
    split: tuple[int, ...] = ()
    """Parts of the cache that tenants keep, for the static division."""

    @property
    def replay(self) -> tuple[Any, ...]:
        """What tells its replay from others: schemes of one partition and model share one."""
        scheme = self.scheme
        return (self.setting, self.mix, scheme.partition, scheme.model, self.seed, self.split)


@dataclass
class DriveMixes:
    """The figures of a paper with what was found for them."""

    setup: Setup
    common: Common
    figures: Sequence[DriveFigure]
    machines: Mapping[str, dict[str, Any]]
    """Those of the setup and of figures, by name."""

    outcomes: dict[Asked, Outcome] = field(default_factory=dict)
    taught: dict[tuple[Setting, str, str, str, int], Taught] = field(default_factory=dict)
    joint: dict[tuple[Setting, str, str], Taught] = field(default_factory=dict)
    alone: dict[tuple[str, str], features_alone.Found] = field(default_factory=dict)
    """Tenants of one feature, by figure and machine."""

    lessons: Lessons | None = None

    def count(self) -> int:
        """Return how many mixes were replayed."""
        return len(self.outcomes)

    def stop_ns(self, figure: DriveFigure) -> int | None:
        """Return when tenants of a figure stop, in time of the traces."""
        stop = self.machines[figure.setting.machine].get("tenant", {}).get("stop")
        return None if stop is None else _native.parse_duration(stop)

    def found(self, figure: DriveFigure, mix: Mix, scheme: Scheme) -> list[Outcome]:
        """Return a mix under a scheme, once or by seed."""
        return self.of(figure.setting, mix, scheme, figure.seeds)

    def of(self, setting: Setting, mix: Mix, scheme: Scheme, seeds: int) -> list[Outcome]:
        """Return the same in any setting."""
        count = seeds if scheme.model == EACH else 1
        asked = [Asked(setting, mix, scheme, seed) for seed in range(1, count + 1)]
        return [self.outcomes[one] for one in asked]

    def static(self, figure: DriveFigure, mix: Mix) -> dict[tuple[int, ...], Outcome]:
        """Return a mix under every static division that a figure tries."""
        return {
            split: self.outcomes[Asked(figure.setting, mix, STATIC, 1, split)]
            for split in figure.splits(mix)
        }

    def segments(self, setting: Setting, workload: str) -> Segments:
        """Return a workload alone with each part of the cache; it was replayed before."""
        if self.lessons is None:
            raise RuntimeError("nothing was run")
        return self.lessons.segments(setting, workload)

    def model(
        self, setting: Setting, workload: str, kind: str, features: str, seed: int
    ) -> TenantReport:
        """Return the report on a workload's model: of one tenant, its only model in `models`."""
        return self.taught[setting, workload, kind, features, seed].tenant

    def elsewhere(self, setting: Setting, pair: tuple[str, str], seed: int) -> float:
        """Return the MSE of one workload's model on the judged part of another."""
        trained, judged = pair
        if self.lessons is None:
            raise RuntimeError("nothing was run")
        how = self.lessons.training_of(setting, seed)
        model = self.taught[setting, trained, "lstm", "1111", seed].path.read_bytes()
        return judged_icache(model, self.lessons.segments(setting, judged), how).mse

    def run(self, out: PathLike | None, threads: int, progress: Progress | None) -> None:
        """Run all that the figures need; with `out` everything is kept below it."""
        with TemporaryDirectory() as nowhere:
            folder = Path(nowhere if out is None else out)
            lessons = Lessons(
                folder / MODELS, self._alone, self.setup.workloads, self.common.training
            )
            self.lessons = lessons
            self._replay_alone(lessons, threads, progress)
            self._teach(lessons, threads, progress)
            self._replay(folder / RUNS, threads, progress)
            for figure in self.figures:
                for name in figure.alone_on:
                    machine = self._machine(replace(figure.setting, machine=name))
                    self.alone[figure.name, name] = features_alone.run(
                        figure.about, figure.document, self.setup.kind, machine, folder,
                        (threads, progress),
                    )  # fmt: skip

    def _machine(self, setting: Setting) -> dict[str, Any]:
        """Return the tables of a stack that all its tenants share."""
        stack = merged(self.common.stack, self.machines[setting.machine])
        stack.pop("tenant", None)
        stack["cache"] = stack["cache"] | {"capacity": setting.cache}
        usual, scale = self.common.training.each, setting.time_scale
        replay = stack["replay"]
        interval = _native.parse_duration(replay["interval"]) * setting.steps // usual.steps
        times = {"interval": f"{round(interval * scale)}ns"}
        if "warmup" in replay:
            times["warmup"] = _scaled(replay["warmup"], scale)
        return stack | {"replay": replay | times}

    def _tenant(self, setting: Setting, member: Member) -> dict[str, Any]:
        path = next(one.path for one in self.setup.workloads if one.name == member.workload)
        keys = self.machines[setting.machine].get("tenant", {}) | dict(member.keys)
        scale = setting.time_scale
        times = {key: _scaled(keys[key], scale) for key in ("start", "stop") if key in keys}
        trace = os.fspath(path.resolve())
        return {"name": member.name, "trace": trace, **keys, **times, "time_scale": scale}

    def _alone(self, setting: Setting, workload: str) -> dict[str, Any]:
        tenant = self._tenant(setting, Member(workload, workload, ()))
        return {"name": workload, "seed": 1, **self._machine(setting), "tenant": [tenant]}

    def asked(self) -> list[Asked]:
        """Return every replay that a figure shows, each once, smaller mixes first."""
        found: dict[Asked, None] = {}
        for figure in self.figures:
            settings = [figure.setting] if figure.shows not in SETTINGS else []
            settings += [setting for _, setting in figure.settings]
            for setting in settings if figure.replays else []:
                for mix in figure.mixes:
                    for scheme in figure.schemes:
                        count = figure.seeds if scheme.model == EACH else 1
                        for seed in range(1, count + 1):
                            found[Asked(setting, mix, scheme, seed)] = None
                    for split in figure.splits(mix):
                        found[Asked(setting, mix, STATIC, 1, split)] = None
                for mix in figure.alone if figure.shows == "loads" else ():
                    found[Asked(setting, mix, BASE, 1)] = None
        return sorted(found, key=lambda one: len(one.mix.members))

    def lessons_asked(self) -> dict[tuple[Setting, str, str, str, int], None]:
        """Return every model of a workload that replays or figures need."""
        found: dict[tuple[Setting, str, str, str, int], None] = {}
        for one in self.asked():
            if one.scheme.model == EACH:
                for member in one.mix.members:
                    found[one.setting, member.workload, "lstm", "1111", one.seed] = None
        for figure in self.figures:
            kinds = figure.about.get("models", []) if figure.shows == "models" else []
            kinds = ["lstm"] if figure.shows == "elsewhere" else kinds
            seen = figure.about["features"] if figure.shows == "features" else []
            for workload in figure.workloads:
                for seed in range(1, figure.seeds + 1):
                    for kind in kinds:
                        found[figure.setting, workload, kind, "1111", seed] = None
                    for features in seen:
                        found[figure.setting, workload, "lstm", features, seed] = None
        return found

    def _segments_asked(self) -> Iterable[tuple[Setting, str]]:
        for setting, workload, *_ in self.lessons_asked():
            yield setting, workload
        for one in self.asked():
            if one.scheme.model in JOINTS:
                for member in one.mix.members:
                    yield one.setting, member.workload
        for figure in self.figures:
            if figure.shows in ("labels", "sizes", "gains"):
                for workload in figure.workloads:
                    yield figure.setting, workload

    def _replay_alone(self, lessons: Lessons, threads: int, progress: Progress | None) -> None:
        wanted = {(lessons.basis(setting), name) for setting, name in self._segments_asked()}
        jobs: list[Job[Segments]] = [
            partial(lessons.replayed, setting, name)
            for setting, name in sorted(wanted, key=lambda one: (one[1], str(one[0])))
        ]
        each("replaying tenants alone", jobs, threads, progress)

    def _teach(self, lessons: Lessons, threads: int, progress: Progress | None) -> None:
        # Settings that differ in the partitioner's rule alone share their models.
        models: dict[tuple[Setting, str, ICacheTraining], Job[Taught]] = {}
        wanted = {}
        for key in self.lessons_asked():
            setting, workload, kind, features, seed = key
            how = lessons.training_of(setting, seed, model=kind, features=features)
            wanted[key] = (lessons.basis(setting), workload, how)
            models.setdefault(wanted[key], partial(lessons.each, setting, workload, how))
        found = each("training", list(models.values()), threads, progress)
        trained = dict(zip(models, found, strict=True))
        self.taught.update({key: trained[model] for key, model in wanted.items()})
        pairs = {
            (one.setting, one.mix.name, one.scheme.model): one.mix
            for one in self.asked()
            if one.scheme.model in JOINTS
        }
        mixes: list[Job[Taught]] = [
            partial(lessons.joint, setting, mix, kind) for (setting, _, kind), mix in pairs.items()
        ]
        answers = each("training", mixes, threads, progress)
        self.joint.update(zip(pairs, answers, strict=True))

    def _replay(self, folder: Path, threads: int, progress: Progress | None) -> None:
        """Replay what is asked for: those without models together, with every tenant alone."""
        groups: dict[tuple[Setting, str, str | None, int, tuple[int, ...]], list[Asked]] = {}
        for one in self.asked():
            base = Asked(self._plain(one.setting), one.mix, BASE, 1)
            for asked in (base, one):
                model, split = asked.scheme.model, asked.split
                key = (asked.setting, asked.mix.name, model, asked.seed, split)
                own = groups.setdefault(key, [])
                if asked.scheme.partition not in [known.scheme.partition for known in own]:
                    own.append(asked)
        jobs: list[Job[list[Case]]] = [
            partial(self._compare, group, folder) for group in groups.values()
        ]
        answers = each("replaying mixes", jobs, threads, progress)
        cases = {
            asked: case
            for group, found in zip(groups.values(), answers, strict=True)
            for asked, case in zip(group, found, strict=True)
        }
        self._keep(cases)

    def _keep(self, cases: dict[Asked, Case]) -> None:
        alone = {
            (asked.setting, asked.mix.name): tuple(
                one.alone_mean_ns or 0.0 for one in timing.of(case).tenants
            )
            for asked, case in cases.items()
            if asked.scheme == BASE
        }
        known = {asked.replay: case for asked, case in cases.items()}
        for one in self.asked():
            alone_ns = alone[self._plain(one.setting), one.mix.name]
            self.outcomes[one] = Outcome(known[one.replay], alone_ns)

    def _plain(self, setting: Setting) -> Setting:
        """Return the setting with the usual interval: tenants alone do not depend on it."""
        usual = self.common.training.each
        return replace(setting.usual, steps=usual.steps, granules=usual.granules)

    def _compare(self, group: Sequence[Asked], folder: Path, progress: Progress) -> list[Case]:
        """Replay the schemes of one mix that ask for the same models."""
        one = group[0]
        stack = self._machine(one.setting)
        tenants = [self._tenant(one.setting, member) for member in one.mix.members]
        if one.scheme.model == EACH:
            for tenant, member in zip(tenants, one.mix.members, strict=True):
                key = (one.setting, member.workload, "lstm", "1111", one.seed)
                taught = self.taught[key]
                tenant["model"] = os.fspath(taught.path)
                if taught.updates:
                    tenant["model_updates"] = [os.fspath(path) for path in taught.updates]
        if one.scheme.model in JOINTS:
            path = self.joint[one.setting, one.mix.name, one.scheme.model].path
            stack["cache"] = stack["cache"] | {"model": os.fspath(path)}
        for tenant, part in zip(tenants, one.split, strict=False):
            tenant["weight"] = float(part)
        stack["machine"] = stack["machine"] | {"alone": one.scheme.model is None and not one.split}
        partitions = [self._partition(asked) for asked in group]
        result = api.compare(
            {"name": one.mix.name, "seed": 1, **stack, "tenant": tenants},
            {"partition": partitions},
            out=folder / _folder(one),
            threads=1,
            progress=progress,
        )
        return list(result.answer.cases)

    def _partition(self, asked: Asked) -> str:
        if asked.scheme.model != EACH:
            return asked.scheme.partition
        window = self.common.training.each.window
        keys = f"steps_per_interval = {asked.setting.steps}, window_steps = {window}"
        keys += f", granules = {asked.setting.granules}"
        rule = asked.setting.of(RULE)
        keys += "".join(f", {key} = {str(value).lower()}" for key, value in rule.items())
        return f'{{ name = "{asked.scheme.partition}", {keys} }}'


def _scaled(time: str, scale: float) -> str:
    """Return a time of the traces as it is replayed."""
    return f"{round(_native.parse_duration(time) * scale)}ns"


def _folder(asked: Asked) -> str:
    """Return the name of a replay's folder: two replays never share one."""
    setting, model = asked.setting, asked.scheme.model
    parts = [setting.machine, setting.cache, f"scale-{setting.time_scale:g}"]
    parts.append(asked.mix.name.replace(" ", "-").lower())
    if model is not None:
        parts.append(model)
    if asked.split:
        parts.append("split-" + "-".join(map(str, asked.split)))
    parts.append(f"{setting.steps}-steps-{setting.granules}-granules")
    if model == EACH:
        parts.append(f"seed-{asked.seed}")
    if setting.stride is not None:
        parts.append(f"stride-{setting.stride}")
    parts += [f"{key}-{value}" for key, value in setting.keys]
    return "-".join(parts)


def load(setup: Setup) -> DriveMixes:
    """Return the figures of a paper, nothing run yet. Errors: `SpecError`."""
    common = Common.of(setup)
    figures = drive_specs.figures(setup, common)
    return DriveMixes(setup, common, figures, drive_specs.machines(common, figures))
