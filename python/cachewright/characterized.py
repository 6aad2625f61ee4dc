"""What runs on a trace over time: `characterize`, and the table of what it found.

Times are nanoseconds since the trace's first request.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, documents, targets, words
from cachewright._native import SpecError
from cachewright.answers import CharacterizeAnswer, JudgedPeriod, PeriodCounts
from cachewright.documents import load, table
from cachewright.tables import Column, Table
from cachewright.traces import TraceLike, opened
from cachewright.types import PathLike

if TYPE_CHECKING:
    from cachewright.types import Progress

EVERY = "auto"
CHARACTER_FILE = "characterize.json"
ALL = "all"
# Below this confidence a kind is marked.
UNSURE = 0.6
# Digits of seconds with which periods are told apart, the fewest that do.
DIGITS = (1, 3, 6, 9)
# A period, or the whole trace.
Period = JudgedPeriod | PeriodCounts


def characterize(
    trace: TraceLike,
    *,
    every: str = EVERY,
    model: PathLike | bytes | None = None,
    out: PathLike | None = None,
    progress: Progress | None = None,
) -> CharacterizeAnswer:
    """Return what ran in each period of a trace.

    `trace` is a path, a frame, or a `Trace`. `every` is a duration, a number of reads and writes,
    or `auto`: a round duration that cuts the trace into some tens of periods, for which it is read
    twice; `every` of the answer is the one used. Each period has counts, `read_share`,
    `mean_bytes`, `working_set_bytes`, the shares of requests and of bytes that are sequential,
    overlapped, strided and random (`classes`, `class_bytes`), and with a `model` (`train kinds`
    writes them) what its volumes' last 1,000 requests were judged to be (`judged`). With `out` a
    folder with `characterize.json` is written; that of another trace there is refused. Errors:
    `SpecError`, `TraceError`, `OSError`.
    """
    found = opened(trace)
    if out is not None:
        _check_owner(Path(out) / CHARACTER_FILE, found.name)
    text = _native.characterize(
        found.path,
        found.how.format,
        found.how.on_bad_record,
        dict(found.how.options),
        volume=found.how.volume,
        every=every,
        model=None if model is None else _content(model),
        progress=progress,
    )
    document = json.loads(text)
    document["path"] = found.name
    if out is not None:
        written = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        targets.write_whole(Path(out) / CHARACTER_FILE, written)
    return load(CharacterizeAnswer, document)


def _check_owner(file: Path, name: str) -> None:
    """Refuse a file of another trace. Errors: `SpecError`."""
    if not file.exists():
        return
    known = documents.read(CharacterizeAnswer, file, "a result of `characterize`")
    if known.path != name:
        raise SpecError(f"{file}: found a result of {known.path}, expected another folder")


def encoded(model: PathLike | bytes) -> str:
    """Return a model file's content in base 64. Errors: `SpecError` when it is no model."""
    return base64.b64encode(_content(model)).decode()


def _content(model: PathLike | bytes) -> bytes:
    if isinstance(model, bytes):
        return model
    try:
        content = Path(model).read_bytes()
        _native.Model(content)
    except OSError as error:
        raise SpecError(
            f"{model}: {words.reason(error)}; expected a model of `train kinds`"
        ) from None
    except SpecError as error:
        raise SpecError(f"{model}: {error}") from None
    return content


def by_period(found: CharacterizeAnswer) -> Table[Period]:
    """Return what ran in each period, and in the whole trace."""
    times = _times(found.periods)
    begins = {id(period): time for period, time in zip(found.periods, times, strict=True)}
    columns: list[Column[Period]] = [Column("from", lambda one: begins.get(id(one), ALL))]
    if found.characterizer is not None:
        columns.append(Column(f"kind ({found.characterizer})", _kinds))
    columns += [
        Column("requests", lambda one: one.reads + one.writes, words.count),
        Column("per s", lambda one: one.rate_per_s, words.significant),
        Column("reads", lambda one: one.read_share, words.percent),
        Column("mean", lambda one: round(one.mean_bytes), words.size),
        Column("working set", lambda one: one.working_set_bytes, words.size),
        Column("sequential", lambda one: one.classes.sequential, words.percent),
        Column("overlapped", lambda one: one.classes.overlapped, words.percent),
        Column("strided", lambda one: one.classes.strided, words.percent),
        Column("random", lambda one: one.classes.random, words.percent),
        Column("sequential bytes", lambda one: one.class_bytes.sequential, words.percent),
    ]
    return Table(_title(found), columns, [*found.periods, found.total])


def records(found: CharacterizeAnswer) -> list[dict[str, Any]]:
    """Return a record per period, and the whole trace as period `all`."""
    numbered = enumerate(found.periods, 1)
    rows: list[dict[str, Any]] = [{"period": n, **table(period)} for n, period in numbered]
    return [*rows, {"period": ALL, **table(found.total)}]


def is_unsure(found: CharacterizeAnswer) -> bool:
    """Return whether any kind was judged with little confidence."""
    return any(one.confidence < UNSURE for period in found.periods for one in period.judged)


def _title(found: CharacterizeAnswer) -> str:
    """Return how long a period is, and whether that was chosen."""
    every, total = found.every, found.total
    length = f"{words.count(int(every))} reads and writes" if every.isdecimal() else every
    if not found.every_chosen:
        return f"periods of {length}"
    span = words.duration(total.end_ns - total.start_ns)
    return f"periods of {length}, chosen for a trace of {span} (`--every` sets another)"


def _times(periods: Sequence[JudgedPeriod]) -> list[str]:
    """Return where each period begins, by the clock, or with as many digits as tell them apart."""
    starts = [period.start_ns / 1e9 for period in periods]
    labels = [words.clock(start) for start in starts]
    for digits in DIGITS:
        if len(set(labels)) == len(labels):
            break
        labels = [f"{start:.{digits}f}s" for start in starts]
    return labels


def _kinds(period: Period) -> str:
    """Return a volume's kind and how sure that is; of several how many are of each."""
    if isinstance(period, PeriodCounts):
        return ""
    judged = period.judged
    if not judged:
        return words.NOTHING
    if len(judged) == 1:
        one = judged[0]
        mark = "?" if one.confidence < UNSURE else ""
        return f"{one.kind}{mark} {words.percent(one.confidence)}"
    counts: dict[str, int] = {}
    for one in judged:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} x {count}" for kind, count in most)
