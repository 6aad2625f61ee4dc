"""Shiro's classifier trained by JAX and optax.

For: `JaxTrainer`, called at window borders: a GRU of 32 units and a dense layer, to convergence on
the first window, one epoch on each later one. Must never know: pages, drives. Source: P. Sun et
al., Shiro, section III-B: cross entropy, Adam. Deterministic by the window's seed, on the processor
whatever other devices there are (the model is too small for them). JAX is imported when the first
trainer is made; it comes with the extra `train`.

Series of one batch are packed into lanes one after another, the state set to zero where one begins,
so that a batch has few idle steps and a shape that is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from cachewright._native import SpecError
from cachewright.train.model_file import model_file
from cachewright.train.packing import Batch, batches
from cachewright.train.window import Window

if TYPE_CHECKING:
    import jax
    import numpy as np
    from numpy.typing import NDArray

UNITS, CLASSES, GATES = 32, 2, 3
RATE = 1e-3
CLIP = 1.0
MOST_EPOCHS = 20
PATIENCE = 3
HELD_OUT_EVERY = 10
TEST_STEPS = 16
EXTRA = "pip install 'cachewright[train]'"

Weights: TypeAlias = "dict[str, jax.Array]"
Series: TypeAlias = "list[tuple[NDArray[np.float32], NDArray[np.int8]]]"


class JaxTrainer:
    """A trainer that keeps weights and Adam's memory from window to window, by case."""

    def __init__(self) -> None:
        """Prepare a trainer. Errors: `SpecError` when JAX or optax is not installed."""
        try:
            import jax
            import optax
        except ImportError as error:
            name = error.name or "jax"
            raise SpecError(f"`trainer`: `jax` needs {name}, which is not here; {EXTRA}") from None
        self._versions = f"jax {jax.__version__}, optax {optax.__version__}"
        self._learners: dict[int, _Learner] = {}

    def __call__(self, window: Window) -> bytes:
        """Learn from a window and return the model file."""
        import jax
        import numpy as np

        with jax.default_device(jax.devices("cpu")[0]):
            learner = self._learners.get(window.case)
            if learner is None or learner.inputs != len(window.features):
                learner = _Learner.draw(len(window.features), window.seed)
            learner.learn(window)
            self._learners[window.case] = learner
            test_inputs = window.inputs[:TEST_STEPS]
            outputs = np.asarray(_machine().outputs(learner.weights, test_inputs))
        notes = {
            "threshold": str(window.threshold),
            "window": str(window.number),
            "computed_by": self._versions,
        }
        weights = {name: np.asarray(values) for name, values in learner.weights.items()}
        return model_file(weights, window.features, test_inputs, outputs, notes)

    def loss(self, window: Window) -> float:
        """Return the mean cross entropy of a window's labelled steps, in nats, by its case."""
        return self._learners[window.case].loss(list(window.series()))


@dataclass
class _Learner:
    inputs: int
    weights: Weights
    memory: Any

    @staticmethod
    def draw(inputs: int, seed: int) -> _Learner:
        """Draw weights as PyTorch does: uniform within 1/sqrt(units)."""
        import jax.numpy as jnp
        import numpy as np

        rng = np.random.default_rng(seed)
        bound = UNITS**-0.5
        shapes = {
            "weight_ih_l0": (GATES * UNITS, inputs),
            "weight_hh_l0": (GATES * UNITS, UNITS),
            "bias_ih_l0": (GATES * UNITS,),
            "bias_hh_l0": (GATES * UNITS,),
            "fc.weight": (CLASSES, UNITS),
            "fc.bias": (CLASSES,),
        }
        weights = {
            name: jnp.asarray(rng.uniform(-bound, bound, shape), dtype=jnp.float32)
            for name, shape in shapes.items()
        }
        return _Learner(inputs, weights, _machine().start(weights))

    def learn(self, window: Window) -> None:
        import numpy as np

        rng = np.random.default_rng([window.seed, window.number])
        series = list(window.series())
        if window.first:
            self._converge(series, rng)
        else:
            self._epoch(series, rng)

    def _converge(self, series: Series, rng: np.random.Generator) -> None:
        """Run epochs until a held-out tenth's loss has not fallen for three; keep the best.

        Where nothing that is held out has a label, all series judge.
        """
        held_out = series[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
        train = [one for i, one in enumerate(series) if i % HELD_OUT_EVERY != HELD_OUT_EVERY - 1]
        judges = held_out if any((labels >= 0).any() for _, labels in held_out) else series
        best, least, worse = self.weights, float("inf"), 0
        for _ in range(MOST_EPOCHS):
            self._epoch(train, rng)
            loss = self.loss(judges)
            if loss < least:
                best, least, worse = self.weights, loss, 0
            else:
                worse += 1
            if worse == PATIENCE:
                break
        self.weights = best

    def _epoch(self, series: Series, rng: np.random.Generator) -> None:
        order = rng.permutation(len(series))
        update = _machine().update
        for batch in batches([series[index] for index in order]):
            self.weights, self.memory = update(self.weights, self.memory, batch)

    def loss(self, series: Series) -> float:
        """Return the mean cross entropy per labelled step, in nats; 0 of none."""
        total, steps = 0.0, 0
        for batch in batches(series):
            total += float(_machine().loss_sum(self.weights, batch))
            steps += batch.labelled
        return total / max(steps, 1)


@dataclass(frozen=True)
class _Machine:
    """Compiled functions, shared by all trainers of the process."""

    start: Callable[[Weights], Any]
    update: Callable[[Weights, Any, Batch], tuple[Weights, Any]]
    loss_sum: Callable[[Weights, Batch], jax.Array]
    outputs: Callable[[Weights, NDArray[np.float32]], jax.Array]


@cache
def _machine() -> _Machine:
    import jax
    import jax.numpy as jnp
    import optax

    optimiser = optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(RATE))

    def logits(weights: Weights, rows: jax.Array, begins: jax.Array) -> jax.Array:
        """Return the outputs of `rows` [step, lane, input]; a state is zero where one begins."""
        from_input = rows @ weights["weight_ih_l0"].T + weights["bias_ih_l0"]

        def step(state: jax.Array, x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            gates, begin = x
            state = jnp.where(begin[:, None], 0.0, state)
            from_state = state @ weights["weight_hh_l0"].T + weights["bias_hh_l0"]
            r_input, z_input, n_input = jnp.split(gates, GATES, axis=-1)
            r_state, z_state, n_state = jnp.split(from_state, GATES, axis=-1)
            r, z = jax.nn.sigmoid(r_input + r_state), jax.nn.sigmoid(z_input + z_state)
            state = (1 - z) * jnp.tanh(n_input + r * n_state) + z * state
            return state, state

        _, states = jax.lax.scan(step, jnp.zeros((rows.shape[1], UNITS)), (from_input, begins))
        return states @ weights["fc.weight"].T + weights["fc.bias"]

    def loss_sum(
        weights: Weights, rows: jax.Array, begins: jax.Array, labels: jax.Array
    ) -> jax.Array:
        found = jax.nn.log_softmax(logits(weights, rows, begins))
        classes = jnp.maximum(labels, 0).astype(jnp.int32)
        chosen = jnp.take_along_axis(found, classes[..., None], axis=-1)[..., 0]
        return -jnp.sum(jnp.where(labels >= 0, chosen, 0.0))

    @jax.jit
    def update(
        weights: Weights,
        memory: Any,
        rows: jax.Array,
        begins: jax.Array,
        labels: jax.Array,
        share: jax.Array,
    ) -> tuple[Weights, Any]:
        slope = jax.grad(lambda w: share * loss_sum(w, rows, begins, labels))(weights)
        change, memory = optimiser.update(slope, memory, weights)
        return {name: weights[name] + change[name] for name in weights}, memory

    loss = jax.jit(loss_sum)
    going_on = jax.jit(
        lambda w, rows: logits(w, rows[:, None], jnp.zeros((rows.shape[0], 1), dtype=bool))[:, 0]
    )
    return _Machine(
        start=optimiser.init,
        update=lambda w, memory, b: update(
            w, memory, b.rows, b.begins, b.labels, jnp.float32(1 / b.labelled)
        ),
        loss_sum=lambda w, b: loss(w, b.rows, b.begins, b.labels),
        outputs=going_on,
    )
