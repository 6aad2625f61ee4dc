"""How far a model is from the truth on what it never saw, and what an answer costs.

For: reports of trainings. Must never know: what is predicted. Errors are of all outputs together,
in the targets' unit; the model runs as it will run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from cachewright import _native
from cachewright.train.model_file import described
from cachewright.train.reports import Errors, ModelReport

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.train.lesson import Learned
    from cachewright.train.networks import Examples

ROUNDS = 5


def errors(found: NDArray[np.float32], expected: NDArray[np.float32]) -> Errors:
    """Return mean squared and mean absolute error."""
    import numpy as np

    apart = found.astype(np.float64) - expected
    return Errors(mse=float(np.mean(apart**2)), mae=float(np.mean(np.abs(apart))))


def inference_ns(content: bytes, sequences: NDArray[np.float32]) -> float:
    """Return the time of one answer, from a zero state, in ns: the least mean of five rounds."""
    model, least = _native.Model(content), float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        model.outputs(sequences)
        least = min(least, (time.perf_counter_ns() - start) / len(sequences))
    return least


def report(
    learned: Learned,
    validation: Examples,
    test: Examples,
    judged: Callable[[bytes, Examples], Errors],
    *,
    seed: int,
    file: str,
) -> ModelReport:
    """Return a model's kind, size, errors as `judged` finds them, and the time of an answer."""
    about = described(learned.file)
    return ModelReport(
        seed=seed,
        file=file,
        kind=about.kind,
        int8=about.int8,
        bytes=len(learned.file),
        weight_bytes=about.weight_bytes,
        epochs=learned.epochs,
        best_epoch=learned.best_epoch,
        validation=judged(learned.file, validation),
        test=judged(learned.file, test),
        test_f32=judged(learned.float_file, test) if learned.float_file else None,
        inference_ns=inference_ns(learned.file, test.inputs),
    )
