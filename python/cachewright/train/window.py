"""What one window of host writes teaches, as numpy arrays.

For: `Window`, the argument of every trainer. Must never know: who trains, pages. Lifetimes are in
pages that the host writes. Source: Shiro, section III-B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONTEXT, LONG, SHORT = -1, 0, 1
"""Labels of a step: a page's first write (never predicted), and the two classes."""


@dataclass(frozen=True)
class Window:
    """Series of page writes with labels; each series is one page's, in the order of time."""

    case: int
    """The case of the run; what a trainer keeps from window to window it keeps by case."""

    number: int
    """The window, from 0."""

    first: bool
    """Whether no model is in use yet: train to convergence, later one epoch per window."""

    threshold: int
    """Lifetimes up to this are short."""

    seed: int
    """Root of the trainer's randomness, the same for every window of a case."""

    features: list[str]
    """A name per input; a model file lists the same."""

    inputs: NDArray[np.float32]
    """One row of inputs per step, series after series."""

    labels: NDArray[np.int8]
    """One label per step."""

    bounds: NDArray[np.int64]
    """Series `i` is the steps from `bounds[i]` to `bounds[i + 1]`."""

    def series(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int8]]]:
        """Yield each series: its rows and its labels."""
        ends = self.bounds.tolist()
        for start, end in pairwise(ends):
            yield self.inputs[start:end], self.labels[start:end]


Trainer: TypeAlias = Callable[[Window], bytes]
"""Gets a window and returns a model file."""
