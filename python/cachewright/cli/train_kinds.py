"""The command `train kinds`: a model that tells kinds of workloads apart.

For: training on the earlier parts of traces, and how often it is right on the rest. Must never
know: how anyone trains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachewright import targets, words
from cachewright._native import SpecError
from cachewright.cli import options, output, parsing
from cachewright.cli.progress import progress
from cachewright.stack import files_of
from cachewright.tables import Column, Table
from cachewright.traces import Trace
from cachewright.train import checks
from cachewright.train.kinds import ADDRESS, KindsTraining, train_kinds
from cachewright.train.reports import JudgedVolume, KindsReport
from cachewright.train.store import FLOAT_SUFFIX

Named = Annotated[
    list[str],
    Parameter(negative=(), help="KIND=TRACE, at least two kinds; a kind may have several traces."),
]


@Parameter(name="*")
@dataclass
class KindArgs:
    """What a model of kinds sees, and how it learns."""

    network: Literal["lstm", "mlp"] | None = None
    """lstm reads a window request by request (rc-rnn), mlp sees its mean (the others)."""

    units: int = 50
    """Units of the layer."""

    window: int = 100
    """Requests of a window."""

    without: options.Words = None
    """A feature to hide from the model; may be repeated. By default `address`; `none` hides
    nothing."""

    share: str = "70%"
    """The part of each volume used for training; its last fifth is for early stopping."""

    most: int = 1500
    """Maximum number of training windows per kind."""

    seed: int = 1
    """Seed of the random numbers."""

    epochs: int = 60
    """Maximum number of epochs."""

    patience: int = 8
    """Stop after this many epochs without a better validation error."""

    batch: int = 64
    """Windows per update."""

    optimiser: Literal["adam", "rmsprop"] = "adam"
    """What takes the steps."""

    rate: float = 3e-3
    """The optimiser's rate."""


def kinds(
    traces: Named,
    *,
    out: Path,
    by: str = "rc-rnn",
    judge: options.Words = None,
    learn: KindArgs | None = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    trace: options.TraceArgs | None = None,
) -> None:
    """Train a model that classifies workloads; evaluate it on the traces' later parts.

    It learns from all traces at once, without `--engine`.

    Parameters
    ----------
    out
        The model file to write (`.safetensors`); its report is written next to it.
    by
        The characterizer (`list characterizers`).
    judge
        KIND=TRACE used as a whole for evaluation only; may be repeated.
    force
        Replace the model file and its report if they exist.

    """
    output.be_quiet(quiet)
    learn = learn or KindArgs()
    without = [ADDRESS] if learn.without is None else learn.without
    read = {
        "without": () if without == ["none"] else tuple(without),
        "share": parsing.share(learn.share),
    }
    how = KindsTraining(by=by, **{**asdict(learn), **read})
    how_to_read = trace or options.TraceArgs()
    taught, judged = _by_kind(traces, how_to_read), _by_kind(judge or [], how_to_read)
    checks.model_file(out)
    targets.check_all(
        [out, *(out.with_name(out.stem + suffix) for suffix in (FLOAT_SUFFIX, ".json"))],
        [file for named in (*taught.values(), *judged.values()) for file in _files(named)],
        overwrite=force,
        how=targets.FORCE,
    )
    with progress() as on_progress:
        found = train_kinds(
            taught,
            out,
            how,
            judge=judged,
            progress=on_progress,
        )
    if json:
        output.print_json(found.report)
        return
    show(found.report, how)
    output.say(f"model: {out}; use it with `characterize --model {out}`")


def show(report: KindsReport, how: KindsTraining) -> None:
    """Print how often each trace's windows were taken for what they are."""
    kinds, judged = report.kinds, report.judged
    output.say(
        f"{report.scheme}: {report.network} of {how.units} units, "
        f"windows of {how.window} requests, "
        f"{words.size(report.bytes)}, {words.duration(report.inference_ns)} per window"
    )
    output.say()
    columns: list[Column[JudgedVolume]] = [
        Column("trace", lambda one: one.name),
        Column("part", lambda one: one.part),
        Column("kind", lambda one: kinds[one.kind]),
        Column("windows", lambda one: one.windows, words.count),
        *(Column(f"as {kind}", _answers(at), words.count) for at, kind in enumerate(kinds)),
        Column("right", lambda one: one.accuracy, words.percent),
        Column("of ten together", lambda one: one.accuracy_of_ten, words.percent),
    ]
    output.show(Table("windows that never trained", columns, judged))
    output.say(
        f"mean over kinds, later parts: {_right(report.windows_judged.accuracy)} of windows right "
        f"({_right(report.f32.accuracy)} in f32), {_right(report.of_ten.accuracy)} of ten together"
    )


def _answers(kind: int) -> Callable[[JudgedVolume], int]:
    return lambda one: one.answers[kind]


def _right(share: float | None) -> str:
    return words.NOTHING if share is None else words.percent(share)


def _files(traces: list[Trace]) -> list[Path]:
    return [file for trace in traces for file in files_of(trace)]


def _by_kind(texts: list[str], read: options.TraceArgs) -> dict[str, list[Trace]]:
    """Return traces by kind. Errors: `SpecError` for a text without `=`."""
    found: dict[str, list[Trace]] = {}
    for text in texts:
        kind, equals, path = text.partition("=")
        if not equals or not kind.strip() or not path.strip():
            raise SpecError(f"found `{text}`, expected KIND=TRACE")
        found.setdefault(kind.strip(), []).append(read.trace(path.strip()))
    return found
