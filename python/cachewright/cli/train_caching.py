"""The command `train rc-rnn`: the caching model of a kind of workload.

For: training on the earlier requests of a stack, and how far the model does as the oracle on the
rest. Must never know: how anyone trains.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from cachewright import targets, words
from cachewright.cli import engine as engines
from cachewright.cli import options, output, parsing
from cachewright.cli.declared import Flags
from cachewright.cli.progress import progress
from cachewright.stack import files_of, load
from cachewright.tables import Column, Table
from cachewright.train import RcRnnTraining, checks, train_rc_rnn
from cachewright.train.reports import Agreement, CachingModel, CachingReport, Majority
from cachewright.train.store import file_name, report_name

LABELS = Flags("labels")
Stack = Annotated[Path, Parameter(help="A stack file (TOML) with one tenant.")]
LATER = "later part"


@Parameter(name="*")
@dataclass
class NetworkArgs:
    """The network, and what it sees."""

    features: Literal["reuse", "paper"] = "reuse"
    """reuse (distances and counts), or paper (the normalised address)."""

    units: int = 256
    """Units of a layer."""

    layers: int = 3
    """Layers, 1 to 3."""

    window: int = 100
    """Requests of backpropagation through time."""


@Parameter(name="*")
@dataclass
class LearnArgs:
    """How it learns."""

    epochs: int = 40
    """Maximum number of epochs."""

    patience: int = 10
    """Stop after this many epochs without improvement."""

    stop: Literal["epochs", "loss", "hits"] = "epochs"
    """When to stop: after all epochs, by the loss, or by the hits that the model's labels give."""

    updates: int = 60
    """Maximum number of updates per epoch, on a part of the trace that is drawn for each epoch."""

    batch: int = 32
    """Windows of an update."""

    rate: float = 1e-3
    """RMSprop's rate."""

    balance: float = 0.0
    """Weight labels by their inverse frequency to this power (0 to 1)."""

    own: float = 0.0
    """Share of requests for which the previous label is the model's own, as in use (0 to 1)."""

    feedback: Literal["labels", "scheduled", "none"] = "none"
    """Previous labels that the model sees: labels (as own says), scheduled (more and more its own),
    or none."""


def rc_rnn(
    source: Stack,
    *,
    out: Path,
    kind: str | None = None,
    oracle: Annotated[str, LABELS("oracle")] = "benefit-oracle",
    labels: Annotated[Literal["remaining", "residence"], LABELS("labels")] = "remaining",
    share: str = "60%",
    seeds: int = 1,
    judge: Annotated[list[Path] | None, Parameter(negative="")] = None,
    network: NetworkArgs | None = None,
    learn: LearnArgs | None = None,
    force: options.Force = False,
    lessons: options.LessonArgs | None = None,
    engine: engines.EngineArgs | None = None,
) -> None:
    """Train a caching model of `rc-rnn` on the earlier requests of a stack; evaluate on the rest.

    With an engine each of several seeds is a task.

    Parameters
    ----------
    out
        Folder for the model (KIND.safetensors) and its report (KIND.json).
    kind
        Name of the kind of workload; the name of the stack's tenant by default.
    share
        The part of the requests used for training; its last fifth is for early stopping.
    seeds
        Repeat the training with this many seeds, in folders seed1, seed2, ...
    judge
        Another stack of one tenant to evaluate on as a whole; may be repeated.
    force
        Replace the folder's model of that kind.

    """
    lessons = lessons or options.LessonArgs()
    how = _settings(network or NetworkArgs(), learn or LearnArgs(), oracle, share, seeds)
    how = replace(how, labels=labels, requeue_hits=labels == "remaining")
    checks.folder(out)
    kind = kind or _only_tenant(source)
    report = report_name(kind)
    read = [file for one in (source, *(judge or [])) for file in files_of(one)]
    files = [out / report, *(out / file_name(kind, 1 + n, seeds) for n in range(seeds))]
    targets.check_all(files, read, overwrite=force, how=targets.FORCE)
    common: dict[str, Any] = {
        "judge": {path.stem: path for path in judge or []},
        "settings": parsing.settings(lessons.set),
    }
    with progress() as on_progress:
        if engine is not None and engine.engine is not None:
            from cachewright.fleet.seeds import train_seeds

            on = engine.how()
            found = train_seeds(source, kind, out, how, **common, how=on, progress=on_progress)
        else:
            common["threads"] = lessons.threads
            found = train_rc_rnn(source, kind, out, how, **common, progress=on_progress)
    if lessons.json:
        output.print_json(found.report)
        return
    show(found.report)
    output.say(f"models: {out}; use one with `models = {{ KIND = ... }}` in [cache]")


def _settings(
    network: NetworkArgs, learn: LearnArgs, oracle: str, share: str, seeds: int
) -> RcRnnTraining:
    given = {**asdict(network), **asdict(learn)}
    return RcRnnTraining(oracle=oracle, share=parsing.share(share), seeds=seeds, **given)


class _Judged(NamedTuple):
    """How often a model agrees with the oracle on one part, beside the most frequent label."""

    name: str
    own: Agreement
    most: Majority
    model: CachingModel


def show(report: CachingReport) -> None:
    """Print how often each model says what the oracle does, beside its most frequent label."""
    requests = report.requests
    output.say(
        f"{report.kind}: trained on {words.count(requests.train)} requests, stopped by "
        f"{words.count(requests.validation)}; a cache of "
        f"{words.counted(report.capacity_blocks, 'block')}"
    )
    output.say()
    rows = [
        _Judged(f"{LATER}, seed {model.seed}", model.own, report.majority, model)
        for model in report.models
    ]
    for model in report.models:
        for name, other in model.others.items():
            rows.append(_Judged(f"{name}, seed {model.seed}", other.own, other.majority, model))
    columns: list[Column[_Judged]] = [
        Column("judged on", lambda row: row.name),
        Column("cached", lambda row: row.own.cached, words.percent),
        Column("most frequent label", lambda row: row.most.cached, words.percent),
        Column("duration", lambda row: row.own.duration, words.percent),
        Column("most frequent label", lambda row: row.most.duration, words.percent),
        Column("epochs", lambda row: row.model.epochs, str),
        Column("CPU time", lambda row: row.model.cpu_seconds * 1e9, words.duration),
        Column("bytes", lambda row: row.model.bytes, words.count),
        Column("step takes", lambda row: row.model.step_ns, words.duration),
    ]
    output.show(Table("agreement with the oracle, the model's own labels fed back", columns, rows))
    for name, own, most, model in rows:
        if own.cached < most.cached:
            output.note(f"{name}: less often right than always the more frequent label")
        forced = model.forced.cached
        if name.startswith(LATER) and forced - own.cached > 0.05:
            output.note(
                f"{name}: {words.percent(forced)} with the oracle's label of the request "
                "before as input, which is not known in use"
            )


def _only_tenant(source: Path) -> str:
    """Return the name of a stack's first tenant; the native call refuses others."""
    import tomllib

    tenants = tomllib.loads(load(source).text).get("tenant", [{}])
    return str(tenants[0].get("name") or source.stem)
