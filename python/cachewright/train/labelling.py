"""Recurrent networks that label every step of a long sequence, trained by JAX and optax.

For: `fit`, which learns two labels per step until a later part is no longer said better, and what a
network says. Must never know: what steps and labels mean. RMSprop as Keras sets it (rate 0.001,
decay 0.9), gradients cut at length 1. The state is carried from window to window, as it will be in
use: the sequence is cut into as many lanes as a batch has, which are walked side by side; gradients
end with a window. Deterministic by the seed. JAX comes with the extra `train`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from cachewright._native import RunError
from cachewright.train.model_file import GATES
from cachewright.train.networks import CLIP, DECAY, EPSILON, LSTM, Weights, lstm_layers
from cachewright.train.reports import Epoch

if TYPE_CHECKING:
    import jax
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

CACHED, DURATIONS = 2, 3
"""How many classes each label of a step has."""

HEADS: Mapping[str, int] = {"cached": CACHED, "duration": DURATIONS}
"""The labels of a step by the names of the heads that say them."""

NO_DURATION = 3
"""The duration of a step that has none."""

FED_BACK = 2
"""Inputs, the last ones, that are the labels of the step before."""

LEAST_LOSS, BEST_SCORE, LAST = "loss", "score", "last"


@dataclass(frozen=True)
class Steps:
    """A sequence: normalised inputs [step, input] and labels [step]."""

    inputs: NDArray[np.float32]
    cached: NDArray[np.uint8]
    duration: NDArray[np.uint8]

    def lanes(self, count: int, window: int) -> Steps:
        """Return the sequence as lanes [lane, window, step, ...], its rest left out."""
        windows = len(self.cached) // (count * window)
        end = count * windows * window

        def cut(column: NDArray[Any]) -> NDArray[Any]:
            return column[:end].reshape(count, windows, window, *column.shape[1:])

        return Steps(cut(self.inputs), cut(self.cached), cut(self.duration))

    def windows(self) -> int:
        """Return the windows of a lane."""
        return int(self.cached.shape[1])

    def at(self, window: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return a window of all lanes [step, lane, ...]."""
        import numpy as np

        columns = (self.inputs, self.cached, self.duration)
        first, second, third = (np.swapaxes(column[:, window], 0, 1) for column in columns)
        return first, second, third


@dataclass(frozen=True)
class Shape:
    """Layers of units, window and batch."""

    units: int
    layers: int
    window: int
    batch: int


@dataclass(frozen=True)
class Schedule:
    """How to learn."""

    epochs: int
    """At most."""

    patience: int
    """Epochs without a better validation loss before it ends."""

    updates: int
    """Updates of an epoch at most: a stretch of every lane, drawn anew each epoch."""

    rate: float
    balance: float
    """Power of one over its frequency by which a class counts: 0 counts each step alike."""

    own: float
    """Share of steps told the network's own labels of the step before, not the true ones."""

    seed: int
    ramp: int = 0
    """Epochs over which `own` rises from 0; 0 for the same in all."""

    keep: str = LEAST_LOSS
    """The epoch that is kept: with the least loss, with the highest score, or the last."""

    def judged(self, epoch: int, found: Epoch) -> float:
        """Return a number that is less for a better epoch."""
        if self.keep == LAST:
            return -float(epoch)
        if self.keep == BEST_SCORE and found.score is not None:
            return -found.score
        return found.loss

    def own_in(self, epoch: int) -> float:
        """Return the share told its own labels in an epoch, the first being 0."""
        return self.own * min(1.0, epoch / self.ramp) if self.ramp else self.own


@dataclass(frozen=True)
class Fitted:
    """The weights of the best epoch."""

    weights: dict[str, NDArray[np.float32]]
    epochs: int
    best_epoch: int
    updates: int
    validation_loss: float
    curve: list[Epoch] = field(default_factory=list)


def fit(
    shape: Shape,
    train: Steps,
    validation: Steps,
    schedule: Schedule,
    note: tuple[str, Progress] | None = None,
    score: Callable[[Mapping[str, NDArray[np.float32]]], float] | None = None,
) -> Fitted:
    """Learn until no epoch was better for a while, by the loss of `validation` or by `score`.

    A schedule that keeps the last epoch learns for as many as it has. `note` is a stage's name and
    the call-back that is told of epochs. Errors: `RunError` when cancelled.
    """
    import jax
    import numpy as np

    rng = np.random.default_rng(schedule.seed)
    counts = weights_of_classes(train, schedule.balance)
    lanes = train.lanes(shape.batch, shape.window)
    judges = validation.lanes(shape.batch, shape.window)
    with jax.default_device(jax.devices("cpu")[0]):
        machine = _machine(shape.layers)
        weights = draw(shape, train.inputs.shape[1], rng)
        memory = machine.start(weights)
        key = jax.random.key(schedule.seed)
        best, best_loss, least, best_epoch, epoch, updates = weights, 0.0, float("inf"), 0, 0, 0
        curve: list[Epoch] = []
        rate = np.float32(schedule.rate)
        while epoch < schedule.epochs and epoch - best_epoch < schedule.patience:
            length = min(schedule.updates, lanes.windows())
            first = int(rng.integers(lanes.windows() - length + 1))
            state, own = zero(shape), np.float32(schedule.own_in(epoch))
            for window in range(first, first + length):
                key, drawn = jax.random.split(key)
                batch = (*lanes.at(window), *counts)
                weights, memory, state = machine.update(
                    weights, memory, rate, state, batch, own, drawn
                )
            epoch, updates = epoch + 1, updates + length
            loss = _judged(machine, weights, shape, judges, counts)
            found = Epoch(updates=updates, loss=loss)
            if score is not None:
                arrays = {key: np.asarray(one) for key, one in weights.items()}
                found = Epoch(updates=updates, loss=loss, score=score(arrays))
            curve.append(found)
            judged = schedule.judged(epoch, found)
            if judged < least:
                best, best_loss, least, best_epoch = weights, loss, judged, epoch
            if note is not None and note[1](note[0], epoch, schedule.epochs) is False:
                raise RunError("cancelled by the progress call-back")
        kept = {name: np.asarray(value) for name, value in best.items()}
    return Fitted(kept, epoch, best_epoch, updates, best_loss, curve)


def says(weights: Weights, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the outputs of both heads after each step of normalised inputs [step, input]."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    layers = sum(name.startswith("weight_hh_l") for name in weights)
    units = weights["weight_hh_l0"].shape[1]
    with jax.default_device(jax.devices("cpu")[0]):
        state = [(jnp.zeros((1, units)), jnp.zeros((1, units))) for _ in range(layers)]
        found, _ = _forward(dict(weights), jnp.asarray(inputs)[:, None], state)
        return np.concatenate([np.asarray(head)[:, 0] for head in found], axis=1)


def draw(shape: Shape, inputs: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw weights by PyTorch's names, uniform within 1/sqrt(units); forget gates begin open."""
    import numpy as np

    rows, before, bound = GATES[LSTM] * shape.units, inputs, shape.units**-0.5
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(shape.layers):
        shapes[f"weight_ih_l{layer}"] = (rows, before)
        shapes[f"weight_hh_l{layer}"] = (rows, shape.units)
        shapes[f"bias_ih_l{layer}"] = shapes[f"bias_hh_l{layer}"] = (rows,)
        before = shape.units
    for head, outputs in HEADS.items():
        shapes[f"{head}.weight"] = (outputs, shape.units)
        shapes[f"{head}.bias"] = (outputs,)
    drawn = {
        name: rng.uniform(-bound, bound, size).astype(np.float32) for name, size in shapes.items()
    }
    for layer in range(shape.layers):
        drawn[f"bias_ih_l{layer}"][shape.units : 2 * shape.units] += 1
    return drawn


def zero(shape: Shape) -> list[tuple[Any, Any]]:
    """Return the state before the first step, of every layer."""
    import numpy as np

    size = (shape.batch, shape.units)
    return [(np.zeros(size, np.float32), np.zeros(size, np.float32)) for _ in range(shape.layers)]


def weights_of_classes(
    steps: Steps, balance: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how much a step of each class counts, by label; 1 on average over the steps."""
    import numpy as np

    def of(column: NDArray[np.uint8], classes: int) -> NDArray[np.float32]:
        share = np.bincount(column, minlength=classes)[:classes] / max(len(column), 1)
        found = np.where(share > 0, np.maximum(share, 1e-9) ** -balance, 0)
        return np.asarray(found / max((found * share).sum(), 1e-9), dtype=np.float32)

    durations = steps.duration[steps.duration != NO_DURATION]
    return of(steps.cached, CACHED), of(durations, DURATIONS)


def _judged(
    machine: _Machine, weights: Any, shape: Shape, steps: Steps, counts: tuple[Any, Any]
) -> float:
    state, total = zero(shape), 0.0
    for window in range(steps.windows()):
        found, state = machine.loss(weights, state, (*steps.at(window), *counts))
        total += float(found)
    return total / max(steps.windows(), 1)


@dataclass(frozen=True)
class _Machine:
    """Compiled functions, shared by all trainings of the process."""

    start: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any, Any]]
    loss: Callable[..., tuple[jax.Array, Any]]


def _forward(weights: Any, rows: jax.Array, state: Any) -> tuple[tuple[jax.Array, ...], Any]:
    """Return the outputs of each head after each step of `rows` [step, lane, input]; the state."""
    rows, after = lstm_layers(weights, rows, state)
    found = [rows @ weights[f"{head}.weight"].T + weights[f"{head}.bias"] for head in HEADS]
    return tuple(found), after


def _loss(weights: Any, state: Any, batch: Any) -> tuple[jax.Array, Any]:
    import jax
    import jax.numpy as jnp

    inputs, cached, duration, of_cached, of_duration = batch
    (said, lasts), after = _forward(weights, inputs, state)

    def entropy(outputs: jax.Array, labels: jax.Array, counts: jax.Array) -> jax.Array:
        chosen = jnp.minimum(labels, outputs.shape[-1] - 1).astype(jnp.int32)[..., None]
        each = -jnp.take_along_axis(jax.nn.log_softmax(outputs), chosen, axis=-1)[..., 0]
        counted = jnp.where(labels < outputs.shape[-1], counts[chosen[..., 0]], 0.0)
        found: jax.Array = jnp.sum(counted * each) / labels.size
        return found

    return entropy(said, cached, of_cached) + entropy(lasts, duration, of_duration), after


@cache
def _machine(layers: int) -> _Machine:
    """Return what trains networks of so many layers."""
    import jax
    import jax.numpy as jnp
    import optax

    # The step is taken at rate 1 and scaled, so that one compiled update serves all rates.
    optimiser = optax.chain(
        optax.clip_by_global_norm(CLIP), optax.rmsprop(1.0, decay=DECAY, eps=EPSILON)
    )

    def fed_back(weights: Any, state: Any, inputs: jax.Array, own: jax.Array, key: Any) -> Any:
        """Return inputs that are told the network's own labels at a share `own` of steps."""
        (said, lasts), _ = _forward(weights, inputs, state)
        cached = (said[..., 1] > said[..., 0]).astype(inputs.dtype)
        lasting = cached * (jnp.argmax(lasts, axis=-1) + 1) / DURATIONS
        labels = jnp.stack([cached, lasting], axis=-1)[:-1]
        chosen = jax.random.uniform(key, labels.shape[:2])[..., None] < own
        labels = jnp.where(chosen, labels, inputs[1:, :, -FED_BACK:])
        return jax.lax.stop_gradient(inputs.at[1:, :, -FED_BACK:].set(labels))

    @jax.jit
    def update(
        weights: Any, memory: Any, rate: jax.Array, state: Any, batch: Any, own: Any, key: Any
    ) -> tuple[Any, Any, Any]:
        inputs, *rest = batch
        inputs = jax.lax.cond(
            own > 0, lambda: fed_back(weights, state, inputs, own, key), lambda: inputs
        )
        slope, after = jax.grad(_loss, has_aux=True)(weights, state, (inputs, *rest))
        change, memory = optimiser.update(slope, memory, weights)
        return {name: weights[name] + rate * change[name] for name in weights}, memory, after

    return _Machine(optimiser.init, update, jax.jit(_loss))
