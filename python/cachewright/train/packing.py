"""Series of different lengths as batches of one shape.

For: recurrent training without idle steps: series lie one after another in lanes, and a mark says
where each begins. Must never know: what is learned. Units: steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_STEPS = 128
LANES, LANE_STEPS = 32, 20


@dataclass(frozen=True)
class Batch:
    """At least 128 labelled steps, unless the series ended; idle steps have the label -1."""

    rows: NDArray[np.float32]
    """[step, lane, input]"""

    begins: NDArray[np.bool_]
    """[step, lane]: whether a series begins here."""

    labels: NDArray[np.int8]
    """[step, lane]"""

    labelled: int
    """Steps with a class, at least 1."""


def batches(
    series: Sequence[tuple[NDArray[np.float32], NDArray[np.int8]]],
) -> Iterator[Batch]:
    """Yield the series in their order, cut after 128 labelled steps; those without are left out."""
    chosen: list[tuple[NDArray[np.float32], NDArray[np.int8]]] = []
    labelled = 0
    for rows, labels in series:
        own = int((labels >= 0).sum())
        if own == 0:
            continue
        chosen.append((rows, labels))
        labelled += own
        if labelled >= BATCH_STEPS:
            yield _packed(chosen, labelled)
            chosen, labelled = [], 0
    if chosen:
        yield _packed(chosen, labelled)


def _packed(series: Sequence[tuple[NDArray[np.float32], NDArray[np.int8]]], labelled: int) -> Batch:
    import numpy as np

    steps = max(LANE_STEPS, *(len(labels) for _, labels in series))
    steps = -(-steps // LANE_STEPS) * LANE_STEPS
    places, lane, used = [], 0, 0
    for _, labels in series:
        if used + len(labels) > steps:
            lane, used = lane + 1, 0
        places.append((lane, used))
        used += len(labels)
    lanes = LANES
    while lanes <= lane:
        lanes *= 2
    inputs = series[0][0].shape[1]
    packed = Batch(
        np.zeros((steps, lanes, inputs), dtype=np.float32),
        np.zeros((steps, lanes), dtype=np.bool_),
        np.full((steps, lanes), -1, dtype=np.int8),
        labelled,
    )
    for (lane, start), (rows, labels) in zip(places, series, strict=True):
        end = start + len(labels)
        packed.rows[start:end, lane] = rows
        packed.labels[start:end, lane] = labels
        packed.begins[start, lane] = True
    return packed
