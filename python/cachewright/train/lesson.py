"""What one model is taught, and how networks and forests become model files from it.

For: `Lesson`, `learn_network`, `learn_forest`. Must never know: where inputs and targets come from.
A network is stored in int8, calibrated on what trained it; the f32 file beside it is there to go on
from. A forest comes from scikit-learn (extra `train`) and looks at features as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cachewright import _native
from cachewright._native import SpecError
from cachewright.train import networks, trees
from cachewright.train.model_file import FOREST, Normalisation, described, model_file
from cachewright.train.networks import EXTRA, LSTM, Examples, Fitting, Network

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

TEST_STEPS = 16
# Of a forest; scikit-learn's defaults but for leaves, which windows that overlap would make of one.
TREES, LEAST_LEAF = 100, 8


@dataclass(frozen=True)
class Lesson:
    """Sequences of features as they were measured [example, step, feature], and their targets."""

    names: Sequence[str]
    """A name per feature."""

    train: Examples
    validation: Examples
    normalisation: Normalisation
    used: NDArray[np.bool_]
    """Per feature whether the model may see it."""

    head: str
    notes: Mapping[str, str] = field(default_factory=dict)
    watched: Sequence[Examples] = ()
    """Parts whose accuracy is written down while the network learns; it decides nothing."""

    def normal(self, examples: Examples, kind: str) -> Examples:
        """Return what a network of this kind learns from."""
        rows = self.normalisation.apply(examples.inputs) * self.used
        return Examples(rows if kind == LSTM else rows[:, -1], examples.targets)


@dataclass(frozen=True)
class Learned:
    """A model."""

    file: bytes
    """As it is stored for use."""

    float_file: bytes | None
    """A network in f32, to go on from."""

    epochs: int | None
    best_epoch: int | None
    curve: tuple[tuple[float, ...], ...] = ()
    """Accuracy on each part of `Lesson.watched` after each epoch."""


def learn_network(
    lesson: Lesson,
    network: Network,
    fitting: Fitting,
    begin: bytes | None = None,
    note: tuple[str, Progress] | None = None,
) -> Learned:
    """Train a network, store it in f32 and int8.

    `begin` is an f32 file to go on from; its normalisation stays. Errors: `SpecError` for a file of
    another shape, or when JAX or optax is missing; `RunError` when cancelled.
    """
    import numpy as np

    versions = networks.need()
    weights = None
    if begin is not None:
        weights, normalisation = _begin(begin, lesson, network)
        lesson = replace(lesson, normalisation=normalisation)
    train = lesson.normal(lesson.train, network.kind)
    judges = lesson.normal(lesson.validation, network.kind)
    watched = [lesson.normal(one, network.kind) for one in lesson.watched]
    fitted = networks.fit(network, train, judges, fitting, weights, note, watched)
    first = "weight_ih_l0" if network.kind == LSTM else "hidden.0.weight"
    found = {**fitted.weights, first: fitted.weights[first] * lesson.used}
    # A recurrent model says one sequence step by step, others say several examples.
    raw = lesson.train.inputs
    rows = raw[0, :TEST_STEPS] if network.kind == LSTM else raw[:TEST_STEPS, -1]
    inputs = lesson.normalisation.apply(rows)
    float_file = model_file(
        {name: tensor.astype(np.float32) for name, tensor in found.items()},
        lesson.names,
        rows,
        networks.says(network, found, inputs),
        {**lesson.notes, "trained_by": versions},
        kind=network.kind,
        heads=[lesson.head],
        normalisation=lesson.normalisation,
    )
    stored = _native.Model(float_file).quantised(np.ascontiguousarray(raw))
    curve = tuple(fitted.curve)
    return Learned(stored, float_file, fitted.epochs, fitted.best_epoch, curve)


def _begin(
    content: bytes, lesson: Lesson, network: Network
) -> tuple[dict[str, NDArray[np.float32]], Normalisation]:
    """Return weights and normalisation of a file that fits."""
    import numpy as np

    model = _native.Model(content)
    about = described(content)
    for what, found, expected in (
        ("kind", about.kind, network.kind),
        ("hidden", about.hidden, network.hidden),
        ("features", list(about.features), list(lesson.names)),
        ("int8", about.int8, False),
    ):
        if found != expected:
            raise SpecError(f"model to go on from: found {what} {found}, expected {expected}")
    for key in ("granules", "window_steps", "tenants", "switched_off"):
        one, other = about.notes.get(key), lesson.notes.get(key)
        if one != other:
            raise SpecError(f"model to go on from: found note `{key}` {one}, expected {other}")
    normal = about.normalisation
    normalisation = Normalisation(
        np.array(normal.mean, np.float32), np.array(normal.deviation, np.float32)
    )
    return model.weights(), normalisation


def learn_forest(lesson: Lesson, seed: int) -> Learned:
    """Grow a random forest; the validation part is not looked at.

    Errors: `SpecError` when scikit-learn is missing.
    """
    import numpy as np

    try:
        import sklearn
        from sklearn.ensemble import RandomForestRegressor
    except ImportError:
        message = f"training a forest needs scikit-learn, which is not here; {EXTRA}"
        raise SpecError(message) from None
    rows = lesson.train.inputs[:, -1] * lesson.used
    grown = RandomForestRegressor(
        n_estimators=TREES, min_samples_leaf=LEAST_LEAF, random_state=seed
    ).fit(rows, lesson.train.targets)
    outputs = lesson.train.targets.shape[1]
    found = []
    for one in grown.estimators_:
        tree = one.tree_
        values = tree.value.reshape(tree.node_count, outputs)
        found.append(
            trees.Tree(
                tree.children_left, tree.children_right, tree.feature, tree.threshold, values
            )
        )
    arrays = trees.tensors(found, np.zeros(outputs, dtype=np.float32))
    file = model_file(
        arrays,
        lesson.names,
        rows[:TEST_STEPS],
        trees.predict(arrays, rows[:TEST_STEPS]),
        {**lesson.notes, "trained_by": f"scikit-learn {sklearn.__version__}"},
        kind=FOREST,
        heads=[lesson.head],
    )
    return Learned(file, None, None, None)
