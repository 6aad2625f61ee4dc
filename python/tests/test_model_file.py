"""Model files written here and read by the compiled module: layers, trees, their int8 form.

For: `model_file`, `train.trees`, `_native.Model`. Must never know: how models are trained.
"""

from __future__ import annotations

import numpy as np
import pytest
from learned import Floats, outputs, random_weights, sigmoid
from numpy.typing import NDArray

import cachewright
from cachewright import _native
from cachewright.answers import ForestShape, InputScale
from cachewright.train import Normalisation, model_file
from cachewright.train.model_file import described
from cachewright.train.trees import Tree, predict, tensors

UNITS = 5
NORMAL = Normalisation(np.array([1, 2, 3], np.float32), np.array([2, 4, 8], np.float32))


def lstm_weights(inputs: int, units: int, seed: int = 1) -> dict[str, Floats]:
    rng = np.random.default_rng(seed)
    shapes = {
        "weight_ih_l0": (4 * units, inputs),
        "weight_hh_l0": (4 * units, units),
        "bias_ih_l0": (4 * units,),
        "bias_hh_l0": (4 * units,),
        "points.weight": (2, units),
        "points.bias": (2,),
    }
    draw = {name: rng.uniform(-0.4, 0.4, shape) for name, shape in shapes.items()}
    return {name: values.astype(np.float32) for name, values in draw.items()}


def lstm_outputs(weights: dict[str, Floats], rows: Floats) -> Floats:
    """Return what an LSTM with a dense layer gives for each row, from a zero state."""
    state = cell = np.zeros(weights["weight_hh_l0"].shape[1], dtype=np.float32)
    found = []
    for row in rows:
        sums = weights["weight_ih_l0"] @ row + weights["bias_ih_l0"]
        sums = sums + weights["weight_hh_l0"] @ state + weights["bias_hh_l0"]
        i, f, g, o = np.split(sums, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
        found.append(weights["points.weight"] @ state + weights["points.bias"])
    return np.array(found, dtype=np.float32)


def features(rows: int, inputs: int = 3, seed: int = 2) -> Floats:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, inputs)).astype(np.float32) * 4


def lstm_file(weights: dict[str, Floats], rows: Floats) -> bytes:
    right = lstm_outputs(weights, NORMAL.apply(rows))
    names = ["a", "b", "c"]
    return model_file(
        weights, names, rows, right, {"k": "v"}, kind="lstm", heads=["points"], normalisation=NORMAL
    )


def test_an_lstm_says_the_same_here_and_there_and_nearly_so_in_int8() -> None:
    weights, rows = lstm_weights(3, UNITS), features(40)
    content = lstm_file(weights, rows[:16])
    model, about = _native.Model(content), described(content)
    assert (about.kind, about.hidden, about.int8) == ("lstm", (UNITS,), False)
    assert about.heads == (("points", 2),)
    assert about.notes == {"k": "v"}
    assert about.normalisation == InputScale(mean=(1, 2, 3), deviation=(2, 4, 8))
    for name, tensor in model.weights().items():
        np.testing.assert_array_equal(tensor, weights[name])
    sequences = np.stack([rows[:20], rows[20:]])
    expected = [lstm_outputs(weights, NORMAL.apply(one))[-1] for one in sequences]
    np.testing.assert_allclose(model.outputs(sequences), expected, atol=1e-5)
    stored = model.quantised(sequences)
    int8 = _native.Model(stored)
    assert described(stored).int8 is True
    np.testing.assert_allclose(int8.outputs(sequences), expected, atol=0.03)
    assert model.quantised(sequences) == model.quantised(sequences)


def test_an_mlp_and_a_gru_are_read_too() -> None:
    weights = {
        "hidden.0.weight": np.array([[1, -1, 0]], np.float32),
        "hidden.0.bias": np.array([0.5], np.float32),
        "points.weight": np.array([[2]], np.float32),
        "points.bias": np.array([0.25], np.float32),
    }
    row = np.array([[3, 1, 9]], np.float32)
    # 2 max(0, 3 - 1 + 0.5) + 0.25
    right = np.array([[5.25]], np.float32)
    file = model_file(weights, list("abc"), row, right, kind="mlp", heads=["points"])
    assert _native.Model(file).outputs(row[None]).tolist() == [[5.25]]
    gru, rows = random_weights(3), features(4)
    file = model_file(gru, list("abc"), rows, outputs(gru, rows))
    found = _native.Model(file).outputs(rows[None])
    np.testing.assert_allclose(found[0], outputs(gru, rows)[-1], atol=1e-5)


def random_tree(rng: np.random.Generator, splits: int, inputs: int) -> Tree:
    left, right, leaves = [-1], [-1], [0]
    for _ in range(splits):
        at = leaves.pop(int(rng.integers(len(leaves))))
        left[at], right[at] = len(left), len(left) + 1
        leaves += [len(left), len(left) + 1]
        left += [-1, -1]
        right += [-1, -1]
    nodes = len(left)
    return Tree(
        np.array(left),
        np.array(right),
        rng.integers(inputs, size=nodes),
        rng.normal(size=nodes),
        rng.normal(size=(nodes, 2)),
    )


def slow(trees: list[Tree], row: Floats) -> NDArray[np.float64]:
    """Return the mean of the leaves, walking each tree by its own children."""

    def leaf(tree: Tree, at: int) -> NDArray[np.float64]:
        if tree.left[at] < 0:
            return tree.values[at]
        side = tree.left if row[tree.feature[at]] <= tree.threshold[at] else tree.right
        return leaf(tree, int(side[at]))

    return np.asarray(np.mean([leaf(tree, 0) for tree in trees], axis=0))


def test_trees_say_the_same_here_and_there() -> None:
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, splits, 3) for splits in (0, 1, 2, 9, 30)]
    arrays = tensors(trees, np.zeros(2, np.float32))
    rows = features(50)
    found = predict(arrays, rows)
    np.testing.assert_allclose(found, [slow(trees, row) for row in rows], atol=1e-6)
    file = model_file(
        arrays, list("abc"), rows[:9], found[:9], kind="forest", heads=["points"], combine="mean"
    )
    model = _native.Model(file)
    np.testing.assert_array_equal(model.outputs(rows[:, None, :]), found)
    assert described(file).forest == ForestShape(trees=5, nodes=2 * 42 + 5)
    summed = predict(arrays, rows, "sum")
    file = model_file(
        arrays, list("abc"), rows[:9], summed[:9], kind="forest", heads=["points"], combine="sum"
    )
    np.testing.assert_array_equal(_native.Model(file).outputs(rows[:, None, :]), summed)


def test_thresholds_in_single_precision_decide_alike() -> None:
    # 0.1 lies between two singles; the one above it must go right, as it does in double.
    threshold = np.array([0.1, 0, 0])
    near = np.float32(0.1)
    values = np.array([[0.0], [1.0], [2.0]])
    tree = Tree(np.array([1, -1, -1]), np.array([2, -1, -1]), np.zeros(3, int), threshold, values)
    arrays = tensors([tree], np.zeros(1, np.float32))
    for x in (np.nextafter(near, np.float32(-1)), near, np.nextafter(near, np.float32(1))):
        row = np.array([x], np.float32)
        assert predict(arrays, row[None])[0].tolist() == slow([tree], row).tolist()


def test_what_is_no_model_is_refused_by_name() -> None:
    weights, rows = lstm_weights(3, UNITS), features(16)
    with pytest.raises(cachewright.SpecError, match="no safetensors file"):
        _native.Model(b"nonsense")
    file = lstm_file(weights, rows)
    with pytest.raises(cachewright.SpecError, match=r"features of a sequence: found 4, expected"):
        _native.Model(file).outputs(np.zeros((1, 2, 2), np.float32))
    with pytest.raises(cachewright.SpecError, match=r"found shape \[1, 0, 3\], expected steps"):
        _native.Model(file).outputs(np.zeros((1, 0, 3), np.float32))
    with pytest.raises(cachewright.SpecError, match="an array with gaps"):
        _native.Model(file).outputs(np.zeros((2, 9, 3), np.float32)[:, ::2])
    with pytest.raises(cachewright.SpecError, match=r"\[20, 3\] for `weight_ih_l0`, expected \[15"):
        model_file(weights, list("abc"), rows, rows, heads=["points"])
    arrays = tensors([random_tree(np.random.default_rng(1), 4, 3)], np.zeros(2, np.float32))
    arrays["node.feature"][0] = 3
    right = np.zeros((16, 2), np.float32)
    file = model_file(arrays, list("abc"), rows, right, kind="forest", heads=["points"])
    with pytest.raises(cachewright.SpecError, match="tree 0: found input 3 at a split"):
        _native.Model(file)


def test_a_damaged_model_file_is_refused() -> None:
    rows = features(6)
    whole = lstm_file(lstm_weights(3, UNITS), rows)
    assert b"crc32" in whole[:100]
    _native.Model(whole)
    for at in (len(whole) - 1, len(whole) - 400):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        with pytest.raises(cachewright.SpecError, match="damaged model file"):
            _native.Model(bytes(damaged))
