"""The command `mrc`: how the miss ratio falls with cache size.

For: curves of a stack's tenants or of one trace, as a table with a small plot. Must never know: how
curves are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from cachewright import api, targets, words
from cachewright.cli import options, output, plots, timed
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table
from cachewright.spec import files_of, is_stack_path

ROWS = 12


@Parameter(name="*")
@dataclass
class CurveArgs:
    """How curves are made."""

    method: str = "auto"
    """auto, exact, shards, shards-size or mini."""

    rate: float | None = None
    """Share of blocks sampled by shards and mini, as in 0.01."""

    size: int | None = None
    """Most blocks sampled by shards-size."""

    sizes: str | None = None
    """Cache sizes with commas (`16MiB,1%wss`); chosen when left out."""

    points: int = 0
    """How many sizes to choose; 0 leaves it to the method."""

    salts: int = 0
    """Samplings for the confidence interval; 0 leaves it to the method."""

    windows: int = 0
    """Curves for so many windows of time instead of one for the whole trace."""

    verify: int = 0
    """Compare with exact simulations at so many sizes (3 is usual)."""

    small: str = "escalate"
    """When the scaled cache is too small: escalate (sample more) or refuse."""

    latency: Annotated[bool, Parameter(negative=())] = False
    """Also show response times by cache size; the stack needs devices."""

    figure: Path | None = None
    """Draw the response times to this file (svg, png or pdf)."""

    force: options.Force = False
    """Replace the figure if it exists."""


def mrc(
    source: options.Source,
    *,
    policy: str | None = None,
    curve: CurveArgs | None = None,
    block: str = "4KiB",
    set: options.Set = None,
    threads: int = 0,
    json: options.Json = False,
    trace: options.TraceArgs | None = None,
) -> None:
    """Show miss-ratio curves of a stack's tenants or of one trace.

    Parameters
    ----------
    policy
        Policies with commas (`lru,s3-fifo`); the stack's own when left out.
    block
        Cache block of a trace; a stack has its own.
    set
        Change a setting of the stack as KEY=VALUE, as often as needed.
    threads
        Threads to use; 0 uses every core.
    json
        Print the curves as JSON.

    """
    how = curve or CurveArgs()
    spec = source if is_stack_path(source) else (trace or options.TraceArgs()).trace(source)
    if how.figure is not None:
        targets.check(how.figure, files_of(spec), overwrite=how.force, how=targets.FORCE)
    with progress() as on_progress:
        curves = api.mrc(
            spec,
            options.comma_list(policy),
            method=how.method,
            rate=how.rate,
            size=how.size,
            sizes=options.comma_list(how.sizes),
            points=how.points,
            salts=how.salts,
            windows=how.windows,
            verify=how.verify,
            small=how.small,
            latency=how.latency or how.figure is not None,
            block=block,
            settings=options.settings(set),
            threads=threads,
            progress=on_progress,
        )
    if json:
        output.print_json(curves.document)
    else:
        _show(curves.document)
    if how.figure is not None:
        path = curves.figure(how.figure)
        if not json:
            output.say(f"figure: {path}")


def _show(document: dict[str, Any]) -> None:
    block = int(document["block_bytes"])
    for curve in document["curves"]:
        _curve(curve, block)
    for found in document.get("latency", []):
        timed.curve(found, block)
    if document.get("verify"):
        _verify(document["verify"], block)


def _curve(curve: dict[str, Any], block: int) -> None:
    window = "" if curve["window"] is None else f", window {curve['window'] + 1}"
    title = f"{curve['tenant']}{window}: {curve['policy']}, {curve['method']}; "
    title += f"{words.count(curve['accesses'])} accesses to {words.count(curve['distinct'])} blocks"
    for remark in curve.get("notes", []):
        output.note(f"{curve['tenant']}, {curve['policy']}: {remark}")
    if curve.get("trusted_from_blocks"):
        size = words.size(curve["trusted_from_blocks"] * block)
        output.note(f"{curve['tenant']}, {curve['policy']}: sizes below {size} are uncertain")
    points = _thinned([p for p in curve["points"] if p[0] > 0])
    columns = [
        Column("size", [words.size(p[0] * block) for p in points]),
        Column("blocks", [words.count(p[0]) for p in points]),
        Column("miss ratio", [words.ratio(p[1]) for p in points]),
    ]
    if any(p[2] is not None for p in points):
        columns.append(Column("interval", [_interval(p) for p in points]))
    columns.append(Column("", [plots.bar(p[1]) for p in points], numeric=False))
    table(title, columns)


def _interval(point: list[Any]) -> str:
    low, high = point[2], point[3]
    return words.NOTHING if low is None else f"{words.ratio(low)} to {words.ratio(high)}"


def _thinned(points: list[Any]) -> list[Any]:
    """Return at most `ROWS` points, first and last among them, evenly spaced."""
    if len(points) <= ROWS:
        return points
    step = (len(points) - 1) / (ROWS - 1)
    return [points[round(index * step)] for index in range(ROWS)]


def _verify(checks: list[dict[str, Any]], block: int) -> None:
    table(
        "compared with exact simulation",
        [
            Column("tenant", [c["tenant"] for c in checks], numeric=False),
            Column("policy", [c["policy"] for c in checks], numeric=False),
            Column("size", [words.size(c["size_blocks"] * block) for c in checks]),
            Column("curve", [words.ratio(c["curve"]) for c in checks]),
            Column("exact", [words.ratio(c["exact"]) for c in checks]),
            Column("error", [words.ratio(c["error"]) for c in checks]),
        ],
    )
