"""Figures of drives: how busy channels and dies were, what dies did, where energy went.

For: the report of stacks with devices. Must never know: HTML. Units: shares of the replay's time as
percentages, joules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from cachewright import drives, summary, words
from cachewright.report import charts
from cachewright.report.figures import Figure

if TYPE_CHECKING:
    from cachewright.result import Result

# Drives with more parts than this are not drawn part by part.
MOST_DIES = 1024
Case = dict[str, Any]


def figures(result: Result, cases: list[Case]) -> list[Figure]:
    """Return the figures of timed cases, the fastest first."""
    label = summary.label(cases[0], result.document["varied"])
    of_case = f"Fastest case ({label}): " if len(cases) > 1 else ""
    found = [
        _busy(name, drive, of_case)
        for name, drive in drives.drives(cases[0])
        if len(drive["dies"]["busy"]) <= MOST_DIES
    ]
    spent = [case for case in cases if drives.energy_rows(case)]
    return [*found, _energy(result, spent)] if spent else found


def _busy(name: str, drive: dict[str, Any], of_case: str) -> Figure:
    channels, dies = drive["channels"]["busy"], drive["dies"]
    unit, per_channel = dies["unit"], len(dies["busy"]) // len(channels)
    lanes = [
        {"channel": index, "busy": share, "text": words.percent(share)}
        for index, share in enumerate(channels)
    ]
    cells = [
        {
            "channel": index // per_channel,
            "place": index % per_channel,
            "busy": share,
            "text": words.percent(share),
        }
        for index, share in enumerate(dies["busy"])
    ]
    width = charts.WIDE_WIDTH - 160
    x = alt.X("channel:O").title("channel").axis(labelAngle=0)
    bars = (
        alt.Chart(alt.InlineData(values=lanes))
        .mark_bar(color=charts.COLOURS[0])
        .encode(
            x=x,
            y=alt.Y("busy:Q").title("channel busy").axis(format="%", tickCount=4),
            tooltip=["channel:O", "text:N"],
        )
        .properties(width=width, height=90)
    )
    grid = (
        alt.Chart(alt.InlineData(values=cells))
        .mark_rect()
        .encode(
            x=x,
            y=alt.Y("place:O").title(f"{unit} of the channel"),
            color=alt.Color("busy:Q")
            .title(f"{unit} busy")
            .scale(scheme="blues", zero=True)
            .legend(format="%"),
            tooltip=["channel:O", "place:O", "text:N"],
        )
        .properties(width=width, height=max(90, min(14 * per_channel, 260)))
    )
    figure = alt.vconcat(_stages(dies, width), bars, grid).resolve_scale(color="independent")
    key = "" if name == "drive" else f"-{name.replace(' ', '-')}"
    title = "How busy the flash was" if name == "drive" else f"How busy the flash of {name} was"
    caption = (
        f"{of_case}What the {unit}s spent their time on, on average; the share of the time that "
        f"each channel was taken; and that each {unit} worked."
    )
    return Figure(f"drive-busy{key}", title, caption, figure)


def _stages(dies: dict[str, Any], width: int) -> Any:
    names = list(dies["stages"])
    rows = [
        {"what": f"{dies['unit']}s", "stage": stage, "order": order, "share": share,
         "text": words.percent(share)}
        for order, (stage, share) in enumerate(dies["stages"].items())
    ]  # fmt: skip
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("share:Q").title("share of the time").axis(format="%"),
            y=alt.Y("what:N").title(None),
            color=alt.Color("stage:N").sort(names).title("spent on"),
            order=alt.Order("order:Q"),
            tooltip=["stage:N", "text:N"],
        )
        .properties(width=width, height=alt.Step(26))
    )


def _energy(result: Result, cases: list[Case]) -> Figure:
    varied = result.document["varied"]
    rows = [
        {
            "case": summary.label(case, varied),
            "part": f"{device['name']}: {part}",
            "order": order,
            "joules": joules,
            "text": drives.quantity(joules, "J"),
        }
        for case in cases
        for device in case["timing"]["devices"]
        if "energy" in device
        for order, (part, joules) in enumerate(device["energy"]["parts"].items())
    ]
    several = len(cases) > 1
    y = alt.Y("case:N").sort(None).title(None)
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("sum(joules):Q").title("energy (J)"),
            y=y if several else alt.Y("case:N").title(None).axis(labels=False, ticks=False),
            color=alt.Color("part:N").sort(None).title("where it went"),
            order=alt.Order("order:Q"),
            tooltip=["case:N", "part:N", "text:N"],
        )
        .properties(width=charts.WIDE_WIDTH - 160, height=alt.Step(26))
    )
    return Figure(
        "energy",
        "Energy",
        "What devices spent over the whole replay, by device and part; devices whose power is not "
        "given are left out.",
        bars,
    )
