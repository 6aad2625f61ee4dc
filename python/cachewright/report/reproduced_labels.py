"""What labels of an oracle and of models are worth: ceilings, in-sample figures, learning curves.

For: `cachewright.report.reproduced_caching`. Must never know: how models are trained. Units: hit
ratios of block accesses; agreement as shares of requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from cachewright import words
from cachewright.report import marks
from cachewright.report.figure import Figure
from cachewright.report.marks import Tip
from cachewright.report.parts import Table, plain
from cachewright.report.plots import PANEL_HEIGHT, Plot, Series
from cachewright.reproduce.caching import Caching, CachingFigure
from cachewright.reproduce.imitators import Imitator

EPOCHS = (1, 2, 4, 8, 16, 32)
"""Epochs that the table of a learning curve shows, besides the best."""

PARTS = ("in_sample", "later")

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
        found = [what.ceilings[name, scheme.learns].report for name in figure.workloads]
        for key, label in (("perfect", "its labels"), ("oracle", "the oracle itself")):
            rows.append([scheme.title, label, *_with_mean([one[key] for one in found])])
        quotients = [one["perfect"] / max(one["oracle"], 1e-9) for one in found]
        means = [sum(one[key] for one in found) for key in ("perfect", "oracle")]
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
        for label in ("cached", "duration"):
            for fed in ("forced", "own"):
                texts = [scheme.title, label, _fed(fed)]
                values = [one.model["in_sample"][fed][label] for one in models]
                agreement.append([*texts, *_shares(values)])
            common = [one.report["majority_in_sample"][label] for one in models]
            agreement.append([scheme.title, label, "the commonest", *_shares(common)])
        for part in PARTS:
            named = part.replace("_", "-")
            for fed in ("forced", "own"):
                values = [one.model["hits"][fed][part] or 0.0 for one in models]
                hits.append([scheme.title, named, _fed(fed), *_with_mean(values)])
        perfect = [one.report["perfect"] or 0.0 for one in models]
        hits.append([scheme.title, "in-sample", "perfect labels", *_with_mean(perfect)])
    headers = ["scheme", "label", "told", *figure.workloads, "mean"]
    caption = "agreement with the oracle on the requests that trained"
    first = plain(title, caption, headers, agreement, 3)
    headers = ["scheme", "part", "told", *figure.workloads, "mean"]
    second = plain("", "hit ratio, without devices", headers, hits, 3, "hits")
    return [first, second]


def learning(what: Caching, figure: CachingFigure, title: str) -> list[Table | Figure]:
    """Return the hits of the part that says when to stop, epoch by epoch."""
    points: list[dict[str, Any]] = []
    rows, control = [], []
    for scheme in figure.schemes:
        for name in figure.workloads:
            model = what.models[name, scheme.learns].model
            curve: Sequence[Mapping[str, float]] = model["curve"]
            scores = [one.get("score") for one in curve]
            label = f"{scheme.title}, {name}"
            for at, score in enumerate(scores):
                if score is not None:
                    points.append({"model": label, "epoch": at + 1, "hits": score})
            shown = [scores[at - 1] if at <= len(scores) else None for at in EPOCHS]
            kept = int(model["best_epoch"])
            best = scores[kept - 1] if kept and scores else None
            cells = [words.NOTHING if one is None else words.ratio(one) for one in (*shown, best)]
            control.append(_control(scheme.title, name, what.models[name, scheme.learns]))
            counts = [words.count(int(model[key])) for key in ("best_epoch", "epochs", "updates")]
            rows.append([scheme.title, name, *cells, *counts])
    headers = ["scheme", "workload", *(f"epoch {at}" for at in EPOCHS), "best"]
    headers += ["best epoch", "epochs", "updates"]
    beside = "on the later part: the network, and boosted trees that see the same features"
    controls = plain("", beside, ["scheme", "workload", *CONTROL], control, 2, "control")
    caption = "hit ratio of the last fifth of what trains, own labels fed back, by epoch"
    series = Series("model", list(dict.fromkeys(one["model"] for one in points)), "model")
    tips = [Tip("model", "model"), Tip("epoch", "epoch"), Tip("hit ratio", "hits", "ratio")]
    x, y = alt.X("epoch:Q").title("epoch"), alt.Y("hits:Q").title("hit ratio")
    panel = marks.lines(points, series, x, y, tips, height=PANEL_HEIGHT + 40)
    chart = Figure(f"{figure.name}-curve", "Learning", caption, Plot([panel], [series]))
    return [plain(title, caption, headers, rows, 2), chart, controls]


def _control(title: str, name: str, found: Imitator) -> list[str]:
    """Return a row: how often each learner says what the oracle does, and what its labels hit.

    A model that was kept before there were trees has none.
    """
    trees, cells = found.report.get("control"), []
    if trees is None:
        return [title, name, *[words.NOTHING] * len(CONTROL)]
    for label in ("cached", "duration"):
        shares = (found.majority(label), found.agreement(label, own=True), trees[label])
        cells += [words.percent(one) for one in shares]
    hits = (found.model["hits"]["own"]["later"], trees["hits"], found.report["perfect_later"])
    return [title, name, *cells, *(words.ratio(one) for one in hits)]


def _fed(key: str) -> str:
    return "the oracle's labels" if key == "forced" else "its own"


def _with_mean(values: Sequence[float]) -> list[str]:
    return [words.ratio(one) for one in (*values, sum(values) / len(values))]


def _shares(values: Sequence[float]) -> list[str]:
    return [words.percent(one) for one in (*values, sum(values) / len(values))]
