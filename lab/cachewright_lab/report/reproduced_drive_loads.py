"""What a reproduced paper on data caches shows of loads: the same mixes at several speeds.

For: `cachewright_lab.report.reproduced_drive`. Must never know: how numbers were measured, HTML.
Units: requests per second. Utilisation is the share of time in which the drive works for a tenant
that runs alone. A slowdown is of the mean response.
"""

from __future__ import annotations

from cachewright import timing, words
from cachewright.answers import Timing
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright_lab.report.reproduced_drive_means import geometric, mean
from cachewright_lab.reproduce.drive_mixes import BASE, DriveMixes
from cachewright_lab.reproduce.drive_specs import DriveFigure, Mix, Setting

NS_PER_S = 1e9
# A mix is saturated when its tenants' utilisations alone add up to more.
SATURATED = 0.3


def shown(what: DriveMixes, figure: DriveFigure) -> list[Table | Figure]:
    """Return tables of tenants alone, of mixes and of max slowdowns, by speed."""
    return [_slowdowns(what, figure), _mixes(what, figure), _tenants(what, figure)]


def _alone(what: DriveMixes, figure: DriveFigure, setting: Setting, workload: str) -> Timing:
    mix = next(one for one in figure.alone if one.name == workload)
    return timing.of(what.of(setting, mix, BASE, 1)[0].case)


def _utilisation(what: DriveMixes, figure: DriveFigure, setting: Setting, workload: str) -> float:
    return max(device.busy for device in _alone(what, figure, setting, workload).devices)


def _sum(what: DriveMixes, figure: DriveFigure, setting: Setting, mix: Mix) -> float:
    return sum(_utilisation(what, figure, setting, one.workload) for one in mix.members)


def _tenants(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return requests per second and utilisation of each tenant alone, by speed."""
    rows = []
    for name in figure.workloads:
        cells = []
        for _, setting in figure.settings:
            rate = _alone(what, figure, setting, name).total.throughput_per_s
            cells.append(words.significant(rate))
            cells.append(words.percent(_utilisation(what, figure, setting, name)))
        rows.append([name, *cells])
    heads = [f"{title}, {part}" for title, _ in figure.settings for part in ("requests/s", "busy")]
    return plain(figure.heading, "tenants alone", ["tenant", *heads], rows, 1, "tenants")


def _mixes(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return the sum of utilisations alone of each mix, by speed, and what that makes of it."""
    rows = []
    for mix in figure.mixes:
        sums = [_sum(what, figure, setting, mix) for _, setting in figure.settings]
        cells = [
            words.Number(f"{words.percent(one)}{' saturated' if one > SATURATED else ''}", one)
            for one in sums
        ]
        rows.append([mix.name, str(len(mix.members)), *cells])
    headers = ["mix", "tenants", *(title for title, _ in figure.settings)]
    title = f"sum of utilisations alone; above {words.percent(SATURATED)} is saturated"
    return plain(figure.heading, title, headers, rows, 2, "utilisation", keys=1)


def _slowdowns(what: DriveMixes, figure: DriveFigure) -> Table:
    """Return geometric means of max slowdowns by speed, number of tenants and scheme."""
    rows = []
    for title, setting in figure.settings:
        for group, mixes in figure.groups():
            cells = []
            for scheme in figure.schemes:
                each = [what.of(setting, mix, scheme, figure.seeds) for mix in mixes]
                found = [mean([one.max_slowdown for one in own]) for own in each]
                cells.append(words.significant(geometric(found)))
            rows.append([title, group, *cells])
    headers = ["speed", "mixes", *(scheme.title for scheme in figure.schemes)]
    title = f"max slowdown, geometric means, {figure.setting.cache}"
    return plain(figure.heading, title, headers, rows, 2)
