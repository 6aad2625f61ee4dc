"""Writing a GRU classifier as a model file.

For: trainers of any framework: weights by PyTorch's names in, bytes out. Must never know: how the
weights were found. Layout: docs/model-file.md (safetensors; little-endian; the same model gives the
same bytes).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachewright._native import SpecError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1
HEAD = "fc"
GATES = 3
LENGTH_BYTES = 8
LAYER = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
NAMES = (*LAYER, f"{HEAD}.weight", f"{HEAD}.bias")


def model_file(
    weights: Mapping[str, NDArray[np.float32]],
    features: Sequence[str],
    test_inputs: NDArray[np.float32],
    test_outputs: NDArray[np.float32],
    notes: Mapping[str, str] | None = None,
) -> bytes:
    """Return the bytes of a model file of one GRU layer and the dense layer `fc`.

    `weights` are `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, `fc.weight`,
    `fc.bias`; `test_inputs` are rows of one sequence, `test_outputs` what the model gives for each
    from a zero state: loading replays them. Inputs are not normalised. Errors: `SpecError` naming a
    tensor that is missing or of another shape.
    """
    _check(weights, len(features))
    outputs, hidden = weights[f"{HEAD}.weight"].shape
    description = {
        "version": VERSION,
        "architecture": {
            "kind": "gru",
            "inputs": len(features),
            "hidden": [hidden],
            "heads": [{"name": HEAD, "outputs": outputs}],
        },
        "features": list(features),
        "normalisation": {"mean": [0.0] * len(features), "deviation": [1.0] * len(features)},
        "notes": dict(notes or {}),
        "test_vector": {"inputs": test_inputs.tolist(), "outputs": test_outputs.tolist()},
    }
    text = json.dumps(description, separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": {"cachewright": text}}
    data = b""
    for name in sorted(weights):
        tensor = weights[name].astype("<f4").tobytes()
        shape, offsets = list(weights[name].shape), [len(data), len(data) + len(tensor)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
        data += tensor
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % LENGTH_BYTES)
    return len(head).to_bytes(LENGTH_BYTES, "little") + head + data


def _check(weights: Mapping[str, NDArray[np.float32]], inputs: int) -> None:
    names = ", ".join(NAMES)
    for name in weights:
        if name not in NAMES:
            raise SpecError(f"weights: found `{name}`, expected {names}")
    for name in NAMES:
        if name not in weights:
            raise SpecError(f"weights: found no `{name}`, expected {names}")
    hidden, outputs = weights["weight_hh_l0"].shape[-1], weights[f"{HEAD}.bias"].shape[-1]
    rows = GATES * hidden
    shapes = ((rows, inputs), (rows, hidden), (rows,), (rows,), (outputs, hidden), (outputs,))
    for name, shape in zip(NAMES, shapes, strict=True):
        if weights[name].shape != shape:
            found = list(weights[name].shape)
            raise SpecError(f"weights: found {found} for `{name}`, expected {list(shape)}")
