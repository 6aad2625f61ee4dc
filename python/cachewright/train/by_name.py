"""Who trains: by name, or a callable.

For: handing a trainer to the compiled module, its errors as one sentence each. Must never know: how
anyone trains. Whether a trainer can be used at all is found before the run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright._native import RunError, SpecError
from cachewright.train.window import Trainer, Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Handed

NATIVE, JAX = "native", "jax"
TRAINERS = (NATIVE, JAX)


def hand_out(trainer: str | Trainer) -> Handed | None:
    """Return a trainer as the compiled module takes it; None stands for the one in Rust.

    Errors: `SpecError` for an unknown name, or when JAX is asked for and not installed.
    """
    if trainer == NATIVE:
        return None
    if trainer == JAX:
        from cachewright.train.shiro import JaxTrainer

        return JAX, _guarded(JaxTrainer())
    if isinstance(trainer, str) or not callable(trainer):
        near = get_close_matches(str(trainer), TRAINERS, n=1)
        hint = f"; nearest is `{near[0]}`" if near else ""
        raise SpecError(f"`trainer`: found `{trainer}`, expected native, jax or a callable{hint}")
    name = getattr(trainer, "__qualname__", type(trainer).__qualname__)
    return str(name), _guarded(trainer)


def _guarded(trainer: Trainer) -> Callable[..., bytes]:
    """Return a function of a window's parts whose errors say what and where in one line."""

    def train(
        case: int,
        number: int,
        first: bool,
        threshold: int,
        seed: int,
        features: list[str],
        inputs: NDArray[np.float32],
        labels: NDArray[np.int8],
        bounds: NDArray[np.int64],
    ) -> bytes:
        window = Window(case, number, first, threshold, seed, features, inputs, labels, bounds)
        try:
            model = trainer(window)
        except Exception as error:
            raise RunError(_sentence(error)) from error
        if not isinstance(model, bytes):
            kind = type(model).__name__
            raise RunError(f"found {kind} as its answer, expected the bytes of a model file")
        return model

    return train


def _sentence(error: Exception) -> str:
    words = " ".join(str(error).split()) or "no message"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {words}{place}"
