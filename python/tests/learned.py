"""What the tests of trainers share: a trace that can be learned, a GRU in numpy, model files read.

For: helpers. Must never know: JAX.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
UNITS = 32
PAGES, ROUND = 500, 15


def trace_text(writes: int, turn: int = 0, seed: int = 1) -> str:
    """Return a trace: every page once, then three of four writes go round fifteen pages.

    The others go anywhere; from write `turn` on, where to is drawn from `seed`.
    """
    early, late = random.Random(5), random.Random(seed)
    pages = list(range(PAGES))
    for index in range(writes):
        anywhere = ROUND + (early if index < turn else late).randrange(PAGES - ROUND)
        pages.append((index - index // 4) % ROUND if index % 4 else anywhere)
    return "".join(f"1,W,{page * 4096},4096,{at}\n" for at, page in enumerate(pages))


def write_trace(folder: Path, writes: int, turn: int = 0, seed: int = 1) -> Path:
    """Write such a trace into a folder."""
    path = folder / "learn.csv"
    path.write_text(trace_text(writes, turn, seed))
    return path


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)), dtype=np.float32)


def outputs(weights: dict[str, Floats], rows: Floats) -> Floats:
    """Return what a GRU with a dense layer gives for each row, from a zero state."""
    state = np.zeros(weights["weight_hh_l0"].shape[1], dtype=np.float32)
    found = []
    for row in rows:
        x = weights["weight_ih_l0"] @ row + weights["bias_ih_l0"]
        h = weights["weight_hh_l0"] @ state + weights["bias_hh_l0"]
        (xr, xz, xn), (hr, hz, hn) = np.split(x, 3), np.split(h, 3)
        z = sigmoid(xz + hz)
        state = (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * state
        found.append(weights["fc.weight"] @ state + weights["fc.bias"])
    return np.array(found, dtype=np.float32)


def loss(weights: dict[str, Floats], window: Any) -> float:
    """Return the mean cross entropy of a window's labelled steps, in nats."""
    total, steps = 0.0, 0
    for rows, labels in window.series():
        found = outputs(weights, rows)
        norm = np.log(np.exp(found).sum(axis=1))
        for step, label in enumerate(labels.tolist()):
            if label >= 0:
                total += float(norm[step] - found[step, label])
                steps += 1
    return total / steps


def random_weights(inputs: int, seed: int = 3) -> dict[str, Floats]:
    """Draw weights of Shiro's model."""
    rng = np.random.default_rng(seed)
    shapes = {
        "weight_ih_l0": (3 * UNITS, inputs),
        "weight_hh_l0": (3 * UNITS, UNITS),
        "bias_ih_l0": (3 * UNITS,),
        "bias_hh_l0": (3 * UNITS,),
        "fc.weight": (2, UNITS),
        "fc.bias": (2,),
    }
    draw = {name: rng.uniform(-0.3, 0.3, shape) for name, shape in shapes.items()}
    return {name: values.astype(np.float32) for name, values in draw.items()}


def read_model(content: bytes) -> tuple[dict[str, Floats], dict[str, Any]]:
    """Return the tensors and the description of a model file."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    description = json.loads(header.pop("__metadata__")["cachewright"])
    data = content[8 + length :]
    tensors = {}
    for name, about in header.items():
        start, end = about["data_offsets"]
        tensors[name] = np.frombuffer(data[start:end], dtype="<f4").reshape(about["shape"])
    return tensors, description
