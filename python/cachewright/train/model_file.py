"""Models as model files, whatever framework trained them.

For: weights by PyTorch's names, or trees as flat arrays, in; bytes out; what a file says of its
model. Must never know: how weights were found. Layout: docs/model-file.md (safetensors;
little-endian; the same model gives the same bytes).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from cachewright import _native
from cachewright._native import SpecError
from cachewright.answers import ModelDescription
from cachewright.documents import load, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1
LENGTH_BYTES = 8
FOREST = "forest"
GATES = {"gru": 3, "lstm": 4}
WHOLE = ("tree.nodes", "node.feature")
"""Tensors of whole numbers."""

Tensors: TypeAlias = "Mapping[str, NDArray[np.float32] | NDArray[np.int32]]"


@dataclass(frozen=True, kw_only=True)
class Head:
    """A head of a network, or the outputs of a forest."""

    name: str
    outputs: int


@dataclass(frozen=True, kw_only=True)
class Forest:
    """The shape of a forest."""

    trees: int
    # Nodes of all trees.
    nodes: int
    # `mean` or `sum`.
    combine: str


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The shape of a model, as its file has it."""

    kind: str
    # Numbers per step that go in.
    inputs: int
    # Units of each layer, the first layer first.
    hidden: tuple[int, ...]
    heads: tuple[Head, ...]
    # Absent for other kinds.
    forest: Forest | None = None


@dataclass(frozen=True)
class Normalisation:
    """How a feature becomes an input: (feature - mean) / deviation, a number per input."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    @staticmethod
    def none(inputs: int) -> Normalisation:
        """Return what leaves features as they are."""
        import numpy as np

        return Normalisation(np.zeros(inputs, np.float32), np.ones(inputs, np.float32))

    @staticmethod
    def of(rows: NDArray[np.float32]) -> Normalisation:
        """Return mean and deviation of rows; what never moved is divided by its size.

        (Divided by a tiny deviation, the first value that differs would be far out of range.)
        """
        import numpy as np

        mean = rows.mean(axis=0, dtype=np.float64)
        deviation = rows.std(axis=0, dtype=np.float64)
        size = np.maximum(np.abs(mean), 1.0)
        deviation = np.where(deviation > 1e-6 * size, deviation, size)
        return Normalisation(mean.astype(np.float32), deviation.astype(np.float32))

    def apply(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inputs, bit by bit as the forward passes find them."""
        import numpy as np

        one = np.float32(1)
        return np.asarray((features - self.mean) * (one / self.deviation), dtype=np.float32)


def described(content: bytes) -> ModelDescription:
    """Return what a model file holds. Errors: `SpecError` for other bytes."""
    return load(ModelDescription, json.loads(_native.Model(content).describe()))


def model_file(
    weights: Tensors,
    features: Sequence[str],
    test_inputs: NDArray[np.float32],
    test_outputs: NDArray[np.float32],
    notes: Mapping[str, str] | None = None,
    *,
    kind: str = "gru",
    heads: Sequence[str] = ("fc",),
    normalisation: Normalisation | None = None,
    combine: str = "mean",
) -> bytes:
    """Return the bytes of a model file.

    `weights` are those of docs/model-file.md, such as `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`,
    `bias_hh_l0`, `fc.weight`, `fc.bias` of a GRU; how many layers there are and how wide follows
    from them. `test_inputs` are rows of one sequence before normalisation, `test_outputs` what the
    model gives for each from a zero state: loading replays them. A forest has one head; `combine`
    (`mean` or `sum`) is of forests alone. Errors: `SpecError` naming a tensor that is missing or of
    another shape.
    """
    normalisation = normalisation or Normalisation.none(len(features))
    architecture = _architecture(weights, kind, len(features), heads, combine)
    _check(weights, _expected(architecture))
    description = {
        "version": VERSION,
        "architecture": table(architecture),
        "features": list(features),
        "normalisation": {
            "mean": normalisation.mean.tolist(),
            "deviation": normalisation.deviation.tolist(),
        },
        "notes": dict(notes or {}),
        "test_vector": {"inputs": test_inputs.tolist(), "outputs": test_outputs.tolist()},
    }
    text = json.dumps(description, separators=(",", ":"))
    tensors: dict[str, Any] = {}
    data, crc = b"", zlib.crc32(text.encode())
    for name in sorted(weights):
        whole = kind == FOREST and name in WHOLE
        tensor = weights[name].astype("<i4" if whole else "<f4").tobytes()
        shape, offsets = list(weights[name].shape), [len(data), len(data) + len(tensor)]
        dtype = "I32" if whole else "F32"
        tensors[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += tensor
        line = f"{name} {dtype} {','.join(map(str, shape))}\n"
        crc = zlib.crc32(tensor, zlib.crc32(line.encode(), crc))
    checked = f'{{"crc32":"{crc:08x}",{text[1:]}'
    header: dict[str, Any] = {"__metadata__": {"cachewright": checked}, **tensors}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % LENGTH_BYTES)
    return len(head).to_bytes(LENGTH_BYTES, "little") + head + data


def _architecture(
    weights: Tensors, kind: str, inputs: int, heads: Sequence[str], combine: str
) -> Architecture:
    """Return what the weights say of themselves; 1 where one that would say it is missing."""

    def width(name: str) -> int:
        return int(weights[name].shape[-1]) if name in weights else 1

    hidden = tuple(_hidden(weights, kind, width))
    if kind == FOREST:
        forest = Forest(trees=width("tree.nodes"), nodes=width("node.feature"), combine=combine)
        outputs = tuple(Head(name=head, outputs=width("base")) for head in heads)
        return Architecture(kind=kind, inputs=inputs, hidden=hidden, heads=outputs, forest=forest)
    outputs = tuple(Head(name=head, outputs=width(f"{head}.bias")) for head in heads)
    return Architecture(kind=kind, inputs=inputs, hidden=hidden, heads=outputs)


def _hidden(weights: Tensors, kind: str, width: Callable[[str], int]) -> list[int]:
    """Return the units of each layer, at least of one layer where the kind has layers."""
    if kind in GATES:
        layers = sum(name.startswith("weight_hh_l") for name in weights)
        return [width(f"weight_hh_l{layer}") for layer in range(max(layers, 1))]
    if kind == "mlp":
        layers = sum(name.startswith("hidden.") and name.endswith(".bias") for name in weights)
        return [width(f"hidden.{layer}.bias") for layer in range(max(layers, 1))]
    return []


def _expected(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Return the tensors that an architecture has, by name with their shapes."""
    kind, before = architecture.kind, architecture.inputs
    if architecture.forest is not None:
        trees, nodes = architecture.forest.trees, architecture.forest.nodes
        outputs = architecture.heads[0].outputs
        return {
            "tree.nodes": (trees,),
            "node.feature": (nodes,),
            "node.threshold": (nodes,),
            "leaf.values": ((nodes + trees) // 2, outputs),
            "base": (outputs,),
        }
    expected: dict[str, tuple[int, ...]] = {}
    for layer, units in enumerate(architecture.hidden):
        if kind in GATES:
            rows = GATES[kind] * units
            expected[f"weight_ih_l{layer}"] = (rows, before)
            expected[f"weight_hh_l{layer}"] = (rows, units)
            expected[f"bias_ih_l{layer}"] = expected[f"bias_hh_l{layer}"] = (rows,)
        else:
            expected[f"hidden.{layer}.weight"] = (units, before)
            expected[f"hidden.{layer}.bias"] = (units,)
        before = units
    for head in architecture.heads:
        expected[f"{head.name}.weight"] = (head.outputs, before)
        expected[f"{head.name}.bias"] = (head.outputs,)
    return expected


def _check(weights: Tensors, expected: Mapping[str, tuple[int, ...]]) -> None:
    names = ", ".join(expected)
    for name in weights:
        if name not in expected:
            raise SpecError(f"weights: found `{name}`, expected {names}")
    for name in expected:
        if name not in weights:
            raise SpecError(f"weights: found no `{name}`, expected {names}")
    for name, shape in expected.items():
        if weights[name].shape != shape:
            found = list(weights[name].shape)
            raise SpecError(f"weights: found {found} for `{name}`, expected {list(shape)}")
