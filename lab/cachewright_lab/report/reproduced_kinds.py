"""What a reproduced paper on kinds of workloads shows: tables and charts.

For: `cachewright_lab.report.reproduced`. Must never know: how numbers were measured, HTML. Accuracy
is of windows that never trained, the mean over kinds of each kind's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cachewright import words
from cachewright.report.figure import Figure
from cachewright.report.parts import Table, plain
from cachewright.train.reports import Confusion, JudgedVolume, KindsReport
from cachewright_lab.report import grouped
from cachewright_lab.reproduce.workload_kinds import KindsFigure, Scenario, WorkloadKinds

Of = Callable[[KindsReport], Confusion]
WHOLE = "whole"
"""The part that judges of a volume that trained nothing."""


def _windows(report: KindsReport) -> Confusion:
    """Return answers for windows one by one."""
    return report.windows_judged


def _tens(report: KindsReport) -> Confusion:
    """Return answers for ten windows together."""
    return report.of_ten


def notes(what: WorkloadKinds) -> list[str]:
    """Return what to know before the numbers."""
    counts = [
        f"{kind}: {counted.train} windows train, {counted.validation} say when to stop"
        for trainings in list(what.found.values())[:1]
        for kind, counted in trainings.report.windows.items()
    ]
    return [
        "rc-rnn reads a window request by request and does not see addresses, only distances from "
        "the request before; the other methods' windows are judged by their mean. Models are as "
        "they are stored, in int8.",
        *counts,
    ]


def shared(what: WorkloadKinds) -> list[Table]:
    """Return tables of all figures together: none."""
    return []


def shown(what: WorkloadKinds, figure: KindsFigure) -> list[Table | Figure]:
    """Return the tables of a figure in the order of the page."""
    match figure.shows:
        case "grid":
            return [_grid(what, figure)]
        case "added":
            return [_added(what, figure), _bars(what, figure, _kept)]
        case "elsewhere":
            return [*_elsewhere(what, figure)]
        case "learning":
            return [_learning(what, figure)]
    found: list[Table | Figure] = [_accuracy(what, figure), _bars(what, figure, _accuracies)]
    found += [_confusion(what, by) for by in figure.methods[:1]]
    return [*found, _variants(what, figure)] if figure.variants else found


def _learning(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return accuracy on what trains and on what judges, after each iteration."""
    scenario = what.scenarios[-1]
    report = what.report(scenario, what.method(figure.methods[0]))
    named = [(str(at), one) for at, one in enumerate(report.curve, 1)]
    if report.best_epoch:
        named.append(("kept", report.curve[report.best_epoch - 1]))
    rows = [[name, _right(one.labelling), _right(one.evaluation)] for name, one in named]
    headers = ["iteration", "labelling (windows that train)", "evaluation (later windows)"]
    return plain(figure.heading, f"accuracy while it learns, {scenario.title}", headers, rows, 1)


def _right(share: float | None) -> str:
    return words.NOTHING if share is None else words.percent(share)


def _accuracies(what: WorkloadKinds, by: str, of: Of = _windows) -> list[float]:
    how = what.method(by)
    return [of(what.report(one, how)).accuracy or 0.0 for one in what.scenarios]


def _best(columns: Sequence[Sequence[float | None]]) -> list[set[int]]:
    """Return the places of the largest in each column."""
    found: list[set[int]] = []
    for column in columns:
        most = max((one for one in column if one is not None), default=None)
        found.append({place for place, one in enumerate(column) if one == most is not None})
    return found


def _accuracy(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return a row per method: each scenario's windows, then ten of them together."""
    columns = [
        [_accuracies(what, by, of)[place] for by in figure.methods]
        for of in (_windows, _tens)
        for place in range(len(what.scenarios))
    ]
    titles = [one.title for one in what.scenarios]
    headers = ["method", *titles, *(f"{title}, ten together" for title in titles)]
    rows = [
        [by, *(_right(column[place]) for column in columns)]
        for place, by in enumerate(figure.methods)
    ]
    best = [set[int](), *_best(columns)]
    return Table(figure.heading, "windows told right", headers, rows, best)


def _bars(
    what: WorkloadKinds, figure: KindsFigure, of: Callable[[WorkloadKinds, str], list[float]]
) -> Figure:
    """Return an accuracy of each method as bars, a group per scenario."""
    rows = [
        {"kinds": scenario.title, "method": by, "value": value}
        for by in figure.methods
        for scenario, value in zip(what.scenarios, of(what, by), strict=True)
    ]
    title = "windows told right (share)"
    caption = "Windows that never trained, of the volumes that trained."
    if figure.shows == "added":
        title = "accuracy by that with the fewest kinds"
        caption = "What is left of a method's accuracy when kinds are added."
    chart = grouped.bars(rows, "kinds", "method", title)
    return Figure(f"{figure.name}-bars", figure.title, caption, chart)


def _confusion(what: WorkloadKinds, by: str) -> Table:
    """Return what the last scenario's windows were taken for."""
    scenario = what.scenarios[-1]
    table = _windows(what.report(scenario, what.method(by)))
    rows = [
        [kind, *(words.count(count) for count in counts), _right(right)]
        for kind, counts, right in zip(
            scenario.kinds, table.confusion, table.accuracy_per_kind, strict=True
        )
    ]
    headers = ["windows of", *(f"as {kind}" for kind in scenario.kinds), "right"]
    title = f"what windows were taken for by {by}, {scenario.title}"
    return plain("", title, headers, rows, 1, "confusion")


def _variants(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return what other networks and other features do on the last scenario."""
    scenario = what.scenarios[-1]
    hows = [(by, what.method(by)) for by in figure.methods]
    hows += [(one.title, one.how) for one in figure.variants]
    reports = [(title, what.report(scenario, how)) for title, how in hows]
    others = [one.name for one in reports[0][1].judged if one.part == WHOLE]
    # What is judged whole is of another volume.
    rows = []
    for title, report in reports:
        judged = {one.name: one.accuracy for one in report.judged}
        own = [_right(one.accuracy) for one in (_windows(report), _tens(report), report.f32)]
        rows.append(
            [
                title,
                report.network,
                *own,
                *(_right(judged[name]) for name in others),
                words.size(report.bytes),
            ]
        )
    headers = ["model", "network", "windows", "ten together", "in f32", *others, "size"]
    title = f"features and networks, {scenario.title}"
    return plain("", title, headers, rows, 2, "variants", keys=1)


def _grid(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return a row per number of units, a column per window."""
    grid = what.grid(figure)
    scenario: Scenario = what.scenarios[0]
    values = [[_windows(what.report(scenario, how)).accuracy for how in row] for row in grid]
    headers = ["units", *(f"{how.window} requests" for how in grid[0])]
    rows = [
        [str(row[0].units), *(_right(value) for value in found)]
        for row, found in zip(grid, values, strict=True)
    ]
    best = [set[int](), *_best(list(zip(*values, strict=True)))]
    return Table(figure.heading, f"windows told right, {scenario.title}", headers, rows, best)


def _kept(what: WorkloadKinds, by: str) -> list[float]:
    """Return each scenario's accuracy as a part of the first one's."""
    found = _accuracies(what, by)
    return [one / found[0] if found[0] > 0 else 0.0 for one in found]


def _added(what: WorkloadKinds, figure: KindsFigure) -> Table:
    """Return what each method keeps when kinds are added."""
    kept = [_kept(what, by) for by in figure.methods]
    columns = list(zip(*kept, strict=True))[1:]
    headers = ["method", *(one.title for one in what.scenarios[1:])]
    rows = [
        [by, *(_right(one) for one in found[1:])]
        for by, found in zip(figure.methods, kept, strict=True)
    ]
    title = f"accuracy as a part of that with {what.scenarios[0].title}"
    return Table(figure.heading, title, headers, rows, [set[int](), *_best(columns)])


def _elsewhere(what: WorkloadKinds, figure: KindsFigure) -> list[Table]:
    """Return a row per volume that trained nothing, its windows by each method."""
    scenario = what.scenarios[-1]
    found: dict[str, list[JudgedVolume]] = {}
    for by in figure.methods:
        for one in what.report(scenario, what.method(by)).judged:
            if one.part == WHOLE:
                found.setdefault(one.name, []).append(one)
    if not found:
        return []
    rows = [
        [
            name,
            scenario.kinds[judged[0].kind],
            words.count(judged[0].windows),
            *(_right(one.accuracy) for one in judged),
            *(_right(one.accuracy_of_ten) for one in judged),
        ]
        for name, judged in found.items()
    ]
    together = [f"{by}, ten together" for by in figure.methods]
    headers = ["volume", "kind", "windows", *figure.methods, *together]
    title = f"windows told right, {scenario.title}"
    return [plain(figure.heading, title, headers, rows, 2, keys=1)]
