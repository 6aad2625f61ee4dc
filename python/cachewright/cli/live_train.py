"""The command `live train`: the model of a server, trained on what it recorded.

For: a process beside the server, started by hand or by a timer. Must never know: how a model is
trained.
"""

from __future__ import annotations

from dataclasses import asdict

from cachewright import advising, retraining
from cachewright.cli import options, output, parsing
from cachewright.cli.advise import Target
from cachewright.cli.progress import progress
from cachewright.cli.train_caching import LearnArgs, NetworkArgs, show
from cachewright.train import RcRnnTraining


def train(
    target: Target,
    /,
    *,
    last: str = advising.LAST,
    tenant: str | None = None,
    share: str = "60%",
    network: NetworkArgs | None = None,
    learn: LearnArgs | None = None,
    threads: options.Threads = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train the model of a server's `rc-rnn` on its last recordings, and let it take it over.

    Parameters
    ----------
    last
        How far back recordings are learned from, whole ones.
    tenant
        Whose requests it learns from; the only tenant's when left out.
    share
        The part of the requests that trains; its last fifth says when to stop.

    """
    output.be_quiet(quiet)
    given = {**asdict(network or NetworkArgs()), **asdict(learn or LearnArgs())}
    how = RcRnnTraining(share=parsing.share(share), **given)
    with progress() as on_progress:
        found = retraining.retrain(
            target, how, last=last, tenant=tenant, threads=threads, progress=on_progress
        )
    if json:
        output.print_json(found.report)
        return
    show(found.report)
    then = "the server decides by it" if found.taken_over else "the next start takes it"
    output.say(f"model: {found.path}; {then}")
