"""The command `live train`: the models of a server, trained on what it recorded.

For: a process beside the server, started by hand or by a timer. Must never know: how a model is
trained.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from cyclopts import Parameter

from cachewright import words
from cachewright.cli import options, output, parsing, train_caching, train_models
from cachewright.cli.advise import Target
from cachewright.cli.progress import progress
from cachewright.live import advising, retraining
from cachewright.train.reports import CachingReport


@Parameter(name="*", group="Training")
@dataclass
class HowArgs:
    """How models learn; what is left out is as in `train rc-rnn`, `icache` or `mlcache`."""

    epochs: int | None = None
    """Maximum number of epochs."""

    patience: int | None = None
    """Stop after this many epochs without improvement; not for mlcache."""

    batch: int | None = None
    """Windows of an update; intervals of mlcache."""

    rate: float | None = None
    """The optimiser's rate."""

    model: Literal["lstm", "mlp", "forest"] | None = None
    """What icache learns: a network or a forest."""

    features: str | None = None
    """What a network sees: reuse or paper (rc-rnn), four of 0 and 1 (icache)."""

    units: int | None = None
    """Units of a layer of rc-rnn."""

    layers: int | None = None
    """Layers of rc-rnn, 1 to 3."""

    window: int | None = None
    """Requests of rc-rnn's backpropagation through time."""

    updates: int | None = None
    """Maximum number of updates per epoch of rc-rnn."""

    stop: Literal["epochs", "loss", "hits"] | None = None
    """When training of rc-rnn stops."""

    balance: float | None = None
    """Weight labels of rc-rnn by their inverse frequency to this power (0 to 1)."""

    own: float | None = None
    """Share of requests for which rc-rnn's previous label is its own (0 to 1)."""

    feedback: Literal["labels", "scheduled", "none"] | None = None
    """Which previous labels rc-rnn sees."""


def train(
    target: Target,
    /,
    *,
    last: str = advising.LAST,
    scheme: Literal["rc-rnn", "icache", "mlcache"] | None = None,
    tenant: str | None = None,
    share: str = "60%",
    how: HowArgs | None = None,
    threads: options.Threads = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train the models of a server's scheme on its last recordings, and let it load them.

    The scheme is the policy `rc-rnn` or the partitioner `icache` or `mlcache`.

    Parameters
    ----------
    last
        How far back to learn from, in whole recordings.
    scheme
        The scheme to train if the stack has two.
    tenant
        The tenant whose requests rc-rnn learns from, or whose model alone icache trains.
    share
        The part of the recordings used for training; its last fifth is for early stopping.

    """
    output.be_quiet(quiet)
    given = {key: value for key, value in asdict(how or HowArgs()).items() if value is not None}
    with progress() as on_progress:
        found = retraining.retrain(
            target,
            {**given, "share": parsing.share(share)},
            last=last,
            scheme=scheme,
            tenant=tenant,
            threads=threads,
            progress=on_progress,
        )
    if json:
        output.print_json(found.report)
        return
    if isinstance(found.report, CachingReport):
        train_caching.show(found.report)
    else:
        title = f"models of {found.scheme}: errors of shares of the cache, on the later part"
        train_models.show(found.report, title)
    pronoun = "it" if len(found.paths) == 1 else "them"
    then = "the server decides by" if found.taken_over else "the next start takes"
    paths = ", ".join(str(path) for path in found.paths)
    output.say(f"{words.counted(len(found.paths), 'model')}: {paths}; {then} {pronoun}")
