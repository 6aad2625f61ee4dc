"""Recurrent and dense networks trained by JAX and optax on whole sequences.

For: `fit`, which learns until the validation loss no longer falls, and what a network predicts.
Must never know: what inputs and targets mean. Adam, or RMSprop as Keras sets it (decay 0.9),
gradients cut at length 1, weights drawn uniform within 1/sqrt(inputs of the layer) as PyTorch's,
biases of the head at the targets' mean (ours). In single precision on the processor, deterministic
by the seed. JAX comes with the extra `train`. Weights go by PyTorch's names (docs/model-file.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from cachewright._native import RunError, SpecError
from cachewright.train.model_file import GATES

if TYPE_CHECKING:
    import jax
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

CLIP = 1.0
LSTM, MLP = "lstm", "mlp"
ADAM, RMSPROP = "adam", "rmsprop"
"""What takes the steps."""

DECAY, EPSILON = 0.9, 1e-7
"""Of RMSprop, as Keras sets them."""

SQUARES, SHARES = "squares", "shares"
"""What is made small: squared errors of the outputs, or the cross entropy of their softmax."""

EXTRA = "pip install 'cachewright[train]'"

Weights: TypeAlias = "Mapping[str, NDArray[np.float32]]"


@dataclass(frozen=True)
class Network:
    """A shape: its kind, units of each hidden layer, the head's name, and what is made small."""

    kind: str
    hidden: tuple[int, ...]
    head: str
    loss: str = SQUARES

    def draw(self, inputs: int, outputs: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw weights."""
        import numpy as np

        shapes: dict[str, tuple[tuple[int, ...], int]] = {}
        before = inputs
        for layer, units in enumerate(self.hidden):
            if self.kind == LSTM:
                rows = GATES[LSTM] * units
                shapes[f"weight_ih_l{layer}"] = ((rows, before), units)
                shapes[f"weight_hh_l{layer}"] = ((rows, units), units)
                shapes[f"bias_ih_l{layer}"] = shapes[f"bias_hh_l{layer}"] = ((rows,), units)
            else:
                shapes[f"hidden.{layer}.weight"] = ((units, before), before)
                shapes[f"hidden.{layer}.bias"] = ((units,), before)
            before = units
        shapes[f"{self.head}.weight"] = ((outputs, before), before)
        shapes[f"{self.head}.bias"] = ((outputs,), before)
        return {
            name: rng.uniform(-(width**-0.5), width**-0.5, shape).astype(np.float32)
            for name, (shape, width) in shapes.items()
        }


@dataclass(frozen=True)
class Fitting:
    """How to learn."""

    epochs: int
    """At most."""

    patience: int
    """Epochs without a better validation loss before it ends."""

    batch: int
    rate: float
    seed: int
    optimiser: str = ADAM


@dataclass(frozen=True)
class Examples:
    """Normalised inputs ([example, step, input], or [example, input] of a dense net), targets."""

    inputs: NDArray[np.float32]
    targets: NDArray[np.float32]


@dataclass(frozen=True)
class Fitted:
    """The weights of the best epoch."""

    weights: dict[str, NDArray[np.float32]]
    epochs: int
    """Epochs that were run."""

    best_epoch: int
    train_loss: float
    """Of the last epoch, while it learned."""

    validation_loss: float
    curve: list[tuple[float, ...]] = field(default_factory=list)
    """After each epoch the share of each watched part whose largest output is the target's."""


def need() -> str:
    """Return the versions of JAX and optax. Errors: `SpecError` when one is not installed."""
    try:
        import jax
        import optax
    except ImportError as error:
        name = error.name or "jax"
        raise SpecError(f"training needs {name}, which is not here; {EXTRA}") from None
    return f"jax {jax.__version__}, optax {optax.__version__}"


def fit(
    network: Network,
    train: Examples,
    validation: Examples,
    fitting: Fitting,
    begin: Weights | None = None,
    note: tuple[str, Progress] | None = None,
    watched: Sequence[Examples] = (),
) -> Fitted:
    """Learn from examples until the loss of `validation` has not fallen for `patience` epochs.

    `begin` are weights to go on from; without them they are drawn. `note` is a stage's name and the
    call-back that is told of epochs. `watched` are parts whose accuracy is written down after each
    epoch and decides nothing. Errors: `RunError` when cancelled.
    """
    import jax
    import numpy as np

    rng = np.random.default_rng(fitting.seed)
    with jax.default_device(jax.devices("cpu")[0]):
        machine = _machine(network.kind, network.head, network.loss, fitting.optimiser)
        weights = dict(begin or _drawn(network, train, rng))
        memory = machine.start(weights)
        rate = np.float32(fitting.rate)
        best, least, best_epoch, epoch, loss = weights, float("inf"), 0, 0, 0.0
        curve: list[tuple[float, ...]] = []
        while epoch < fitting.epochs and epoch - best_epoch < fitting.patience:
            losses = []
            for chosen, counts in _batches(rng.permutation(len(train.inputs)), fitting.batch):
                batch = (train.inputs[chosen], train.targets[chosen], counts)
                weights, memory, found = machine.update(weights, memory, rate, *batch)
                losses.append(found)
            epoch += 1
            loss = float(np.mean([float(found) for found in losses]))
            judged = _loss(machine, weights, validation, fitting.batch)
            if judged < least:
                best, least, best_epoch = weights, judged, epoch
            if watched:
                curve.append(tuple(_right(machine, weights, one) for one in watched))
            if note is not None and note[1](note[0], epoch, fitting.epochs) is False:
                raise RunError("cancelled by the progress call-back")
        kept = {name: np.asarray(value) for name, value in best.items()}
    return Fitted(kept, epoch, best_epoch, loss, least, curve)


def says(network: Network, weights: Weights, sequence: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the outputs after each step of one sequence of normalised inputs [step, input]."""
    import jax
    import numpy as np

    with jax.default_device(jax.devices("cpu")[0]):
        machine = _machine(network.kind, network.head, network.loss, ADAM)
        return np.asarray(machine.each_step(dict(weights), sequence))


def _drawn(network: Network, train: Examples, rng: np.random.Generator) -> dict[str, Any]:
    import numpy as np

    weights = network.draw(train.inputs.shape[-1], train.targets.shape[-1], rng)
    if network.loss == SQUARES:
        weights[f"{network.head}.bias"] = train.targets.mean(axis=0).astype(np.float32)
    return weights


def _batches(order: NDArray[np.int64], size: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return places in batches of one size and how much each counts; the last is filled up."""
    import numpy as np

    found = []
    for first in range(0, len(order), size):
        own = order[first : first + size]
        counts = np.zeros(size, dtype=np.float32)
        counts[: len(own)] = 1 / len(own)
        found.append((np.resize(own, size), counts))
    return found


def _loss(machine: _Machine, weights: Any, examples: Examples, size: int) -> float:
    total = 0.0
    for chosen, counts in _batches(_whole(examples), size):
        share = int((counts > 0).sum()) / len(examples.inputs)
        batch = (examples.inputs[chosen], examples.targets[chosen], counts)
        total += share * float(machine.loss(weights, *batch))
    return total


def _right(machine: _Machine, weights: Any, examples: Examples) -> float:
    """Return the share of examples whose largest output is that of the target."""
    import numpy as np

    said = np.asarray(machine.outputs(weights, examples.inputs)).argmax(axis=1)
    return float(np.mean(said == examples.targets.argmax(axis=1)))


def _whole(examples: Examples) -> NDArray[np.int64]:
    import numpy as np

    return np.arange(len(examples.inputs))


@dataclass(frozen=True)
class _Machine:
    """Compiled functions, shared by all trainings of the process."""

    start: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any, jax.Array]]
    loss: Callable[..., jax.Array]
    each_step: Callable[[Any, NDArray[np.float32]], jax.Array]
    outputs: Callable[[Any, NDArray[np.float32]], jax.Array]


def lstm_layers(weights: Any, rows: jax.Array, state: Any) -> tuple[jax.Array, Any]:
    """Return the states after each step of `rows` [step, example, input], and the state to go on.

    `state` is a pair [example, unit] per layer.
    """
    import jax
    import jax.numpy as jnp

    after = []
    for layer, begin in enumerate(state):
        hidden = weights[f"weight_hh_l{layer}"]
        bias = weights[f"bias_ih_l{layer}"] + weights[f"bias_hh_l{layer}"]
        from_input = rows @ weights[f"weight_ih_l{layer}"].T + bias

        def step(
            carry: tuple[jax.Array, jax.Array], x: jax.Array, hidden: jax.Array = hidden
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            before, cell = carry
            i, f, g, o = jnp.split(x + before @ hidden.T, GATES[LSTM], axis=-1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            now = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (now, cell), now

        end, rows = jax.lax.scan(step, begin, from_input)
        after.append(end)
    return rows, after


def _lstm(weights: Any, rows: jax.Array) -> jax.Array:
    """Return the states after each step of `rows` [step, example, input], from zero."""
    import jax.numpy as jnp

    state: list[tuple[jax.Array, jax.Array]] = []
    while (name := f"weight_hh_l{len(state)}") in weights:
        zero = jnp.zeros((rows.shape[1], weights[name].shape[1]))
        state.append((zero, zero))
    return lstm_layers(weights, rows, state)[0]


def _mlp(weights: Any, rows: jax.Array) -> jax.Array:
    import jax.numpy as jnp

    layer = 0
    while f"hidden.{layer}.weight" in weights:
        rows = rows @ weights[f"hidden.{layer}.weight"].T + weights[f"hidden.{layer}.bias"]
        rows = jnp.maximum(rows, 0)
        layer += 1
    return rows


@cache
def _machine(kind: str, head: str, loss_name: str, optimiser_name: str) -> _Machine:
    import jax
    import jax.numpy as jnp
    import optax

    # The step is taken at rate 1 and scaled, so that one compiled update serves all rates.
    rmsprop = optimiser_name == RMSPROP
    steps = optax.rmsprop(1.0, decay=DECAY, eps=EPSILON) if rmsprop else optax.adam(1.0)
    optimiser = optax.chain(optax.clip_by_global_norm(CLIP), steps)

    def dense(weights: Any, states: jax.Array) -> jax.Array:
        found: jax.Array = states @ weights[f"{head}.weight"].T + weights[f"{head}.bias"]
        return found

    def outputs(weights: Any, inputs: jax.Array) -> jax.Array:
        if kind == LSTM:
            return dense(weights, _lstm(weights, inputs.transpose(1, 0, 2))[-1])
        return dense(weights, _mlp(weights, inputs))

    def loss(weights: Any, inputs: jax.Array, targets: jax.Array, counts: jax.Array) -> jax.Array:
        found = outputs(weights, inputs)
        if loss_name == SHARES:
            each = -jnp.sum(targets * jax.nn.log_softmax(found), axis=-1)
        else:
            each = jnp.mean((found - targets) ** 2, axis=-1)
        return jnp.sum(counts * each)

    @jax.jit
    def update(
        weights: Any,
        memory: Any,
        rate: jax.Array,
        inputs: jax.Array,
        targets: jax.Array,
        counts: jax.Array,
    ) -> tuple[Any, Any, jax.Array]:
        found, slope = jax.value_and_grad(loss)(weights, inputs, targets, counts)
        change, memory = optimiser.update(slope, memory, weights)
        return {name: weights[name] + rate * change[name] for name in weights}, memory, found

    def each_step(weights: Any, rows: jax.Array) -> jax.Array:
        if kind == LSTM:
            return dense(weights, _lstm(weights, rows[:, None])[:, 0])
        return dense(weights, _mlp(weights, rows))

    step, whole = jax.jit(each_step), jax.jit(outputs)
    return _Machine(optimiser.init, update, jax.jit(loss), step, whole)
