"""What labels of an oracle and of models are worth: ceilings, in-sample figures, learning curves.

For: `cachewright_lab.report.reproduced_caching`. Must never know: how models are trained. Units:
hit ratios of block accesses; agreement as shares of requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import altair as alt

from cachewright import words
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.parts import Table, plain
from cachewright.report.plots import PANEL_HEIGHT, Plot, Rows, Series, distinct
from cachewright.train.reports import (
    Agreement,
    CachingModel,
    Control,
    Fed,
    FedHits,
    HitRatios,
    Majority,
)
from cachewright_lab.reproduce.caching import Caching, CachingFigure
from cachewright_lab.reproduce.imitators import Imitator, Worth

EPOCHS = (1, 2, 4, 8, 16, 32)
"""Epochs that the table of a learning curve shows, besides the best."""

LABELS: tuple[tuple[str, Callable[[Agreement | Majority | Control], float]], ...] = (
    ("cached", lambda said: said.cached),
    ("duration", lambda said: said.duration),
)

TOLD: tuple[tuple[str, Callable[[Fed], Agreement], Callable[[FedHits], HitRatios]], ...] = (
    ("the oracle's labels", lambda fed: fed.forced, lambda hits: hits.forced),
    ("its own", lambda fed: fed.own, lambda hits: hits.own),
)
"""What a model is told of the request before, and what was found then."""

PARTS: tuple[tuple[str, Callable[[HitRatios], float | None]], ...] = (
    ("in-sample", lambda hits: hits.in_sample),
    ("later", lambda hits: hits.later),
)

WORTHS: tuple[tuple[str, Callable[[Worth], float]], ...] = (
    ("its labels", lambda worth: worth.perfect),
    ("the oracle itself", lambda worth: worth.oracle),
)

COUNTS: tuple[Callable[[CachingModel], int], ...] = (
    lambda model: model.best_epoch,
    lambda model: model.epochs,
    lambda model: model.updates,
)
"""The last columns of the table of a learning curve."""

CONTROL = (
    "cached, commonest",
    "network",
    "trees",
    "duration, commonest",
    "network",
    "trees",
    "hits, network",
    "trees",
    "perfect labels",
)
"""Columns of the table that sets boosted trees beside a network."""


def ceilings(what: Caching, figure: CachingFigure, title: str) -> list[Table]:
    """Return hit ratios of perfect labels, and as shares of their oracle's."""
    rows, shares = [], []
    for scheme in figure.schemes:
        found = [what.ceilings[name, scheme.learns].worth for name in figure.workloads]
        for label, of in WORTHS:
            rows.append([scheme.title, label, *_with_mean([of(one) for one in found])])
        quotients = [one.perfect / max(one.oracle, 1e-9) for one in found]
        means = [sum(of(one) for one in found) for _, of in WORTHS]
        cells = [words.ratio(value) for value in (*quotients, means[0] / max(means[1], 1e-9))]
        shares.append([scheme.title, *cells])
    headers = ["labels of", "", *figure.workloads, "mean"]
    hits = plain(title, "hit ratio on the later part, without devices", headers, rows, 2)
    headers = ["labels of", *figure.workloads, "mean"]
    caption = "hits of perfect labels by those of the oracle that they are of"
    return [hits, plain("", caption, headers, shares, 1, "share")]


def in_sample(what: Caching, figure: CachingFigure, title: str) -> list[Table]:
    """Return agreement and hits on what trained and later, told the oracle's labels or own ones."""
    agreement, hits = [], []
    for scheme in figure.schemes:
        models = [what.models[name, scheme.learns] for name in figure.workloads]
        for label, of in LABELS:
            for told, fed, _ in TOLD:
                values = [of(fed(one.model.in_sample)) for one in models]
                agreement.append([scheme.title, label, told, *_shares(values)])
            common = [of(one.report.majority_in_sample) for one in models]
            agreement.append([scheme.title, label, "the commonest", *_shares(common)])
        for part, ratio in PARTS:
            for told, _, fed_hits in TOLD:
                values = [ratio(fed_hits(one.model.hits)) or 0.0 for one in models]
                hits.append([scheme.title, part, told, *_with_mean(values)])
        perfect = [one.report.perfect or 0.0 for one in models]
        hits.append([scheme.title, "in-sample", "perfect labels", *_with_mean(perfect)])
    headers = ["scheme", "label", "told", *figure.workloads, "mean"]
    caption = "agreement with the oracle on the requests that trained"
    first = plain(title, caption, headers, agreement, 3)
    headers = ["scheme", "part", "told", *figure.workloads, "mean"]
    second = plain("", "hit ratio, without devices", headers, hits, 3, "hits")
    return [first, second]


def learning(what: Caching, figure: CachingFigure, title: str) -> list[Table | Figure]:
    """Return the hits of the part that says when to stop, epoch by epoch."""
    points: Rows = []
    rows, control = [], []
    for scheme in figure.schemes:
        for name in figure.workloads:
            model = what.models[name, scheme.learns].model
            scores = [one.score for one in model.curve]
            label = f"{scheme.title}, {name}"
            for at, score in enumerate(scores):
                if score is not None:
                    points.append({"model": label, "epoch": at + 1, "hits": score})
            shown = [scores[at - 1] if at <= len(scores) else None for at in EPOCHS]
            best = scores[model.best_epoch - 1] if model.best_epoch and scores else None
            cells = [words.NOTHING if one is None else words.ratio(one) for one in (*shown, best)]
            control.append(_control(scheme.title, name, what.models[name, scheme.learns]))
            counts = [words.count(of(model)) for of in COUNTS]
            rows.append([scheme.title, name, *cells, *counts])
    headers = ["scheme", "workload", *(f"epoch {at}" for at in EPOCHS), "best"]
    headers += ["best epoch", "epochs", "updates"]
    beside = "on the later part: the network, and boosted trees that see the same features"
    controls = plain("", beside, ["scheme", "workload", *CONTROL], control, 2, "control")
    caption = "hit ratio of the last fifth of what trains, own labels fed back, by epoch"
    series = Series("model", distinct(points, "model"), "model")
    tips = [Tip("model", "model"), Tip("epoch", "epoch"), Tip("hit ratio", "hits", "ratio")]
    x, y = alt.X("epoch:Q").title("epoch"), alt.Y("hits:Q").title("hit ratio")
    panel = marks.lines(points, series, x, y, tips, height=PANEL_HEIGHT + 40)
    chart = Figure(f"{figure.name}-curve", "Learning", caption, Plot([panel], [series]))
    return [plain(title, caption, headers, rows, 2), chart, controls]


def _control(title: str, name: str, found: Imitator) -> list[str]:
    """Return a row: how often each learner says what the oracle does, and what its labels hit.

    A model that was kept before there were trees has none.
    """
    trees, cells = found.report.control, []
    if trees is None:
        return [title, name, *[words.NOTHING] * len(CONTROL)]
    for _, of in LABELS:
        shares = (of(found.majority), of(found.agreement(own=True)), of(trees))
        cells += [words.percent(one) for one in shares]
    hits = (found.model.hits.own.later, trees.hits, found.report.perfect_later)
    return [title, name, *cells, *(words.ratio(one) for one in hits)]


def _with_mean(values: Sequence[float]) -> list[str]:
    return [words.ratio(one) for one in (*values, sum(values) / len(values))]


def _shares(values: Sequence[float]) -> list[str]:
    return [words.percent(one) for one in (*values, sum(values) / len(values))]
