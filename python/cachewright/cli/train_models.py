"""The commands `train icache` and `train mlcache`: models of partitioners from a stack's replay.

For: training on the earlier part, and how far the models are from the truth on the rest. Must never
know: how anyone trains.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from cachewright import targets, words
from cachewright.cli import options, output, parsing
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.stack import files_of
from cachewright.tables import Column, Table
from cachewright.train import (
    ICacheTraining,
    MLCacheTraining,
    checks,
    train_icache,
    train_mlcache,
)
from cachewright.train.demand import LEAST_GAIN
from cachewright.train.reports import Errors, ModelReport, PartitionerReport, TenantReport
from cachewright.train.store import FLOAT_SUFFIX, REPORT, SUFFIX

SEGMENTS = Flags("segments")
Stack = Annotated[Path, Parameter(help="A stack file (TOML) of a timed open-loop replay.")]


@Parameter(name="*")
@dataclass
class WindowArgs:
    """How a replay becomes windows."""

    granules: Annotated[int, SEGMENTS("granules")] = 10
    steps: Annotated[int, SEGMENTS("steps")] = 180

    window: int = 180
    """Steps in a window that a model reads."""

    stride: int | None = None
    """Steps from window to window; a twentieth of an interval when left out."""

    share: str = "60%"
    """The part of the replay used for training; its last fifth is for early stopping."""

    features: str = "1111"
    """Which of intensity, write ratio, request bytes and unique ratio the models see (0 is off)."""


@Parameter(name="*")
@dataclass
class LabelArgs:
    """How labels are read off response times by cache size, and when models are updated."""

    from_off: Annotated[bool, Parameter(negative="")] = False
    """Begin with the data cache switched off, not with one granule."""

    least_gain: float = LEAST_GAIN
    """L of the paper: a granule that gains less than this share is not worth having."""

    gain_of: Literal["before", "largest", "whole"] = "before"
    """Share of the response before the step, of the largest gain, or of the whole gain."""

    retrain_every: int = 0
    """Train a network further after this many intervals, with everything seen so far; 0: never."""


@Parameter(name="*")
@dataclass
class LearnArgs:
    """How networks learn."""

    epochs: int = 60
    """Maximum number of epochs."""

    patience: int = 8
    """Stop after this many epochs without a better validation error."""

    batch: int = 64
    """Windows per update."""

    rate: float = 1e-3
    """Adam's rate."""


def icache(
    source: Stack,
    *,
    out: Path,
    model: Literal["lstm", "mlp", "forest"] = "lstm",
    seeds: int = 1,
    begin: Annotated[Path | None, Parameter(name="--from")] = None,
    windows: WindowArgs | None = None,
    labels: LabelArgs | None = None,
    learn: LearnArgs | None = None,
    force: options.Force = False,
    lessons: options.LessonArgs | None = None,
) -> None:
    """Train a model of `icache` per tenant on the earlier part of a stack; evaluate on the rest.

    All tenants are trained from one replay, without `--engine`.

    Parameters
    ----------
    out
        Folder for the models, training.json, and models.toml (the tables that a stack needs).
    model
        lstm as published, or an mlp or a forest that see windows pooled.
    seeds
        Repeat the training with this many seeds, in folders seed1, seed2, ...
    begin
        Folder of an earlier training whose networks are trained further, for example on new days of
        a trace.
    force
        Replace the models that the folder holds.

    """
    lessons, windows = lessons or options.LessonArgs(), windows or WindowArgs()
    given = {**asdict(windows), **asdict(labels or LabelArgs()), **asdict(learn or LearnArgs())}
    how = ICacheTraining(
        **{**given, "share": parsing.share(windows.share)}, model=model, seeds=seeds
    )
    checks.folder(out)
    read = [*files_of(source), *([] if begin is None else [begin / REPORT])]
    targets.check(out / REPORT, read, overwrite=force, how=targets.FORCE)
    with progress() as on_progress:
        found = train_icache(
            source,
            out,
            how,
            settings=parsing.settings(lessons.set),
            begin=begin,
            threads=lessons.threads,
            progress=on_progress,
        )
    if lessons.json:
        output.print_json(found.report)
        return
    show(found.report, "errors of MBP and OAP in shares of the cache, on the later part")
    output.say(f"models: {out}; use each with `model = ...` in its [[tenant]] table (models.toml)")


def mlcache(
    source: Stack,
    *,
    out: Path,
    granules: Annotated[int, SEGMENTS("granules")] = 10,
    share: str = "60%",
    seed: int = 1,
    epochs: int = 200,
    batch: int = 8,
    rate: float = 1e-4,
    force: options.Force = False,
    lessons: options.LessonArgs | None = None,
) -> None:
    """Train the model of `mlcache` on the earlier part of a stack; evaluate on the rest.

    It learns from all tenants at once, without `--engine`.

    Parameters
    ----------
    out
        The model file to write (`.safetensors`); its report is written next to it.
    share
        The part of the replay used for training; its last fifth selects the best epoch.
    seed
        Seed of the random numbers.
    epochs
        Epochs.
    batch
        Intervals per update.
    rate
        Adam's rate.
    force
        Replace the model file and its report if they exist.

    """
    lessons = lessons or options.LessonArgs()
    checks.model_file(out)
    name = out.name.removesuffix(SUFFIX)
    beside = [out.with_name(name + suffix) for suffix in (FLOAT_SUFFIX, f".{REPORT}")]
    targets.check_all([out, *beside], files_of(source), overwrite=force, how=targets.FORCE)
    how = MLCacheTraining(granules, parsing.share(share), seed, epochs, batch, rate)
    with progress() as on_progress:
        found = train_mlcache(
            source,
            out,
            how,
            settings=parsing.settings(lessons.set),
            threads=lessons.threads,
            progress=on_progress,
        )
    if lessons.json:
        output.print_json(found.report)
        return
    title = "errors of shares of the cache, and hits beside the most there could be, later part"
    show(found.report, title)
    output.say(f"model: {out}; use it with `model = ...` in [cache]")


_Row = tuple[TenantReport, ModelReport]


def show(report: PartitionerReport, title: str) -> None:
    """Print a row per model, and what answers without a model would score."""
    rows = [(tenant, model) for tenant in report.tenants for model in tenant.models]
    columns: list[Column[_Row]] = [
        Column("tenant", lambda row: row[0].name),
        Column("seed", lambda row: row[1].seed, str),
        Column("windows", _windows, numeric=True),
        Column("epochs", lambda row: row[1].epochs, words.count),
        Column("MSE", lambda row: row[1].test, _mse),
        Column("in f32", lambda row: row[1].test_f32, _mse),
        Column("of last label", lambda row: row[0].naive.last_label, _mse),
        Column("of mean label", lambda row: row[0].naive.mean_label, _mse),
        Column("mean error", lambda row: row[1].test.mae, words.percent),
        *_hits(rows),
        Column("bytes", lambda row: row[1].bytes, words.count),
        Column("answer takes", lambda row: row[1].inference_ns, words.duration),
    ]
    output.show(Table(title, columns, rows))
    for tenant, model in rows:
        if model.test.mse > tenant.naive.least_mse():
            output.note(
                f"{tenant.name}, seed {model.seed}: further from the truth than an answer "
                "without a model"
            )


def _windows(row: _Row) -> str:
    found = row[0].windows
    return f"{found.train} + {found.validation}, {found.test}"


def _hits(rows: list[_Row]) -> list[Column[_Row]]:
    """Return columns of hits, where divisions are counted by them."""
    if any(model.test.hits is None for _, model in rows):
        return []
    return [
        Column("hits", lambda row: row[1].test, _won),
        Column("of last", lambda row: row[0].naive.last_label, _won),
        Column("of equal", lambda row: row[0].naive.equal, _won),
    ]


def _won(measures: Errors) -> str:
    return words.percent(measures.hits)


def _mse(measures: Errors) -> str:
    return f"{measures.mse:.4f}"
