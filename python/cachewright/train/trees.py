"""Regression trees as the flat arrays of a model file.

For: forests of any library: per tree its children, splits and leaves in; tensors out. Must never
know: who grew the trees. Layout: docs/model-file.md, "Forest": nodes breadth first, children not
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAF = -1


@dataclass(frozen=True)
class Tree:
    """A tree as arrays by node, the root first; a leaf has the left child -1."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]

    feature: NDArray[np.int64]
    """The input that a split looks at."""

    threshold: NDArray[np.float64]
    """Left where input <= threshold."""

    values: NDArray[np.float64]
    """[node, output]; read at leaves."""

    def breadth_first(self) -> list[int]:
        """Return the nodes level by level, from left to right."""
        order = [0]
        for node in order:
            if self.left[node] != LEAF:
                order += [int(self.left[node]), int(self.right[node])]
        return order


def tensors(
    trees: Sequence[Tree], base: NDArray[np.float32]
) -> dict[str, NDArray[np.float32] | NDArray[np.int32]]:
    """Return the trees as a model file holds them."""
    import numpy as np

    sizes, features, thresholds, values = [], [], [], []
    for tree in trees:
        order = np.array(tree.breadth_first())
        leaf = tree.left[order] == LEAF
        sizes.append(len(order))
        features.append(np.where(leaf, LEAF, tree.feature[order]))
        thresholds.append(np.where(leaf, 0.0, _floor(tree.threshold[order])))
        values.append(tree.values[order[leaf]])
    return {
        "tree.nodes": np.array(sizes, dtype=np.int32),
        "node.feature": np.concatenate(features).astype(np.int32),
        "node.threshold": np.concatenate(thresholds).astype(np.float32),
        "leaf.values": np.concatenate(values).astype(np.float32),
        "base": base,
    }


def _floor(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest single not above each number: comparing singles with either is alike."""
    import numpy as np

    near = numbers.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > numbers, below, near)


def predict(
    arrays: dict[str, NDArray[np.float32] | NDArray[np.int32]],
    inputs: NDArray[np.float32],
    combine: str = "mean",
) -> NDArray[np.float32]:
    """Return what the trees give for each row of normalised inputs, bit by bit as a load does.

    Walks node by node: for test vectors, not for speed.
    """
    import numpy as np

    features, thresholds = arrays["node.feature"], arrays["node.threshold"]
    sums = np.zeros((len(inputs), len(arrays["base"])), dtype=np.float32)
    first, leaves = 0, 0
    for size in arrays["tree.nodes"].tolist():
        own = features[first : first + size]
        is_leaf = own == LEAF
        # The k-th split has the children 1 + 2k and 2 + 2k; a leaf's place counts leaves before it.
        child = 1 + 2 * (np.cumsum(~is_leaf) - 1)
        place = leaves + np.cumsum(is_leaf) - 1
        for row, x in enumerate(inputs):
            at = 0
            while not is_leaf[at]:
                at = int(child[at]) + int(x[own[at]] > thresholds[first + at])
            sums[row] += arrays["leaf.values"][place[at]]
        first += size
        leaves += int(is_leaf.sum())
    trees = len(arrays["tree.nodes"])
    scale = np.float32(1) / np.float32(trees) if combine == "mean" else np.float32(1)
    return np.asarray(arrays["base"] + scale * sums, dtype=np.float32)
