"""The commands `trace info|report|convert|head|slice|merge|synth`.

For: looking at traces and making new ones, whatever their format. Must never know: any format.
Times of `slice` count from the trace's first request. No command overwrites what it reads, or any
other file without `--force` (`cachewright.targets`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from cyclopts import App, Parameter

from cachewright import _native, api, targets, traces, words
from cachewright.cli import info as info_view
from cachewright.cli import observe, options, output, parsing
from cachewright.cli.options import TraceArgs
from cachewright.cli.progress import progress
from cachewright.stack import is_recording, names_of, recording_notes
from cachewright.traces import OPS, split_options

T = TypeVar("T")

app = App(
    name="trace",
    help="Look at block traces and make new ones.",
    # Not a part of `help`: that is replaced in place when another command's help lists this one.
    help_epilogue="""\
The name of the file to write says its format: `.parquet` (the native one, which keeps everything),
`.csv` (Alibaba's columns), `.oracleGeneral` or `.oracleGeneral.bin` (libCacheSim's records); the
last three also with `.gz`, `.zst`, `.xz` or `.bz2` for a compressed file. A format named by an
option comes first. An existing file is replaced with `--force` alone, a file that is read never.
""",
)

HEAD = ("time_ns", "op", "offset_bytes", "length_bytes", "volume")
# Other commands name what they write by `--out`.
Target = Annotated[Path, Parameter(name=["--target", "--out"], help="The file to write.")]
To = Annotated[str | None, Parameter(name=["--to", "--to-format"])]
ToOption = Annotated[list[str] | None, Parameter(name="--to-option", negative=())]


@app.command(help_epilogue="")
def info(
    paths: options.Parts,
    /,
    *,
    block: str = "4KiB",
    report: observe.Report = False,
    json: options.Json = False,
    trace: TraceArgs | None = None,
) -> None:
    """Show what a trace holds: requests, sizes, rate, working set, re-use, volumes.

    Parameters
    ----------
    block
        Unit of working set and re-use distances.
    report
        Write the page of the workload, too, as `trace report` does.
    json
        Print all numbers as JSON.

    """
    named = (trace or TraceArgs()).trace(options.whole(paths))
    page = observe.page_of(paths, trace, block) if report else None
    with progress() as on_progress:
        found = api.info(named, block=block, progress=on_progress)
    if json:
        output.print_json(found)
        return
    info_view.show(found)
    if page is not None:
        output.say(f"report: {page}")


app.command(observe.report, name="report", help_epilogue="")


@app.command(help_epilogue="")
def head(
    paths: options.Parts,
    /,
    *,
    first: Annotated[int, Parameter(name=["--first", "--count", "-n"])] = 10,
    show: options.ShowArgs | None = None,
    trace: TraceArgs | None = None,
) -> None:
    """Show the first requests.

    Parameters
    ----------
    first
        How many.

    """
    shown = options.shown(show)
    how = (trace or TraceArgs()).options()
    reader = traces.open_trace(options.whole(paths), how)
    selection = traces.Selection(first=_natural("--first", first), volume=how.volume)
    found: list[tuple[int, str, int, int, str]] = []
    for columns in traces.select(reader, selection, max(1, min(first, traces.BATCH))):
        time_ns, offset, length, op, volume = (column.tolist() for column in columns)
        names = reader.volumes()
        found += [
            (t, OPS[o], a, b, names[v])
            for t, o, a, b, v in zip(time_ns, op, offset, length, volume, strict=True)
        ]
    if shown.is_data:
        records = [dict(zip(HEAD, row, strict=True)) for row in found]
        output.print_json(records) if shown.json else output.print_csv(records, HEAD)
    else:
        _show_head([HEAD, *(tuple(map(str, row)) for row in found)])
    _skipped(*reader.skipped())
    _notes(reader.notes())


def _show_head(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[index]) for row in rows) for index in range(4)]
    for t, o, a, b, v in rows:
        output.say(f"{t:>{widths[0]}}  {o:<{widths[1]}}  {a:>{widths[2]}}  {b:>{widths[3]}}  {v}")


@app.command
def convert(
    source: Path,
    target: Target,
    *,
    to: To = None,
    to_option: ToOption = None,
    force: options.Force = False,
    trace: TraceArgs | None = None,
) -> None:
    """Write a trace in another format.

    Parameters
    ----------
    source
        The trace.
    to
        Format of the file to write (`list formats`); chosen by its suffix by default.
    to_option
        An option of that format as KEY=VALUE; may be repeated.
    force
        Replace the file to write if it exists.

    """
    how = (trace or TraceArgs()).options()
    selection = traces.Selection(volume=how.volume)
    write = Writing(target, to, to_option, force)
    _copy(lambda: traces.open_trace(source, how), write, selection, [source])


@app.command(name="slice")
def slice_(
    source: Path,
    target: Target,
    *,
    from_: Annotated[str, Parameter(name="--from")] = "0s",
    to_time: Annotated[str | None, Parameter(name="--to")] = None,
    first: int | None = None,
    to_format: str | None = None,
    to_option: ToOption = None,
    force: options.Force = False,
    trace: TraceArgs | None = None,
) -> None:
    """Write a part of a trace.

    Parameters
    ----------
    source
        The trace.
    from_
        Leave out requests before this time (`10s`).
    to_time
        Leave out requests from this time on (`60s`).
    first
        Keep at most so many requests.
    to_format
        Format of the file to write (`list formats`); chosen by its suffix by default.
    to_option
        An option of that format as KEY=VALUE; may be repeated.
    force
        Replace the file to write if it exists.

    """
    how = (trace or TraceArgs()).options()
    selection = traces.Selection(
        from_ns=_native.parse_duration(from_),
        to_ns=None if to_time is None else _native.parse_duration(to_time),
        first=first,
        volume=how.volume,
    )
    selection.check()
    write = Writing(target, to_format, to_option, force)
    _copy(lambda: traces.open_trace(source, how), write, selection, [source])


@app.command
def merge(
    *paths: Path,
    out: Path,
    start: options.Words = None,
    scale: options.Words = None,
    clock: Literal["own", "common"] = "own",
    to: To = None,
    to_option: ToOption = None,
    force: options.Force = False,
    trace: TraceArgs | None = None,
) -> None:
    """Write several traces as one, ordered by time: each from its own start, or one recording.

    With `--join` the traces are one recording (a file per CPU, hour or day): they keep their clock,
    and volumes of one name are one. Else volumes are called NAME/VOLUME.

    Parameters
    ----------
    paths
        The traces. A trace's NAME is its file name up to the first dot.
    clock
        What time zero is: own, each trace's first request; common, the first request of all, with
        the others when they came.
    out
        The file to write.
    start
        When a trace starts, as NAME=10s.
    scale
        Factor on a trace's times, as NAME=0.5 for twice as fast.
    to
        Format of the file to write (`list formats`); chosen by its suffix by default.
    to_option
        An option of that format as KEY=VALUE; may be repeated.
    force
        Replace the file to write if it exists.

    """
    if not paths:
        raise _native.SpecError("found no trace to merge, expected one or more before `--out`")
    how = (trace or TraceArgs()).options()
    selection = traces.Selection(volume=how.volume)
    write = Writing(out, to, to_option, force)
    args = trace or TraceArgs()
    for note in recording_notes(paths, args.join):
        output.note(note)
    if is_recording(paths, args.join):
        if start or scale:
            given = "--start" if start else "--scale"
            raise _native.SpecError(
                f"{given}: found with files of one recording, which have one clock; expected "
                "--no-join"
            )
        _copy(lambda: traces.open_trace(paths, how), write, selection, paths)
        return
    own = [split_options(path) for path in paths]
    if any(set(said) - {"format"} for _, said in own):
        raise _native.SpecError(
            "found options behind a trace to merge, expected `format` alone: `trace convert` reads "
            "it with its options first"
        )
    names = names_of([path for path, _ in own])
    starts = _by_name(start or [], "--start", names, _native.parse_duration)
    scales = _by_name(scale or [], "--scale", names, _factor)
    inputs = [
        traces.MergeInput(
            path, name, starts.get(name, 0), scales.get(name, 1.0), said.get("format")
        )
        for (path, said), name in zip(own, names, strict=True)
    ]
    common = clock == "common"
    _copy(lambda: traces.merger(inputs, how, common_clock=common), write, selection, paths)


@app.command
def synth(
    spec: Path,
    target: Target,
    *,
    seed: int | None = None,
    to: To = None,
    to_option: ToOption = None,
    force: options.Force = False,
) -> None:
    """Make a trace from a description of its tenants.

    Parameters
    ----------
    spec
        The description (TOML).
    seed
        Use this seed instead of the description's.
    to
        Format of the file to write (`list formats`); chosen by its suffix by default.
    to_option
        An option of that format as KEY=VALUE; may be repeated.
    force
        Replace the file to write if it exists.

    """
    write = Writing(target, to, to_option, force)
    _copy(lambda: traces.synthetic(spec, seed), write, traces.Selection(), [spec])


@dataclass(frozen=True)
class Writing:
    """The file to write and how."""

    target: Path
    to: str | None
    to_option: list[str] | None
    force: bool


def _copy(
    source: Callable[[], traces.ColumnSource],
    write: Writing,
    selection: traces.Selection,
    read: Sequence[Path],
) -> None:
    pairs = dict(parsing.split_pair(text, "--to-option") for text in write.to_option or ())
    # Before anything is opened, so that the refusal does not wait for a large trace.
    targets.check(write.target, read, overwrite=write.force, how=targets.FORCE)
    with targets.removed_at_signals(), progress() as on_progress:
        written = traces.copy(
            source(),
            write.target,
            selection=selection,
            format=write.to,
            options=pairs,
            overwrite=write.force,
            how=targets.FORCE,
            progress=on_progress,
        )
    _skipped(written.skipped_bad, written.skipped_irrelevant, written.skipped_examples)
    _notes(written.notes)
    if written.left_out:
        output.note(
            f"{words.counted(written.left_out, 'request')} left out: the format of "
            f"{write.target} has no such kind"
        )
    if written.moved_s:
        output.note(
            f"times begin at 0: those of the trace were moved back by {written.moved_s} s, since "
            f"the format of {write.target} has seconds of 32 bits"
        )
    size = words.size(write.target.stat().st_size)
    output.say(f"{write.target}: {words.counted(written.requests, 'request')}, {size}")


def _skipped(bad: int, irrelevant: int, examples: list[str]) -> None:
    if irrelevant:
        output.note(f"{words.counted(irrelevant, 'record')} skipped, no request in it")
    if bad:
        output.note(f"{words.counted(bad, 'malformed record')} skipped")
        for example in examples:
            output.note(f"  {example}")


def _notes(sentences: list[str]) -> None:
    for sentence in sentences:
        output.note(sentence)


def _natural(option: str, number: int) -> int:
    if number < 0:
        raise _native.SpecError(f"{option}: found {number}, expected 0 or more")
    return number


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0.0 < factor < float("inf"):
        raise _native.SpecError(f"--scale: found `{text}`, expected a number above 0")
    return factor


def _by_name(
    texts: list[str], option: str, names: list[str], read: Callable[[str], T]
) -> dict[str, T]:
    pairs = [parsing.split_pair(text, option) for text in texts]
    for name, _ in pairs:
        if name not in names:
            known = ", ".join(names)
            raise _native.SpecError(f"{option}: found `{name}`, expected one of {known}")
    return {name: read(value) for name, value in pairs}
