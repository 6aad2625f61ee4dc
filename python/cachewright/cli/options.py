"""Options that several commands share, and how their text is read.

For: one spelling and one sentence per option. Must never know: what a setting means; the experiment
room checks keys, values and units.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachewright._native import SpecError
from cachewright.source import PathLike, Trace, TraceOptions

_OPENERS = {"[": "]", "{": "}", "(": ")"}
_QUOTES = "\"'"
FIGURE_KINDS = ("svg", "png", "pdf")

Source = Annotated[Path, Parameter(help="A stack file (TOML) or a trace.")]
Words = Annotated[list[str] | None, Parameter(negative=())]
Set = Annotated[list[str] | None, Parameter(name="--set", negative=())]
Json = Annotated[bool, Parameter(name="--json", negative=())]
Force = Annotated[bool, Parameter(name="--force", negative=())]


@Parameter(name="*")
@dataclass
class TraceArgs:
    """How to open a trace."""

    format: str | None = None
    """Format of the trace (`list formats`); recognised from the content when left out."""

    on_bad_record: Literal["fail", "skip"] = "fail"
    """What to do with a malformed record: stop, or count it and go on."""

    option: Words = None
    """An option of the format as KEY=VALUE, as often as needed."""

    volume: str | None = None
    """Only this volume of the trace."""

    def trace(self, path: PathLike) -> Trace:
        """Return the trace at `path`. Errors: `SpecError` for an option without `=`."""
        how = self.options()
        return Trace(path, how.format, how.on_bad_record, how.options, how.volume)

    def options(self) -> TraceOptions:
        """Return the same without a path. Errors: `SpecError` for an option without `=`."""
        pairs = dict(split_pair(text, "--option") for text in self.option or ())
        return TraceOptions(self.format, self.on_bad_record, pairs, self.volume)


@Parameter(name="*")
@dataclass
class RunArgs:
    """How to run a stack and where its result goes."""

    set: Set = None
    """Change a setting as KEY=VALUE (`--set cache.capacity=64MiB`), as often as needed."""

    out: Path | None = None
    """Folder for result.json and series.parquet; cases found there are not run again."""

    fresh: Annotated[bool, Parameter(negative=())] = False
    """Run every case even if the folder holds its result."""

    report: Annotated[bool, Parameter(negative=())] = False
    """Also write report.html into the folder (`results/NAME` if no folder is named)."""

    figures: str | None = None
    """Also write each figure of the report as files: svg, png, pdf, or several with commas."""

    threads: int = 0
    """Threads to use; 0 uses every core."""

    json: Json = False
    """Print the result document instead of tables."""


@Parameter(name="*")
@dataclass
class LessonArgs:
    """The replay that a model learns from, and how what was found is shown."""

    set: Set = None
    """Change a setting of the stack as KEY=VALUE, as often as needed."""

    threads: int = 0
    """Threads of the replay; 0 uses every core."""

    json: Json = False
    """Print what was found as JSON."""


def split_pair(text: str, option: str) -> tuple[str, str]:
    """Split KEY=VALUE. Errors: `SpecError` when there is no `=` or no key."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise SpecError(f"{option}: found `{text}`, expected KEY=VALUE")
    return key.strip(), value.strip()


def settings(texts: list[str] | None) -> dict[str, str]:
    """Return the pairs of `--set`; of one key given twice the last holds."""
    return dict(split_pair(text, "--set") for text in texts or ())


def vary(texts: list[str]) -> dict[str, list[str]]:
    """Return the pairs of `--vary KEY=V1,V2,...`; a key given twice adds its values."""
    found: dict[str, list[str]] = {}
    for text in texts:
        key, value = split_pair(text, "--vary")
        found.setdefault(key, []).extend(split_values(value))
    if any(not value for values in found.values() for value in values):
        raise SpecError(f"--vary: found an empty value in `{' '.join(texts)}`, expected KEY=V1,V2")
    return found


def figure_kinds(text: str | None) -> list[str]:
    """Return the kinds of figure files asked for. Errors: `SpecError` for an unknown one."""
    kinds = comma_list(text)
    unknown = [kind for kind in kinds if kind not in FIGURE_KINDS]
    if unknown:
        raise SpecError(f"--figures: found `{unknown[0]}`, expected svg, png or pdf")
    return kinds


def split_values(text: str) -> list[str]:
    """Split at commas that stand in no bracket and no quotation.

    >>> split_values('lru,{ name = "s3-fifo", small_share = 0.2 },arc')
    ['lru', '{ name = "s3-fifo", small_share = 0.2 }', 'arc']
    """
    parts, start, depth, quote = [], 0, 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPENERS:
            depth += 1
        elif char in _OPENERS.values():
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def comma_list(text: str | None) -> list[str]:
    """Split a plain comma-separated option; nothing gives an empty list."""
    return [part.strip() for part in text.split(",")] if text else []


def share(text: str) -> float:
    """Return a part of a whole (`70%`, `0.7`). Errors: `SpecError`."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise SpecError(f"--share: found `{text}`, expected a part such as 70%") from None
