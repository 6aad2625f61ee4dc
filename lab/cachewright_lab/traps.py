"""Traps: what every scheme loses on traces that are made to mislead schemes which adapt.

`python -m cachewright_lab.traps --out DIR [--write]` makes the tables of lab/traps.md. Traps are
the descriptions `specs/synth/trap-*.toml`, one of each kind; schemes come from the registries, so
that a new one takes part. Policies are judged by misses, partitioners by the largest slowdown of a
tenant, separations by write amplification, each beside a fixed rule, the best choice among several,
and one that knows the future. The seed is that of the trace and of the schemes. Ratios: 1.00 is as
much.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cachewright
from cachewright import registries
from cachewright_lab.regret import TIERED
from cachewright_lab.study import (
    LAB,
    ROOT,
    Measures,
    Programme,
    Replay,
    Row,
    Study,
    Volume,
    grid,
    misses,
    worst_slowdown,
)

PAGE = LAB / "traps.md"
SPECS = ROOT / "specs" / "synth"
BLOCK = 4096
SEEDS = 5
MANY_SEEDS, MANY_SEEDS_OF = 100, ("lru", "duel-x", "guarded")

# Kinds that are aimed at partitioners and at separations; all others are at policies.
PARTITIONERS = ("swap", "idle-return")
SEPARATIONS = ("writer-as-reader", "reader-as-writer")
# Periods of `alternation` in cache sizes: the memories of `cacheus` (1/2), `cachesack` (2),
# `access-frequency` and `rc-x` (16), `duel-x` (100).
MEMORIES = (0.5, 2, 16, 100)
# Periods of `swap` in requests: an interval, and the four after which `icache-x` counts half.
INTERVALS = (2000, 8000)
# Turns that a trap with periods takes.
LEAST_PERIODS = 6

# Policies that do not change their ways with the workload. All others count as adaptive.
STATIC_POLICIES = ("lru", "fifo", "clock", "sieve", "lfu", "s3-fifo", "2q", "slru", "lirs")
# What no run here provides.
UNMET_NEEDS = {"benefit", "model", "joint model", "code", "drive's channels"}
# Shares of the first of two tenants, in eighths of the cache.
SHARES = tuple(range(1, 8))
CONSTANT = "best constant share"
# Told the shares of each interval, it does not find them.
TOLD = ("scheduled",)
GOAL_HIT_RATIO = 0.25
STATIC_PARTITIONERS = ("shared", "equal", "static", "costpi")
STATIC_SEPARATIONS = ("none", "2r")
OVER_PROVISIONED = "28%"
RECLAIM = "death-rate"
SUPERBLOCKS = 128
# The small version, which a test runs: most blocks of the cache or drive, and requests.
QUICK_BLOCKS = {"partitioners": 128, "policies": 128, "separations": 2048}
QUICK_COUNT = {"partitioners": 4000, "policies": 4000, "separations": 16_384}


@dataclass(frozen=True)
class Trap:
    """A description of specs/synth, its numbers as it has them or changed."""

    kind: str
    cache_blocks: int
    count: int
    period: int | None = None
    # The period as tables say it.
    said: str = ""

    @property
    def name(self) -> str:
        """The kind, with its period where there are several."""
        return f"{self.kind} {self.said}".strip()

    @property
    def aimed_at(self) -> str:
        """The schemes that it misleads."""
        if self.kind in PARTITIONERS:
            return "partitioners"
        return "separations" if self.kind in SEPARATIONS else "policies"

    @property
    def cache(self) -> str:
        """The size of the cache that it is aimed at."""
        return f"{self.cache_blocks * BLOCK // 1024}KiB"

    def lasting(self, period: int, said: str) -> Trap:
        """Return the trap with another period, and long enough for some of them."""
        count = max(self.count, LEAST_PERIODS * period)
        return replace(self, period=period, count=count, said=said)

    def variants(self) -> Iterator[Trap]:
        """Yield the trap with each of its periods."""
        if self.kind == "alternation":
            for memory in MEMORIES:
                yield self.lasting(int(memory * self.cache_blocks), f"{memory:g}C")
        elif self.kind == "swap":
            for requests in INTERVALS:
                yield self.lasting(requests, f"{requests}")
        else:
            yield self

    def smaller(self) -> Trap:
        """Return the trap aimed at a cache or drive of the size of a test."""
        blocks = min(self.cache_blocks, QUICK_BLOCKS[self.aimed_at])
        return replace(self, cache_blocks=blocks, period=None)

    def shorter(self) -> Trap:
        """Return the trap with the requests of a test."""
        return replace(self, count=QUICK_COUNT[self.aimed_at])

    def written(self, folder: Path) -> str:
        """Write the description into a folder and return its path."""
        period = "" if self.period is None else f"period = {self.period}\n"
        text = f'[synth]\nseed = 1\n\n[trap]\nkind = "{self.kind}"\ncache = "{self.cache}"\n'
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name.replace(' ', '-')}.toml"
        path.write_text(f"{text}{period}count = {self.count}\n", encoding="utf-8")
        return str(path)


def traps(aimed_at: str, *, quick: bool) -> list[Trap]:
    """Return the traps of specs/synth that are aimed at these schemes."""
    found: list[Trap] = []
    for path in sorted(SPECS.glob("trap-*.toml")):
        keys = tomllib.loads(path.read_text(encoding="utf-8"))["trap"]
        mebibytes = keys["cache"].removesuffix("MiB")
        blocks = int(mebibytes) * 1024 * 1024 // BLOCK
        trap = Trap(keys["kind"], blocks, keys["count"], keys.get("period"))
        variants = list((trap.smaller() if quick else trap).variants())
        found += [one.shorter() for one in variants] if quick else variants
    return [trap for trap in found if trap.aimed_at == aimed_at]


def schemes(stage: registries.Registry, left_out: Sequence[str] = ()) -> list[str]:
    """Return the schemes of a registry whose needs are met here."""
    entries = registries.list(stage)
    met = [entry.name for entry in entries if not UNMET_NEEDS & set(entry.needs)]
    return [name for name in met if name not in left_out]


def tenants(trap: Trap, path: str, seed: int) -> list[dict[str, Any]]:
    """Return the tenants of a stack: the volumes of the trap."""
    names = {"swap": ("first", "second"), "idle-return": ("steady", "returning")}
    own = {"trace": path, "options": {"seed": seed}}
    return [{"name": name, "volume": name, **own} for name in names.get(trap.kind, ("trap",))]


def stack_of(trap: Trap, folder: Path, seed: int) -> dict[str, Any]:
    """Return the stack of a cache of the size that the trap is aimed at."""
    return {
        "name": f"{trap.name} {seed}",
        "seed": seed,
        "cache": {"capacity": trap.cache, "policy": "lru"},
        "tenant": tenants(trap, trap.written(folder), seed),
    }


@dataclass(frozen=True)
class Measured:
    """Cases of one trap and one seed."""

    trap: Trap
    seed: int
    folder: Path

    def rows(
        self, stack: Mapping[str, Any], key: str, names: Sequence[str], measures: Measures
    ) -> Iterator[Row]:
        """Yield what each scheme gave."""
        volume = Volume(self.trap.name, self.folder)
        setting = "capacity" if key == "policy" else "policy"
        replay = Replay(volume, stack, {key: names}, measures, self.folder, key, setting)
        for row in replay.rows():
            yield replace(row, setting=f"seed {self.seed}", seed=self.seed)


def runs(
    given: argparse.Namespace, aimed_at: str, seeds: int, kept: str = ""
) -> Iterator[Measured]:
    """Yield every trap that is aimed at these schemes, seed by seed."""
    for trap in traps(aimed_at, quick=given.quick):
        for seed in range(1, seeds + 1):
            name = f"{trap.name.replace(' ', '-')}-{seed}"
            yield Measured(trap, seed, given.out / (kept or aimed_at) / name)


def of_policies(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the misses of policies."""
    yield from _misses(given, schemes("policies"), runs(given, "policies", given.seeds))


def of_many_seeds(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the misses of some policies under many seeds."""
    seeds = runs(given, "policies", MANY_SEEDS, "many-seeds")
    yield from _misses(given, MANY_SEEDS_OF, seeds)


def _misses(
    given: argparse.Namespace, names: Sequence[str], found: Iterator[Measured]
) -> Iterator[Row]:
    for run in found:
        stack = stack_of(run.trap, given.out / "traps", run.seed)
        yield from run.rows(stack, "policy", names, {"misses": misses})


def of_partitioners(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the largest slowdowns under partitioners, and under the best constant share."""
    measures = {"slowdown": worst_slowdown}
    names = schemes("partitions", TOLD)
    for run in runs(given, "partitioners", given.seeds):
        stack = {**stack_of(run.trap, given.out / "traps", run.seed), **TIERED}
        for tenant in stack["tenant"]:
            tenant["goal_hit_ratio"] = GOAL_HIT_RATIO
        yield from run.rows(stack, "partition", names, measures)
        found: list[Row] = []
        for share in SHARES:
            shares = zip(stack["tenant"], (share, len(SHARES) + 1 - share), strict=True)
            weighted = [{**tenant, "weight": weight} for tenant, weight in shares]
            divided = replace(run, folder=run.folder.with_name(f"{run.folder.name}-{share}"))
            found += divided.rows({**stack, "tenant": weighted}, "partition", ["static"], measures)
        yield replace(min(found, key=lambda row: row.values["slowdown"]), scheme=CONSTANT)


def of_separations(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the write amplification of separations."""
    for run in runs(given, "separations", given.seeds):
        answer = cachewright.wa(
            stack_of(run.trap, given.out / "traps", run.seed),
            schemes("separations"),
            reclaims=(RECLAIM,),
            op=(OVER_PROVISIONED,),
            superblock=f"{run.trap.cache_blocks * BLOCK // SUPERBLOCKS // 1024}KiB",
            out=run.folder,
        ).answer
        for case in answer.cases:
            values = {"amplification": 1.0 + case.extra_writes}
            yield Row(run.trap.name, f"seed {run.seed}", case.separation, values, seed=run.seed)


# What a scheme is measured beside: of all values of a trap and a seed, the one that is 1.
Base = Callable[[Mapping[str, float]], float]


def least_of(names: Sequence[str]) -> Base:
    """Return what takes the least of some schemes."""
    return lambda values: min(values[name] for name in names if name in values)


def title(scheme: str) -> str:
    """Return the name of a scheme as tables say it: static, or a bound that knows the future."""
    stages: tuple[registries.Registry, ...] = ("policies", "partitions", "separations")
    listed = [entry for stage in stages for entry in registries.list(stage)]
    if scheme == CONSTANT or any(scheme == one.name and "future" in one.needs for one in listed):
        return f"`{scheme}` (bound)"
    static = (*STATIC_POLICIES, *STATIC_PARTITIONERS, *STATIC_SEPARATIONS)
    return f"`{scheme}` (static)" if scheme in static else f"`{scheme}`"


def table(rows: Sequence[Row], measure: str, base: Base) -> str:
    """Return a row per scheme: its mean on each trap, and worst and mean over all."""
    runs_of: dict[tuple[str, int], dict[str, float]] = {}
    for row in rows:
        runs_of.setdefault((row.subject, row.seed), {})[row.scheme] = row.values[measure]
    ratios: dict[str, dict[tuple[str, int], float]] = {}
    for run, values in runs_of.items():
        for scheme, value in values.items():
            ratios.setdefault(scheme, {})[run] = value / base(values)
    subjects = list(dict.fromkeys(row.subject for row in rows))
    body = []
    for scheme, found in ratios.items():
        of_traps = [[one for (name, _), one in found.items() if name == each] for each in subjects]
        means = [sum(each) / len(each) for each in of_traps]
        worst, where = max((ratio, run) for run, ratio in found.items())
        cells = [f"{mean:.2f}" for mean in means]
        named = f"{worst:.2f} ({where[0]}, seed {where[1]})"
        body.append((worst, [title(scheme), *cells, named, f"{sum(means) / len(means):.2f}"]))
    body.sort(key=lambda line: (line[0], line[1][0]))
    head = ["scheme", *subjects, "worst (where)", "mean"]
    return grid(head, [line for _, line in body])


def one(_: Mapping[str, float]) -> float:
    """Return 1: values as they are."""
    return 1.0


def policies_tables(rows: Sequence[Row]) -> dict[str, str]:
    """Return misses beside `lru`, beside the best static policy and beside the future."""
    return {
        "misses beside lru": table(rows, "misses", lambda values: values["lru"]),
        "misses beside the best": table(rows, "misses", least_of(STATIC_POLICIES)),
    }


def partitioners_tables(rows: Sequence[Row]) -> dict[str, str]:
    """Return the largest slowdowns, as they are and beside the best constant share."""
    return {
        "slowdowns": table(rows, "slowdown", one),
        "slowdowns beside the best": table(rows, "slowdown", least_of((CONSTANT,))),
    }


def separations_tables(rows: Sequence[Row]) -> dict[str, str]:
    """Return write amplification, as it is and beside the better of two fixed rules."""
    return {
        "amplification": table(rows, "amplification", one),
        "amplification beside the best": table(rows, "amplification", least_of(STATIC_SEPARATIONS)),
    }


def many_seeds(rows: Sequence[Row]) -> dict[str, str]:
    """Return how policies stand beside `lru` over many seeds, trap by trap."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for row in rows:
        of_seed = found.setdefault(row.subject, {}).setdefault(row.seed, {})
        of_seed[row.scheme] = row.values["misses"]
    body = []
    for scheme in MANY_SEEDS_OF[1:]:
        for subject, seeds in found.items():
            ratios = {seed: each[scheme] / each["lru"] for seed, each in seeds.items()}
            worst = max(ratios, key=lambda seed: (ratios[seed], -seed))
            mean = sum(ratios.values()) / len(ratios)
            cells = [f"{min(ratios.values()):.3f}", f"{mean:.3f}", f"{ratios[worst]:.3f}"]
            body.append([f"`{scheme}`", subject, str(len(ratios)), *cells, str(worst)])
    head = ["policy", "trap", "seeds", "least", "mean", "worst", "seed of the worst"]
    return {"many seeds": grid(head, body)}


def options(parser: argparse.ArgumentParser) -> None:
    """Add what is given beside the usual."""
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds of each trap")
    parser.add_argument("--quick", action="store_true", help="small caches and short traces")


STUDIES = {
    "policies": Study(of_policies, lambda _, rows: policies_tables(rows)),
    "partitioners": Study(of_partitioners, lambda _, rows: partitioners_tables(rows)),
    "separations": Study(of_separations, lambda _, rows: separations_tables(rows)),
    "many seeds": Study(of_many_seeds, lambda _, rows: many_seeds(rows), usual=False),
}
PROGRAMME = Programme("Measures what schemes lose on traps.", PAGE, STUDIES, options)

if __name__ == "__main__":
    sys.exit(PROGRAMME.main())
