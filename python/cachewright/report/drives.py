"""Figures of drives: how busy channels and dies were, what dies did, where energy went.

For: the report of stacks with devices. Must never know: HTML. Units: shares of the replay's time as
percentages, joules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import summary, timing, words
from cachewright.answers import Case, Dies
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.plots import COLOURS, Panel, Plot, Ramp, Series, data, distinct

if TYPE_CHECKING:
    from cachewright.results import RunFrames

# Drives with more parts than this are not drawn part by part.
MOST_DIES = 1024


def figures(result: RunFrames, cases: list[Case]) -> list[Figure]:
    """Return the figures of timed cases, the fastest first."""
    label = summary.label(cases[0], result.answer.varied)
    of_case = f"Fastest case ({label}): " if len(cases) > 1 else ""
    found = [
        _busy(name, drive, of_case)
        for name, drive in timing.drives(cases[0])
        if len(drive.dies.busy) <= MOST_DIES
    ]
    spent = [case for case in cases if timing.energy(case)]
    return [*found, _energy(result, spent)] if spent else found


def _busy(name: str, drive: timing.Drive, of_case: str) -> Figure:
    channels, dies = drive.channels.busy, drive.dies
    unit, per_channel = dies.unit, len(dies.busy) // len(channels)
    parts = [
        {"channel": at // per_channel, "place": at % per_channel, "busy": share}
        for at, share in enumerate(dies.busy)
    ]
    stages = list(dies.stages)
    series = Series("stage", stages, "spent on", "box")
    busiest = max(*dies.busy, 1e-9)
    ramp = Ramp(f"{unit} busy", words.percent(0.0), words.percent(busiest))
    height = max(90, min(14 * per_channel, 260))
    key = "" if name == "drive" else f"-{name.replace(' ', '-')}"
    title = "How busy the flash was" if name == "drive" else f"How busy the flash of {name} was"
    caption = (
        f"{of_case}What the {unit}s spent their time on, on average; the share of the time that "
        f"each channel was taken; and that each {unit} worked."
    )
    panels = [_stages(dies, series), _channels(channels), _grid(parts, unit, busiest, height)]
    return Figure(f"drive-busy{key}", title, caption, Plot(panels, [series, ramp]))


def _channels(channels: Sequence[float]) -> Panel:
    rows = [{"channel": at, "busy": share} for at, share in enumerate(channels)]
    tips = [Tip("channel", "channel"), Tip("busy", "busy", "percent")]
    bars = alt.Chart(data(rows)).mark_bar(color=COLOURS[0])
    bars = bars.encode(_channel(), alt.Y("busy:Q").title("channel busy").axis(format="%"))
    return Panel([marks.tipped(bars, tips)], height=100, says=marks.reading(rows, tips))


def _channel() -> alt.X:
    return alt.X("channel:O").title("channel").axis(labelAngle=0)


def _grid(rows: list[dict[str, Any]], unit: str, busiest: float, height: int) -> Panel:
    """Draw a cell per die, the fuller the busier: so it reads on light and on dark paper."""
    tips = [Tip("channel", "channel"), Tip(f"{unit} of the channel", "place")]
    tips.append(Tip("busy", "busy", "percent"))
    scale = alt.Scale(domain=[0, busiest], range=[0, 1])
    shade = alt.Opacity("busy:Q", scale=scale).title(f"{unit} busy").legend(format="%")
    cells = alt.Chart(data(rows)).mark_rect(color=COLOURS[0])
    cells = cells.encode(_channel(), alt.Y("place:O").title(f"{unit} of the channel"), shade)
    return Panel([marks.tipped(cells, tips)], height=height, says=marks.reading(rows, tips))


def _stages(dies: Dies, series: Series) -> Panel:
    rows = [
        {"what": f"{dies.unit}s", "stage": stage, "order": order, "share": share}
        for order, (stage, share) in enumerate(dies.stages.items())
    ]
    x = alt.X("share:Q").title("share of the time").axis(format="%")
    tips = [Tip("spent on", "stage"), Tip("share of the time", "share", "percent")]
    y = marks.row_names("what", [f"{dies.unit}s"])
    return marks.bars(rows, series, x, y, tips, encodings=[alt.Order("order:Q")])


def _energy(result: RunFrames, cases: list[Case]) -> Figure:
    varied = result.answer.varied
    rows = [
        {
            "case": summary.label(case, varied),
            "part": f"{device.name}: {part}",
            "order": order,
            "joules": joules,
            "text": timing.quantity(joules, "J"),
        }
        for case in cases
        for device in timing.of(case).devices
        if device.energy
        for order, (part, joules) in enumerate(device.energy.parts.items())
    ]
    series = Series("part", distinct(rows, "part"), "where it went", "box")
    y = marks.row_names("case", distinct(rows, "case"))
    if len(cases) == 1:
        y = y.axis(labels=False, ticks=False)
    tips = [Tip("case", "case")] if len(cases) > 1 else []
    tips += [Tip("spent on", "part"), Tip("energy", "text")]
    x, order = alt.X("joules:Q").title("energy (J)"), alt.Order("order:Q")
    bars = marks.bars(rows, series, x, y, tips, encodings=[order])
    return Figure(
        "energy",
        "Energy",
        "What devices spent over the whole replay, by device and part; devices whose power is not "
        "given are left out.",
        Plot([bars], [series]),
    )
