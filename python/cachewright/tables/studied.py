"""What `fleet study` concludes: which policy and size suit most volumes, which separation drives.

Units: ratios in 0..1; a policy is close on a volume where it hits nearly as much as the best.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cachewright import words
from cachewright.tables import conclusion as endings

# The class of all volumes together.
ALL = "all"
Document = Mapping[str, Any]


class Advised(NamedTuple):
    """The size and the policy to use, and the mean hit ratio over the volumes."""

    size: str
    policy: str
    hit_ratio: float


def advised(document: Document) -> Advised | None:
    """Return the smallest size with nearly all hits of the largest; None without volumes."""
    found = [_best_at(document, size) for size in document["plan"]["sizes"]]
    known = sorted((one for one in found if one), key=lambda one: one.hit_ratio)
    if not known or known[-1].hit_ratio <= 0:
        return None
    return next(one for one in known if one.hit_ratio >= endings.NEARLY * known[-1].hit_ratio)


def conclusion(document: Document) -> str:
    """Return which policy suits how many volumes at which size, and what a larger one gives."""
    chosen = advised(document)
    if chosen is None:
        return ""
    won = next(one for one in _of_all(document, chosen.size) if one["policy"] == chosen.policy)
    close = words.significant(document["plan"]["close"])
    mean = words.ratio(chosen.hit_ratio)
    parts = [
        f"At {chosen.size} use {chosen.policy}: within {close} of the best hit ratio on "
        f"{words.percent(won['close_share'])} of {words.counted(won['volumes'], 'volume')}, "
        f"{mean} in the mean"
    ]
    others = [_best_at(document, size) for size in document["plan"]["sizes"]]
    most = max((one for one in others if one), key=lambda one: one.hit_ratio)
    if most.hit_ratio > chosen.hit_ratio:
        gain = words.ratio(most.hit_ratio - chosen.hit_ratio)
        parts.append(f"{most.size} of each volume hits {gain} more")
    unread = len(document["unread"])
    left = f"{words.counted(unread, 'file')} could not be read" if unread else ""
    return endings.paragraph([*parts, _separation(document), left])


def _of_all(document: Document, size: str) -> list[Any]:
    wins = document["wins"]
    return [one for one in wins if one["size"] == size and one["volume_class"] == ALL]


def _best_at(document: Document, size: str) -> Advised | None:
    """Return the policy that loses least at a size; None where no volume was measured."""
    rows = _of_all(document, size)
    if not rows:
        return None
    best = min(rows, key=lambda one: one["mean_loss"])
    for one in document["distributions"]:
        if (one["measure"], one.get("size"), one.get("policy")) == (
            "hit_ratio", size, best["policy"],
        ):  # fmt: skip
            return Advised(size, best["policy"], one["mean"])
    return None


def _separation(document: Document) -> str:
    """Return which separation of drives writes least in the mean; nothing without drives."""
    rows = [one for one in document["distributions"] if one["measure"] == "write_amplification"]
    means = {one["separation"]: one["mean"] for one in rows if one["mean"] is not None}
    if len(means) < 2:
        return ""
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return (
        f"Of the separations {best} writes least: write amplification {words.ratio(means[best])} "
        f"in the mean, {worst} {words.ratio(means[worst])}"
    )
