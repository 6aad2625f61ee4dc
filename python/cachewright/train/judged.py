"""How far a model is from the truth on what it never saw, and what an answer costs.

For: reports of trainings. Must never know: what is predicted. Errors are of all outputs together,
in the targets' unit; the model runs as it will run.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cachewright import _native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUNDS = 5


def errors(found: NDArray[np.float32], expected: NDArray[np.float32]) -> dict[str, float]:
    """Return mean squared and mean absolute error."""
    import numpy as np

    apart = found.astype(np.float64) - expected
    return {"mse": float(np.mean(apart**2)), "mae": float(np.mean(np.abs(apart)))}


def inference_ns(content: bytes, sequences: NDArray[np.float32]) -> float:
    """Return the time of one answer, from a zero state, in ns: the least mean of five rounds."""
    model, least = _native.Model(content), float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        model.outputs(sequences)
        least = min(least, (time.perf_counter_ns() - start) / len(sequences))
    return least
