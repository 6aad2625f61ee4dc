#!/usr/bin/env python3
"""Write the model files with which `crates/base/model` tests its forward passes.

For: models whose test vectors were computed by JAX (and checked against PyTorch where that is
installed), two of them trained on a toy task. Needs: jax, numpy, safetensors; torch is optional.
Run: `python scripts/make_infer_vectors.py [FOLDER]`; the same versions give the same bytes.
Layout of the files: docs/model-file.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save

FOLDER = Path(__file__).parent.parent / "crates/base/model/tests/data"
TOY_STEPS = 20


def gru_cell(weights, layer, state, x):
    """Advance PyTorch's `nn.GRU` by one step; the state is (hidden,)."""
    (hidden,) = state
    from_input = weights[f"weight_ih_l{layer}"] @ x + weights[f"bias_ih_l{layer}"]
    from_hidden = weights[f"weight_hh_l{layer}"] @ hidden + weights[f"bias_hh_l{layer}"]
    r_input, z_input, n_input = jnp.split(from_input, 3)
    r_hidden, z_hidden, n_hidden = jnp.split(from_hidden, 3)
    r = jax.nn.sigmoid(r_input + r_hidden)
    z = jax.nn.sigmoid(z_input + z_hidden)
    n = jnp.tanh(n_input + r * n_hidden)
    return ((1 - z) * n + z * hidden,)


def lstm_cell(weights, layer, state, x):
    """Advance PyTorch's `nn.LSTM` by one step; the state is (hidden, cell)."""
    hidden, cell = state
    gates = weights[f"weight_ih_l{layer}"] @ x + weights[f"bias_ih_l{layer}"]
    gates += weights[f"weight_hh_l{layer}"] @ hidden + weights[f"bias_hh_l{layer}"]
    i, f, g, o = jnp.split(gates, 4)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    return (jax.nn.sigmoid(o) * jnp.tanh(cell), cell)


def forward(shape, weights, inputs):
    """Return the outputs of all heads for each step of one sequence of normalised inputs."""
    recurrent = {"gru": (gru_cell, 1), "lstm": (lstm_cell, 2)}.get(shape["kind"])
    if recurrent:
        cell, parts = recurrent
        for layer, units in enumerate(shape["hidden"]):

            def step(state, x, layer=layer):
                state = cell(weights, layer, state, x)
                return state, state[0]

            _, inputs = jax.lax.scan(step, (jnp.zeros(units),) * parts, inputs)
    else:
        for layer in range(len(shape["hidden"])):
            name = f"hidden.{layer}"
            inputs = inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
            inputs = jax.nn.relu(inputs)
    heads = [head["name"] for head in shape["heads"]]
    outputs = [inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"] for name in heads]
    return jnp.concatenate(outputs, axis=1)


def torch_forward(shape, weights, inputs):
    """Return the same by PyTorch's own modules, or None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    x = torch.from_numpy(np.array(inputs))
    if shape["kind"] in ("gru", "lstm"):
        module = torch.nn.GRU if shape["kind"] == "gru" else torch.nn.LSTM
        layers = module(shape["inputs"], shape["hidden"][0], len(shape["hidden"]))
        own = {name: value for name, value in tensors.items() if name.split("_l")[-1].isdigit()}
        layers.load_state_dict(own)
        x, _ = layers(x)
    for layer in range(len(shape["hidden"]) if shape["kind"] == "mlp" else 0):
        name = f"hidden.{layer}"
        x = torch.nn.functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])
        x = torch.relu(x)
    outputs = [
        torch.nn.functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])
        for name in (head["name"] for head in shape["heads"])
    ]
    return torch.cat(outputs, dim=1).detach().numpy()


def initial(shape, rng):
    """Draw weights uniform in +-1/sqrt(columns), by PyTorch's names."""
    gates = {"gru": 3, "lstm": 4}.get(shape["kind"])
    sizes = {}
    before = shape["inputs"]
    for layer, units in enumerate(shape["hidden"]):
        if gates:
            sizes[f"weight_ih_l{layer}"] = (gates * units, before)
            sizes[f"weight_hh_l{layer}"] = (gates * units, units)
            sizes[f"bias_ih_l{layer}"] = (gates * units,)
            sizes[f"bias_hh_l{layer}"] = (gates * units,)
        else:
            sizes[f"hidden.{layer}.weight"] = (units, before)
            sizes[f"hidden.{layer}.bias"] = (units,)
        before = units
    for head in shape["heads"]:
        sizes[f"{head['name']}.weight"] = (head["outputs"], before)
        sizes[f"{head['name']}.bias"] = (head["outputs"],)
    bound = {name: 1 / np.sqrt(size[-1]) for name, size in sizes.items()}
    return {
        name: rng.uniform(-bound[name], bound[name], size).astype(np.float32)
        for name, size in sizes.items()
    }


def architecture(kind, inputs, hidden, **heads):
    """Describe a shape as the file spells it."""
    listed = [{"name": name, "outputs": outputs} for name, outputs in heads.items()]
    return {"kind": kind, "inputs": inputs, "hidden": hidden, "heads": listed}


def toy_sequences(rng, count):
    """Draw features (u, v) in 0..15 and their labels.

    The label says whether the sum of (u - 7.5) * (v >= 8 ? 1 : -1), shrunk to 0.8 before each
    step, is above 0.
    """
    features = rng.integers(0, 16, (count, TOY_STEPS, 2)).astype(np.float32)
    signed = (features[..., 0] - 7.5) * np.where(features[..., 1] >= 8, 1.0, -1.0)
    labels = np.zeros((count, TOY_STEPS), dtype=np.int32)
    total = np.zeros(count)
    for step in range(TOY_STEPS):
        total = 0.8 * total + signed[:, step]
        labels[:, step] = total > 0
    return features, labels


def train(shape, rng, steps=1500, batch=64, rate=5e-3):
    """Train weights on the toy task by Adam (Kingma, Ba, ICLR'15) with its usual constants."""
    weights = initial(shape, rng)

    def loss(weights, inputs, labels):
        logits = jax.vmap(lambda x: forward(shape, weights, x))(inputs)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
        return -jnp.mean(chosen)

    @jax.jit
    def update(weights, first, second, step, inputs, labels):
        slope = jax.grad(loss)(weights, inputs, labels)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slope)

        def move(w, m, v):
            scaled = jnp.sqrt(v / (1 - 0.999**step)) + 1e-8
            return w - rate * m / (1 - 0.9**step) / scaled

        return jax.tree.map(move, weights, first, second), first, second

    first = jax.tree.map(jnp.zeros_like, weights)
    second = jax.tree.map(jnp.zeros_like, weights)
    for step in range(1, steps + 1):
        features, labels = toy_sequences(rng, batch)
        inputs = (features - 7.5) / 7.5
        weights, first, second = update(weights, first, second, float(step), inputs, labels)
    features, labels = toy_sequences(rng, 1000)
    logits = jax.vmap(lambda x: forward(shape, weights, x))((features - 7.5) / 7.5)
    print(f"  accuracy {np.mean(np.argmax(logits, axis=-1) == labels):.4f}")
    return {name: np.asarray(value) for name, value in weights.items()}


def write(folder, name, shape, weights, features, mean, deviation):
    """Write one model file, with JAX's outputs as its test vector."""
    mean = np.full(shape["inputs"], mean, dtype=np.float32)
    deviation = np.full(shape["inputs"], deviation, dtype=np.float32)
    inputs = (features - mean) / deviation
    outputs = np.asarray(forward(shape, weights, jnp.asarray(inputs)))
    other = torch_forward(shape, weights, inputs)
    checked = "jax"
    if other is not None:
        np.testing.assert_allclose(outputs, other, atol=2e-6, rtol=1e-5)
        checked = "jax, torch"
    description = {
        "version": 1,
        "architecture": shape,
        "features": [f"x{index}" for index in range(shape["inputs"])],
        "normalisation": {"mean": mean.tolist(), "deviation": deviation.tolist()},
        "notes": {"computed_by": checked},
        "test_vector": {"inputs": features.tolist(), "outputs": outputs.tolist()},
    }
    text = json.dumps(description, separators=(",", ":"))
    content = save(weights, metadata={"cachewright": text})
    (folder / f"{name}.safetensors").write_bytes(content)
    print(f"{name}: {len(content)} bytes, {checked}")


def main() -> None:
    """Write every file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20)
    shapes = {
        "gru": architecture("gru", 22, [32], fc=2),
        "gru-2-layers": architecture("gru", 3, [11, 11], fc=1),
        "lstm": architecture("lstm", 4, [21], fc=2),
        "lstm-3-layers": architecture("lstm", 5, [9, 9, 9], cached=2, duration=3),
        "mlp": architecture("mlp", 7, [19, 10], fc=3),
        "logistic": architecture("logistic", 6, [], fc=1),
    }
    for name, shape in shapes.items():
        features = rng.integers(0, 16, (12, shape["inputs"])).astype(np.float32)
        write(folder, name, shape, initial(shape, rng), features, 0.0, 15.0)
    for kind in ("gru", "lstm"):
        shape = architecture(kind, 2, [16], fc=2)
        weights = train(shape, rng)
        features, _ = toy_sequences(rng, 1)
        write(folder, f"toy-{kind}", shape, weights, features[0], 7.5, 7.5)


if __name__ == "__main__":
    main()
