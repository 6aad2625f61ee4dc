"""How often windows are taken for what they are.

For: accuracy per kind and confusion tables of characterizers. Must never know: models. A row is of
the true kind, a column of the answer; accuracy is the mean over kinds of each kind's own, so that a
kind with a longer trace does not count for more. Of ten windows after each other the majority
counts, of several the one with the higher mean probability (RC-RNN, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cachewright.train.reports import Confusion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOGETHER = 10
"""Windows that are judged together."""


def counts(answers: NDArray[np.int64], kinds: int) -> list[int]:
    """Return how often each kind was answered."""
    import numpy as np

    return [int(count) for count in np.bincount(answers, minlength=kinds)]


def majorities(shares: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the kind of every ten windows after each other, without fewer at the end."""
    import numpy as np

    kinds = shares.shape[1]
    tens = shares[: len(shares) // TOGETHER * TOGETHER].reshape(-1, TOGETHER, kinds)
    votes = (tens.argmax(axis=2)[:, :, None] == np.arange(kinds)).sum(axis=1)
    # A mean is below 1, so that it decides only among equal votes.
    return np.asarray((votes + tens.mean(axis=1) * (1 - 1e-6)).argmax(axis=1), dtype=np.int64)


def row(kind: int, counted: Sequence[int]) -> float | None:
    """Return the part of these answers that is right; None of none."""
    total = sum(counted)
    return counted[kind] / total if total else None


def summary(judged: Sequence[tuple[int, Sequence[int]]], kinds: int) -> Confusion:
    """Return the confusion table of volumes, and accuracy per kind and over kinds.

    `judged` are the kind of each volume and how often each kind was answered.
    """
    table = [[0] * kinds for _ in range(kinds)]
    for kind, counted in judged:
        for answer, count in enumerate(counted):
            table[kind][answer] += count
    each = tuple(row(kind, counted) for kind, counted in enumerate(table))
    known = [one for one in each if one is not None]
    return Confusion(
        confusion=tuple(tuple(counted) for counted in table),
        accuracy_per_kind=each,
        accuracy=sum(known) / len(known) if known else None,
    )
