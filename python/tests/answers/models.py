"""Untrained model files: their weights are drawn from a fixed seed.

For: policies, partitioners, separations and characterizers that decide by a model. Must never know:
what they decide. Networks are small; the forward passes here only make the test vectors that a
model file has.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cachewright import _native
from cachewright.train import model_file

Floats = NDArray[np.float32]
Weights = dict[str, Floats]
Heads = Mapping[str, int]

UNITS, STEPS = 6, 12
SHIRO_UNITS = 32
KINDS = {"kind": 2}
LABELS = {"cached": 2, "duration": 3}
REUSE = ("step", "sequential", "distance", "accesses", "reads", "size", "write")
FED_BACK = ("previous_cached", "previous_duration")
STEP = ("intensity", "write_ratio", "request_bytes", "unique_ratio")
CHARACTERIZERS = ("rc-rnn", "twsd", "frequency", "io-size")
MLCACHE_TENANTS, MLCACHE_BINS = 2, 10
SHIRO = {
    "previous_lifetime": 8,
    "request_pages": 3,
    "sequential": 1,
    "chunk_writes": 4,
    "chunk_reads": 4,
    "write_share": 4,
}
"""Features of a page write and their hex digits, each of which is an input."""


def _draw(rng: random.Random, *shape: int, bound: float = 0.8) -> Floats:
    count = int(np.prod(shape))
    numbers = [rng.uniform(-bound, bound) for _ in range(count)]
    return np.array(numbers, dtype=np.float32).reshape(shape)


def _heads(rng: random.Random, heads: Heads, units: int) -> Weights:
    found = {}
    for name, outputs in heads.items():
        found[f"{name}.weight"] = _draw(rng, outputs, units)
        found[f"{name}.bias"] = _draw(rng, outputs, bound=0.3)
    return found


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)), dtype=np.float32)


def _outputs(weights: Weights, heads: Heads, hidden: Floats) -> Floats:
    parts = [weights[f"{name}.weight"] @ hidden + weights[f"{name}.bias"] for name in heads]
    return np.concatenate(parts)


def _recurrent(kind: str, weights: Weights, heads: Heads, rows: Floats) -> Floats:
    """Return what an LSTM or GRU of one layer gives for each row, from a zero state."""
    state = cell = np.zeros(weights["weight_hh_l0"].shape[1], dtype=np.float32)
    found = []
    for row in rows:
        x = weights["weight_ih_l0"] @ row + weights["bias_ih_l0"]
        h = weights["weight_hh_l0"] @ state + weights["bias_hh_l0"]
        if kind == "lstm":
            i, f, g, o = np.split(x + h, 4)
            cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
            state = _sigmoid(o) * np.tanh(cell)
        else:
            (xr, xz, xn), (hr, hz, hn) = np.split(x, 3), np.split(h, 3)
            update = _sigmoid(xz + hz)
            state = (1 - update) * np.tanh(xn + _sigmoid(xr + hr) * hn) + update * state
        found.append(_outputs(weights, heads, state))
    return np.array(found, dtype=np.float32)


def recurrent(
    kind: str, seed: int, features: Sequence[str], heads: Heads, notes: Mapping[str, str] = {}
) -> bytes:
    """Return a model of one layer, `lstm` or `gru`."""
    rng, gates = random.Random(seed), {"lstm": 4, "gru": 3}[kind]
    units = SHIRO_UNITS if "fc" in heads else UNITS
    inputs, rows = len(features), gates * units
    weights = {
        "weight_ih_l0": _draw(rng, rows, inputs, bound=0.3),
        "weight_hh_l0": _draw(rng, rows, units, bound=0.3),
        "bias_ih_l0": _draw(rng, rows, bound=0.3),
        "bias_hh_l0": _draw(rng, rows, bound=0.3),
        **_heads(rng, heads, units),
    }
    tested = abs(_draw(rng, STEPS, inputs, bound=4))
    right = _recurrent(kind, weights, heads, tested)
    names = list(features)
    return model_file(weights, names, tested, right, notes, kind=kind, heads=list(heads))


def dense(seed: int, features: Sequence[str], heads: Heads, notes: Mapping[str, str] = {}) -> bytes:
    """Return a model of one dense layer."""
    rng, inputs = random.Random(seed), len(features)
    weights = {
        "hidden.0.weight": _draw(rng, UNITS, inputs),
        "hidden.0.bias": _draw(rng, UNITS, bound=0.3),
        **_heads(rng, heads, UNITS),
    }
    tested = abs(_draw(rng, STEPS, inputs, bound=1))
    first, bias = weights["hidden.0.weight"], weights["hidden.0.bias"]
    hidden = [np.maximum(first @ row + bias, 0) for row in tested]
    right = np.array([_outputs(weights, heads, one) for one in hidden], dtype=np.float32)
    names = list(features)
    return model_file(weights, names, tested, right, notes, kind="mlp", heads=list(heads))


def _in_int8(model: bytes, inputs: int) -> bytes:
    rng = random.Random(9)
    return bytes(_native.Model(model).quantised(abs(_draw(rng, 4, STEPS, inputs, bound=16))))


def write(folder: Path) -> None:
    """Write every model into a folder."""
    seen = {"granules": "10", "window_steps": "12"}
    parts = [f"{name}.{part}" for part in range(12) for name in STEP]
    reuse = [f"reuse.{t}.{b}" for t in range(MLCACHE_TENANTS) for b in range(MLCACHE_BINS)]
    digits = [f"{name}.{at}" for name, count in SHIRO.items() for at in range(count)]
    labels = (*REUSE, *FED_BACK)
    lstm = recurrent("lstm", 10, labels, LABELS)
    files = {
        "labels": lstm,
        "labels-int8": _in_int8(lstm, len(labels)),
        "labels-gru": recurrent("gru", 28, ("address", "size", "write", *FED_BACK), LABELS),
        "lstm": recurrent("lstm", 3, STEP, {"points": 2}, seen),
        "mlp": dense(4, parts, {"points": 2}, seen),
        "later": recurrent("gru", 5, STEP, {"points": 2}, {**seen, "from_interval": "4"}),
        "shares": dense(6, reuse, {"shares": 2}),
        "shiro": recurrent("gru", 7, digits, {"fc": 2}),
    }
    for by in CHARACTERIZERS:
        names = _native.characterizer_features(by)
        notes = {"characterizer": by, "kinds": "mail, web", "window": "20"}
        drawn = recurrent("lstm", 8, names, KINDS, notes)
        files[by] = drawn if by == "rc-rnn" else dense(8, names, KINDS, notes)
    for name, content in files.items():
        (folder / f"{name}.safetensors").write_bytes(content)
