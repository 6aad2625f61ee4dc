"""Options that several commands share.

For: one spelling and one sentence per option. Must never know: what a setting means; the experiment
room checks keys, values and units.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from cachewright._native import SpecError
from cachewright.cli import output
from cachewright.cli.parsing import split_pair, split_values

if TYPE_CHECKING:
    from cachewright.traces import Trace, TraceOptions
    from cachewright.types import PathLike

Stack = Annotated[Path, Parameter(help="A stack file (TOML).")]
Source = Annotated[Path, Parameter(help="A stack file (TOML) or a trace.")]
Sources = Annotated[
    list[Path],
    Parameter(
        negative=(), help="A stack file (TOML), or traces: one, or several as one tenant each."
    ),
]
Parts = Annotated[
    list[Path],
    Parameter(negative=(), help="The trace; several files are parts of one recording."),
]
Parted = Annotated[
    list[Path],
    Parameter(
        negative=(),
        help="A stack file (TOML) or a trace; several files are parts of one recording.",
    ),
]
Words = Annotated[list[str] | None, Parameter(negative=())]
On = Annotated[bool, Parameter(negative=(), show_default=False)]
Set = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative=(),
        help="Change a setting of the stack as KEY=VALUE (`--set cache.block=8KiB`); may be "
        "repeated.",
    ),
]
AcceptChanged = Annotated[
    list[str] | None,
    Parameter(
        name="--accept-changed",
        negative=(),
        help="Accept that the backing device of this tenant was changed while no server ran; "
        "may be repeated.",
    ),
]
Vary = Annotated[
    list[str] | None,
    Parameter(
        negative=(),
        help="Values of any setting to try as KEY=V1,V2 (`--vary replay.loop=open,closed`); "
        "may be repeated. All combinations are run.",
    ),
]
Threads = Annotated[
    int, Parameter(validator=Number(gte=0, lte=1024), help="Threads to use; 0 uses every core.")
]
Figures = Annotated[
    str | None,
    Parameter(
        help="Also write each figure of the report as a file: svg, png, pdf, or several "
        "separated by commas."
    ),
]
RankBy = Annotated[
    Literal["hits", "mean", "p99", "write-amplification", "flash-writes", "slowdown", "goals"]
    | None,
    Parameter(
        name="--rank-by",
        help="What is best: hits, mean or p99 response, write-amplification, flash-writes, "
        "slowdown or goals; chosen by what the stack is about if not given.",
    ),
]
Force = Annotated[bool, Parameter(name="--force", negative=(), show_default=False)]
Json = Annotated[
    bool,
    Parameter(
        name="--json", negative=(), show_default=False, help="Print the whole result as JSON."
    ),
]
Quiet = Annotated[
    bool,
    Parameter(
        name=["--quiet", "-q"],
        negative=(),
        show_default=False,
        help="Print no progress and no notes on standard error.",
    ),
]


@Parameter(name="*", group="Trace")
@dataclass
class TraceArgs:
    """How to open a trace."""

    format: str | None = None
    """Format of the trace (see `list formats`); detected from the content by default."""

    on_bad_record: Literal["fail", "skip"] = "fail"
    """What to do with a malformed record: stop (fail), or count and skip it (skip)."""

    option: Words = None
    """An option of the format as KEY=VALUE; may be repeated."""

    volume: str | None = None
    """Only this volume of the trace, or several separated by commas (`4,9`)."""

    by_volume: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    """Make each volume of a trace a tenant of its own."""

    join: Annotated[bool | None, Parameter(negative="--no-join", show_default=False)] = None
    """Read the files, or all that match a quoted pattern, as one recording: one clock, and volumes
    with the same name joined. This is the default for files that differ only in a number at the end
    (`x.blktrace.0`)."""

    def trace(self, path: PathLike | Sequence[PathLike]) -> Trace:
        """Return the trace at `path`, or the recording in several files.

        Errors: `SpecError` for an option without `=`.
        """
        from cachewright.traces import Trace, opened_as

        how = self.options()
        if isinstance(path, str | os.PathLike):
            path, how = opened_as(path, how)
        return Trace(path, how.format, how.on_bad_record, how.options, how.volume, how.by_volume)

    def given(self) -> list[str]:
        """Return the options that differ from their defaults, as a command line spells them."""
        names = [key for key, value in vars(self).items() if value != getattr(TraceArgs, key)]
        return [f"--{name.replace('_', '-')}" for name in names]

    def options(self) -> TraceOptions:
        """Return the same without a path. Errors: `SpecError` for an option without `=`."""
        from cachewright.traces import TraceOptions

        pairs = dict(split_pair(text, "--option") for text in self.option or ())
        return TraceOptions(self.format, self.on_bad_record, pairs, self.volume, self.by_volume)


@Parameter(name="*", group="Output")
@dataclass
class ShowArgs:
    """How the result is shown."""

    json: Json = False

    csv: Annotated[
        bool,
        Parameter(
            negative=(),
            show_default=False,
            help="Print the result as one CSV table: plain numbers in bytes, blocks, nanoseconds "
            "and ratios.",
        ),
    ] = False

    quiet: Quiet = False

    @property
    def is_data(self) -> bool:
        """Whether standard output is for programs, so that no sentence may stand in it."""
        return self.json or self.csv


def has_parts(sources: Sequence[Path], trace: TraceArgs | None) -> bool:
    """Return whether what a command about one trace names are the parts of one recording."""
    return len(sources) > 1 or bool(trace is not None and trace.join)


def stack_or_trace(sources: Sequence[Path], trace: TraceArgs | None) -> Path | Trace:
    """Return a stack file as it is, a trace with how it is read. Errors: `SpecError`."""
    args = trace or TraceArgs()
    return stack_alone(sources, args) or args.trace(whole(sources))


def stack_alone(sources: Sequence[Path], trace: TraceArgs) -> Path | None:
    """Return the stack file that is named, if one is.

    Errors: `SpecError` for a stack file beside others, or one with options of a trace.
    """
    from cachewright.stack import STACK_SUFFIX, is_stack_path

    stack = next((path for path in sources if is_stack_path(path)), None)
    if stack is None:
        return None
    if len(sources) > 1:
        raise SpecError(
            f"found the stack file {stack} and {len(sources) - 1} more, expected one stack "
            f"file ({STACK_SUFFIX}) or traces alone"
        )
    if trace.given():
        raise SpecError(
            f"{trace.given()[0]}: found a stack file, which says itself how each trace is opened; "
            "expected a trace, or `--set tenant.NAME.KEY=VALUE`"
        )
    return stack


def whole(paths: Sequence[Path]) -> Path | list[Path]:
    """Return one file as it is, several as the parts of one recording."""
    return paths[0] if len(paths) == 1 else list(paths)


def shown(args: ShowArgs | None) -> ShowArgs:
    """Return how to show the result, and keep quiet if asked. Errors: `SpecError` for both kinds.

    >>> shown(None)
    ShowArgs(json=False, csv=False, quiet=False)
    """
    args = args or ShowArgs()
    if args.json and args.csv:
        raise SpecError("found `--json` and `--csv`, expected one of them")
    output.be_quiet(args.quiet)
    return args


@Parameter(name="*", group="Cache")
@dataclass
class CacheArgs:
    """The cache: short for keys of the stack's `[cache]` table."""

    policy: str | None = None
    """Replacement policies, separated by commas (`lru,arc`; see `list policies`), or all."""

    capacity: str | None = None
    """Cache sizes, separated by commas (`64MiB,1GiB,10%wss`; %wss is a share of the working
    set)."""

    partition: str | None = None
    """Ways to split the cache among tenants, separated by commas (`shared,hull`; see `list
    partitions`)."""

    block: str | None = None
    """Size of a cache block (`4KiB`)."""

    def values(self) -> dict[str, list[str]]:
        """Return the values of each option given. Errors: `SpecError` for an empty value."""
        found = {}
        for key, text in vars(self).items():
            if text is not None:
                found[key] = split_values(text)
                if not all(found[key]):
                    raise SpecError(f"--{key}: found an empty value in `{text}`, expected V1,V2")
        return found


@Parameter(name="*", group="Result")
@dataclass
class ResultArgs:
    """Where the result goes, and what runs."""

    out: Path | None = None
    """Folder for result.json and series.parquet; cases found there are not run again."""

    fresh: On = False
    """Run every case even if the folder holds its result."""

    report: On = False
    """Also write report.html into the folder (`results/NAME` if no folder is named)."""

    figures: Figures = None

    threads: Threads = 0


@Parameter(name="*")
@dataclass
class LessonArgs:
    """The replay that a model learns from, and how what was found is shown."""

    set: Set = None

    threads: Threads = 0

    json: Json = False

    quiet: Quiet = False

    def __post_init__(self) -> None:
        """Keep quiet if asked."""
        output.be_quiet(self.quiet)
