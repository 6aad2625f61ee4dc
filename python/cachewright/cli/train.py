"""The command `train`, and `train shiro`: a model file from the earlier part of a trace.

For: training away from the drive, and how well the model does on what it never saw. Must never
know: how anyone trains. Models of partitioners are in `train_models`, of kinds of workloads in
`train_kinds`, of policies in `train_caching`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import App

from cachewright import targets, words
from cachewright.answers import Prediction
from cachewright.cli import engine as engines
from cachewright.cli import options, output, parsing, train_caching, train_kinds, train_models
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.stack import StackOrTrace, files_of, is_stack_path
from cachewright.tables import Column, Table
from cachewright.train import Trained, checks, train_shiro

TRAIN = Flags("train")
app = App(name="train", help="Train the models of schemes that learn.")
app.command(train_models.icache)
app.command(train_models.mlcache)
app.command(train_kinds.kinds)
app.command(train_caching.rc_rnn, name="rc-rnn")

Measures: TypeAlias = list[tuple[str, Prediction | None]]


@app.command
def shiro(
    source: options.Source,
    *,
    out: Path,
    share: Annotated[str, TRAIN("share")] = "70%",
    separation: Annotated[str, TRAIN("separation")] = "shiro",
    trainer: Literal["native", "jax"] = "native",
    judge: options.Words = None,
    judge_volume: options.Words = None,
    page: Annotated[str, TRAIN("page")] = "4KiB",
    set: options.Set = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    trace: options.TraceArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Train on the earlier part of a trace; evaluate on the later part and on other traces.

    Of a dataset (a folder, a glob, a URL, a manifest) each volume has a model in the folder `out`.

    Parameters
    ----------
    out
        The model file to write (`wa --model` uses it).
    trainer
        The trainer: native (in Rust) or jax.
    judge
        Another stack or trace to evaluate on; may be repeated.
    judge_volume
        Another volume of the same trace to evaluate on; may be repeated.
    force
        Replace the model file if it exists.

    """
    output.be_quiet(quiet)
    read = trace or options.TraceArgs()
    if engines.is_many(source, engine):
        engines.alone({"judge": judge, "judge-volume": judge_volume}, ("judge", "judge-volume"))
        given = {"share": parsing.share(share), "separation": separation, "trainer": trainer}
        given |= {"page": page, "settings": parsing.settings(set)}
        shown = options.ShowArgs(json=json, quiet=quiet)
        engines.over("train_shiro", source, out, {"options": given}, engine, trace, shown)
        return
    spec = source if is_stack_path(source) else read.trace(source)
    others = _others(source, judge or [], judge_volume or [], read)
    checks.model_file(out, "")
    files = [file for one in (spec, *others) for file in files_of(one)]
    targets.check(out, files, overwrite=force, how=targets.FORCE)
    with progress() as on_progress:
        found = train_shiro(
            spec,
            out,
            share=parsing.share(share),
            separation=separation,
            trainer=trainer,
            judge=others,
            page=page,
            settings=parsing.settings(set),
            progress=on_progress,
        )
    if json:
        output.print_json(found.answer)
        return
    show(found)
    output.say(f"model: {out}, {words.size(len(found.model))}")


def show(found: Trained) -> None:
    """Print what was trained and how the model does."""
    answer = found.answer
    output.say(
        f"{answer.name}: {answer.separation} trained by {answer.trainer} on the "
        f"first {words.count(answer.trained_pages)} of "
        f"{words.count(answer.trace_pages)} page writes "
        f"({words.count(answer.labelled_steps)} labelled, of "
        f"{words.counted(answer.windows, 'window')}); lifetimes are short up to "
        f"{words.count(found.threshold)} page writes"
    )
    output.say()
    measures = found.measures
    columns: list[Column[Prediction]] = [
        Column("predictions", lambda one: one.predictions, words.count),
        Column("accuracy", lambda one: one.accuracy, words.percent),
        Column("precision", lambda one: one.precision, words.percent),
        Column("recall", lambda one: one.recall, words.percent),
        Column("F1", lambda one: one.f1, words.percent),
        Column("most frequent class", lambda one: one.majority, words.percent),
    ]
    named: Column[tuple[str, Prediction | None]] = Column("judged on", lambda row: row[0])
    output.show(Table("", [named, *(one.on(lambda row: row[1]) for one in columns)], measures))
    for name, one in measures:
        if one is not None and one.accuracy < one.majority:
            output.note(f"{name}: less often right than the more frequent class would be")
    if any(one is None for _, one in measures):
        output.note("nothing judged where no page was written twice; a smaller --share leaves more")


def _others(
    source: Path, paths: list[str], volumes: list[str], read: options.TraceArgs
) -> list[StackOrTrace]:
    """Return the traces to judge on, and other volumes of the trained one."""
    others: list[StackOrTrace] = [
        path if is_stack_path(path) else read.trace(path) for path in paths
    ]
    return [*others, *(replace(read.trace(source), volume=volume) for volume in volumes)]
