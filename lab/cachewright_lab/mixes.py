"""Judges partitioners on mixes at loads that their devices carry: lab/judgement.md.

`python -m cachewright_lab.mixes --captures DIR --traces DIR --out DIR --write`. The recordings of a
mix are stretched to one length, the longest of them and at most ten minutes. Then one factor on all
its times makes the load slower or faster, until the best of four partitioners slows the tenant that
suffers most by 1.5 to 6 times and no device is busy for more than 90 % of the time. A
mix without such a factor stands apart, with the reason. At the load found, all partitioners are
replayed in an open loop; in a closed loop times of recordings do not count, and it is replayed
once. Factors and cases that are finished are kept in the folder of results, so that a run with
another scheme (`--also`) runs that scheme alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import cachewright
from cachewright.answers import Case, Device
from cachewright_lab import judgement, regret
from cachewright_lab.judges import elsewhere, fresh, later, long
from cachewright_lab.study import (
    Mix,
    Programme,
    Replay,
    Row,
    Study,
    Volume,
    grid,
    mean_response,
    present,
    row_of,
    worst_slowdown,
)

# Mixes by group of volumes. Of fresh captures there is one per seed, of those of ten minutes one
# in all.
JUDGES = (
    ("judge-oltp", "judge-mail"),
    ("judge-web", "judge-file"),
    ("judge-oltp", "judge-mail", "judge-web", "judge-file"),
)
PUBLIC = (("cloudphysics", "fin1"), ("msr-web_3", "dtrs"))
FRESH = (("queue", "series"), ("queue", "search"))
# The kinds whose programs have phases: captures of ten minutes, and of one.
PHASED = (
    ("backups", "farm"),
    ("desktops", "farm"),
    ("desktops", "backups"),
    ("desktops", "backups", "farm"),
)
# Longer recordings (public volumes have up to a week) are taken at a higher speed.
LONGEST_S = 600.0
# Of captures of ten minutes (2.0 M requests of desktops) a share of the addresses, for time.
LONG_SAMPLE = "10%"

# The search for a load: its partitioners, and what is asked of the best of them.
SEARCHED = ("shared", "equal", "dp-response", "auto")
LEAST_SLOWDOWN, MOST_SLOWDOWN = 1.2, 10.0
SLOWDOWN_SINCE, SLOWDOWN_UNTIL = 1.5, 6.0
MOST_BUSY = 0.9
# A replay of `shared`, so slow that queues are short, says how much work there is for devices.
# At the first load tried the busiest of them is busy for this share of the time.
SLOW_FACTOR, FIRST_BUSY = 8.0, 0.7
# Loads that are tried.
STEPS = 6
# Where requests arrive for a shorter time, the cache is divided too few times to judge divisions.
INTERVAL_S = 2
LEAST_S = 10.0 * INTERVAL_S
# Without a bound on that side, the next load is so much slower.
SLOWER = 4.0

# Schemes with models or the future are left out.
SCHEMES = (*regret.TIMED, "hare")
UNITS_NS = {"us": 1e3, "ms": 1e6}


@dataclass(frozen=True)
class Load:
    """A load that was tried: the factor on all times, and what the best partitioner makes of it."""

    factor: float
    # The least of the partitioners' largest slowdowns, and whose it is.
    slowdown: float
    scheme: str
    # Under that partitioner: the share of the time that the busiest device has work, above 1 for
    # more work than time.
    busy: float
    # How long requests arrive.
    seconds: float

    @property
    def overrun(self) -> bool:
        """Say whether a device has more work than it can do with short queues."""
        return self.busy > MOST_BUSY

    @property
    def near(self) -> bool:
        """Say whether the search ends here."""
        return not self.overrun and SLOWDOWN_SINCE <= self.slowdown <= SLOWDOWN_UNTIL

    @property
    def judges(self) -> bool:
        """Say whether it may be taken, if none that is nearer was found."""
        fits = LEAST_SLOWDOWN <= self.slowdown <= MOST_SLOWDOWN
        return fits and not self.overrun and self.seconds >= LEAST_S


def searched(slow_busy: float, replayed: Callable[[float], Load]) -> list[Load]:
    """Return the loads that were tried, by bisection; the last one may be what was looked for.

    `slow_busy` is the share of the time that the busiest device has work at `SLOW_FACTOR`.
    """
    # Work is in proportion to the pace of arrivals: a faster load than this overruns a device.
    too_fast = _rounded(SLOW_FACTOR * slow_busy / MOST_BUSY)
    too_slow = math.inf
    factor = _rounded(SLOW_FACTOR * slow_busy / FIRST_BUSY)
    tried: list[Load] = []
    for _ in range(STEPS):
        load = replayed(factor)
        tried.append(load)
        if load.near:
            break
        if load.overrun or load.slowdown > SLOWDOWN_UNTIL:
            too_fast = factor
        else:
            too_slow = factor
        bounded = math.isfinite(too_slow)
        factor = _rounded(math.sqrt(too_fast * too_slow) if bounded else SLOWER * factor)
    return tried


def _rounded(factor: float) -> float:
    return float(f"{factor:.4g}")


def chosen(tried: Sequence[Load]) -> Load | None:
    """Return the load that judges: the one nearest to the middle of what the search looks for."""
    middle = math.sqrt(SLOWDOWN_SINCE * SLOWDOWN_UNTIL)
    fit = [one for one in tried if one.judges]
    return min(fit, key=lambda one: abs(math.log(one.slowdown / middle)), default=None)


def reason(tried: Sequence[Load]) -> str:
    """Return why no load judges."""
    if tried[-1].near:
        return (
            f"too light: with a least slowdown of {tried[-1].slowdown:.2f} requests arrive for "
            f"{tried[-1].seconds:.0f} s, in which a cache is divided too few times"
        )
    carried = [one for one in tried if not one.overrun]
    if not carried:
        least = min(tried, key=lambda one: one.busy)
        return f"a device is busy {100 * least.busy:.0f} % at the slowest load tried"
    if all(one.slowdown > MOST_SLOWDOWN for one in carried):
        one = min(carried, key=lambda one: one.slowdown)
        return (
            f"bursts overrun the devices: at factor {one.factor:g} the busiest is busy "
            f"{100 * one.busy:.0f} %, and the least slowdown is {one.slowdown:.1f}"
        )
    most = max(carried, key=lambda one: one.slowdown)
    return (
        f"tenants hardly slow each other down: the least slowdown is {most.slowdown:.2f} at most, "
        f"at {100 * most.busy:.0f} % busy"
    )


def _service_ns(text: str) -> float:
    return float(text[:-2]) * UNITS_NS[text[-2:]]


def busiest(devices: Iterable[Device], arrivals_ns: float) -> float:
    """Return the work of the busiest device over what it could do in the time of the arrivals."""
    shares: list[float] = []
    for device in devices:
        about = regret.TIERED["device"][device.name.split()[0]]
        work_ns = device.reads * _service_ns(about["read"])
        work_ns += device.writes * _service_ns(about["write"])
        shares.append(work_ns / int(about["parallelism"]) / arrivals_ns)
    return max(shares)


def _busy(case: Case, spans: Sequence[float], factor: float) -> float:
    assert case.timing is not None, "the stack has devices"
    return busiest(case.timing.devices, 1e9 * factor * length_s(spans))


def length_s(spans: Sequence[float]) -> float:
    """Return the seconds to which the recordings of a mix are stretched before a factor counts."""
    return min(max(spans), LONGEST_S)


def spans_s(mix: Mix) -> list[float]:
    """Return the seconds from first to last request of each volume of a mix."""
    return [_span_s(volume.path) for volume in mix.volumes]


@cache
def _span_s(path: Path) -> float:
    span_ns = cachewright.info(str(path)).span_ns
    if not span_ns:
        raise SystemExit(f"{path}: found no times, expected those of its requests")
    return span_ns / 1e9


def stack(mix: Mix, capacity: str, spans: Sequence[float], factor: float) -> dict[str, Any]:
    """Return the stack of a mix at a load."""
    length = length_s(spans)
    tenants = [
        {
            **volume.tenant(),
            "time_scale": _rounded(factor * length / span),
            **({"sample": LONG_SAMPLE} if volume.group == "long" else {}),
        }
        for volume, span in zip(mix.volumes, spans, strict=True)
    ]
    return {
        "name": label(mix),
        "cache": {"capacity": capacity, "policy": "lru"},
        "replay": {"interval": f"{INTERVAL_S}s"},
        "tenant": tenants,
        **regret.TIERED,
    }


def label(mix: Mix) -> str:
    """Return the name of a mix for a folder."""
    return mix.name.replace(" ", "-").replace("+", "-").replace("#", "")


@dataclass(frozen=True)
class Judged:
    """A mix at one size of the cache, with the folder of its results."""

    mix: Mix
    capacity: str
    folder: Path

    def search(self) -> list[Load]:
        """Return the loads tried; what was found before is kept."""
        kept = self.folder / "loads.json"
        if kept.is_file():
            return [Load(**one) for one in json.loads(kept.read_text(encoding="utf-8"))]
        spans = spans_s(self.mix)
        tried = searched(self._slow_busy(spans), lambda factor: self._tried(spans, factor))
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps([asdict(one) for one in tried], indent=1)
        kept.write_text(text, encoding="utf-8")
        return tried

    def _slow_busy(self, spans: Sequence[float]) -> float:
        own = stack(self.mix, self.capacity, spans, SLOW_FACTOR)
        own["machine"] = {**own["machine"], "alone": False}
        folder = self.folder / "slow"
        (case,) = Replay(self.mix, own, {"partition": ["shared"]}, {}, folder).cases()
        return _busy(case, spans, SLOW_FACTOR)

    def _tried(self, spans: Sequence[float], factor: float) -> Load:
        best = min(self._cases(spans, factor, SEARCHED, {}), key=worst_slowdown)
        scheme, busy = best.settings["cache.partition"], _busy(best, spans, factor)
        load = Load(factor, worst_slowdown(best), scheme, busy, factor * length_s(spans))
        print(f"{self.folder.name}: {load}", file=sys.stderr)
        return load

    def _cases(
        self, spans: Sequence[float], factor: float, schemes: Sequence[str], replay: dict[str, str]
    ) -> tuple[Case, ...]:
        own = stack(self.mix, self.capacity, spans, factor)
        own["replay"] |= replay
        folder = self.folder / "-".join([f"{factor:g}", *replay.values()])
        return Replay(self.mix, own, {"partition": schemes}, {}, folder).cases()

    def rows(self, schemes: Sequence[str], *, closed: bool) -> Iterator[Row]:
        """Yield what every scheme gave at the load found, nothing for a mix that stands apart."""
        load = chosen(self.search())
        if load is None:
            return
        spans, replay = spans_s(self.mix), {"loop": "closed"} if closed else {}
        cases = self._cases(spans, load.factor, schemes, replay)
        (alike,) = (case for case in cases if case.settings["cache.partition"] == "equal")
        for case in cases:
            assert case.timing is not None, "the stack has devices"
            values = {
                "hits": case.total.hit_ratio or 0.0,
                "mean": mean_response(case),
                "p99": float(case.timing.total.p99_ns),
                "writes": judgement.writes(case),
                "slowdown": worst_slowdown(case),
                "goals": reached(case, alike),
            }
            yield row_of(self.mix, self.capacity, case.settings["cache.partition"], values)

    def told(self) -> Iterator[Row]:
        """Yield goals met by schemes that know them, without devices, at the load found."""
        load = chosen(self.search())
        if load is None:
            return
        own = stack(self.mix, self.capacity, spans_s(self.mix), load.factor)
        for key in regret.TIERED:
            del own[key]
        yield from judgement.goals_of(self.mix, own, self.folder / "goals", judgement.GOAL_SHARE)


def reached(case: Case, alike: Case) -> float:
    """Return the share of tenants with 90 % of the hit ratio that an equal division gives them."""
    pairs = zip(case.tenants, alike.tenants, strict=True)
    share = judgement.GOAL_SHARE
    return fmean((one.hit_ratio or 0.0) >= share * (equal.hit_ratio or 0.0) for one, equal in pairs)


def mixes_of(volumes: Iterable[Volume], names: Iterable[Sequence[str]], about: str) -> list[Mix]:
    """Return the mixes of volumes by their names; without all of its volumes there is no mix."""
    by_name = {one.name: one for one in volumes}
    return [
        Mix(f"{'+'.join(each)} {about}", tuple(by_name[name] for name in each))
        for each in names
        if all(name in by_name for name in each)
    ]


def judging(given: argparse.Namespace) -> Iterator[Judged]:
    """Yield every mix at every size."""
    parts = present(later(given.traces, given.out / "later"))
    others, captures = present(elsewhere(given.traces)), fresh(given.captures)
    mixes = mixes_of(parts, judgement.LATER_MIXES, "later")
    mixes += mixes_of(others, JUDGES, "cut")
    mixes += mixes_of(others, PUBLIC, "public")
    for at in range(max((_nth(captures, one) for one in captures), default=-1) + 1):
        alike = [one for one in captures if _nth(captures, one) == at]
        mixes += mixes_of(alike, (*FRESH, *PHASED), f"#{at + 1}")
    mixes += mixes_of(long(given.captures), PHASED, "of ten minutes")
    for mix in mixes:
        for capacity in regret.CAPACITIES:
            folder = given.out / f"{label(mix)}-{capacity.removesuffix('%wss')}"
            yield Judged(mix, capacity, folder)


def _nth(captures: Sequence[Volume], one: Volume) -> int:
    """Return how many captures of the same kind come before one."""
    return [other for other in captures if other.name == one.name].index(one)


def schemes(given: argparse.Namespace) -> list[str]:
    """Return the schemes that are compared."""
    return [*SCHEMES, *given.also]


def of_loops(closed: bool) -> Callable[[argparse.Namespace], Iterator[Row]]:
    """Return what yields the rows of open or closed loops."""

    def rows(given: argparse.Namespace) -> Iterator[Row]:
        for one in judging(given):
            yield from one.rows(schemes(given), closed=closed)

    return rows


def of_goals(given: argparse.Namespace) -> Iterator[Row]:
    """Yield the goals met by schemes that know them."""
    for one in judging(given):
        yield from one.told()


# Measures by name: their title, and whether more is better.
MEASURES = {
    "slowdown": ("largest slowdown", False),
    "mean": ("mean response", False),
    "p99": ("p99 response", False),
    "hits": ("hits", True),
    "writes": ("flash writes", False),
}


def studies(found: Iterable[Row]) -> dict[tuple[str, str], dict[str, Mapping[str, float]]]:
    """Return the values of each scheme, by mix and size."""
    values: dict[tuple[str, str], dict[str, Mapping[str, float]]] = {}
    for one in found:
        values.setdefault((one.subject, one.setting), {})[one.scheme] = one.values
    return values


def losses(found: Sequence[Row], measure: str) -> dict[str, dict[str, float]]:
    """Return by scheme and study what it loses beside the best: the excess, of hits the share."""
    lost: dict[str, dict[str, float]] = {}
    more = MEASURES[measure][1]
    for key, own in studies(found).items():
        values = {scheme: each[measure] for scheme, each in own.items()}
        best = (max if more else min)(values.values())
        for scheme, value in values.items():
            loss = 1 - value / max(best, judgement.EPSILON) if more else value / best - 1
            lost.setdefault(scheme, {})[" ".join(key)] = loss
    return lost


def mean_loss(lost: Iterable[float]) -> float:
    """Return the geometric mean: one mix whose queue grows would be all of an arithmetic mean."""
    return math.exp(fmean(math.log1p(one) for one in lost)) - 1


def losses_table(found: Sequence[Row]) -> str:
    """Return worst and mean loss of each scheme by measure, and the tenants that it keeps."""
    by_measure = {measure: losses(found, measure) for measure in MEASURES}
    names = sorted(
        by_measure["slowdown"], key=lambda one: mean_loss(by_measure["slowdown"][one].values())
    )
    rows = []
    for scheme in names:
        row = [judgement.title(scheme)]
        for measure, lost in by_measure.items():
            worst = max(lost[scheme], key=lambda one: lost[scheme][one])
            mean = (fmean if MEASURES[measure][1] else mean_loss)(lost[scheme].values())
            row.append(f"{100 * lost[scheme][worst]:,.0f} %, {100 * mean:.1f} % ({worst})")
        own = [one for one in found if one.scheme == scheme]
        kept = sum(round(one.values["goals"] * one.tenants) for one in own)
        rows.append([*row, f"{kept} of {sum(one.tenants for one in own)}"])
    head = ["partitioner", *(f"{name}: worst, mean" for name, _ in MEASURES.values())]
    return grid([*head, "tenants near an equal share"], rows, len(head))


def values_table(found: Sequence[Row], measure: str, unit: float = 1.0) -> str:
    """Return one measure of every scheme on every mix; the best of each row is bold."""
    names = list(dict.fromkeys(one.scheme for one in found))
    pick = max if MEASURES[measure][1] else min
    rows = []
    for key, own in studies(found).items():
        best = pick(own, key=lambda one: own[one][measure])
        cells = [f"{own[one][measure] / unit:.2f}" for one in names]
        bold = [
            f"**{cell}**" if one == best else cell for one, cell in zip(names, cells, strict=True)
        ]
        rows.append([f"{key[0]}, {key[1]}", *bold])
    return grid(["mix", *(judgement.title(one) for one in names)], rows)


def loads_table(given: argparse.Namespace) -> str:
    """Return the load of every mix that judges."""
    rows = []
    for one in judging(given):
        load = chosen(one.search())
        if load is not None:
            cells = [f"{load.factor:g}", f"{load.slowdown:.2f}", f"`{load.scheme}`"]
            rows.append([f"{one.mix.name}, {one.capacity}", *cells, f"{100 * load.busy:.0f} %"])
    return grid(["mix", "factor", "least slowdown", "of", "busiest device"], rows)


def apart_table(given: argparse.Namespace) -> str:
    """Return the mixes that stand apart, and why."""
    rows = [
        [f"{one.mix.name}, {one.capacity}", reason(one.search())]
        for one in judging(given)
        if chosen(one.search()) is None
    ]
    return grid(["mix", "why it does not judge"], rows or [["none", ""]], 2)


def aims(found: Mapping[str, Sequence[Row]]) -> list[judgement.Aim]:
    """Return the aims of slowdowns and of goals."""
    own = []
    for name, rows in found.items():
        if name not in LOOPS:
            continue
        lost = losses(rows, "slowdown")["auto"]
        worst = max(lost, key=lambda one: lost[one])
        within = sum(one <= SLOWDOWN_AIM for one in lost.values())
        about = f"worst on {worst}; within 15 % on {within} of {len(lost)}"
        what = f"Largest slowdown of `auto` in every mix, beside its best, {LOOPS[name]}"
        own.append(judgement.Aim(what, SLOWDOWN_AIM, lost[worst], True, about))
    if GOALS in found:
        own += judgement.aims_of_goals(found[GOALS])
    return own


SLOWDOWN_AIM = 0.15
OPEN, CLOSED, GOALS = "open loops", "closed loops", "goals at carried loads"
LOOPS = {OPEN: "open loop", CLOSED: "closed loop"}


def together(given: argparse.Namespace, found: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Return the tables of captures and loads, and of the aims where all studies were run."""
    captures = judgement.captures_table(given.captures)
    own = {"loads": loads_table(given), "apart": apart_table(given)}
    table = {"aims of mixes": judgement.aims_table(aims(found))}
    if given.only:
        print(f"{table['aims of mixes']}\n")
        table = {}
    return {**captures, **own, **table}


def loop_tables(name: str) -> Callable[[argparse.Namespace, Sequence[Row]], dict[str, str]]:
    """Return what makes the tables of a loop."""
    return lambda _, rows: {
        f"losses in {name}": losses_table(rows),
        f"slowdowns in {name}": values_table(rows, "slowdown"),
    }


def options(parser: argparse.ArgumentParser) -> None:
    """Add what is given beside the usual."""
    parser.add_argument("--captures", type=Path, required=True, help="folder of fresh captures")
    parser.add_argument(
        "--traces", type=Path, required=True, help="folder of captured/ and public/"
    )
    about = "a further partitioner to compare; finished cases of the others are kept"
    parser.add_argument("--also", action="append", default=[], metavar="SCHEME", help=about)


STUDIES = {
    OPEN: Study(of_loops(closed=False), loop_tables(OPEN)),
    CLOSED: Study(of_loops(closed=True), loop_tables(CLOSED)),
    GOALS: Study(of_goals, judgement.one_table(GOALS, judgement.goals_table)),
}
PROGRAMME = Programme(
    "Judges partitioners on mixes at loads that their devices carry.",
    judgement.PAGE,
    STUDIES,
    options,
    together,
)

if __name__ == "__main__":
    sys.exit(PROGRAMME.main())
