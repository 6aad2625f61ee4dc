"""Records of `training`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class TrainAnswer(Record):
    """What a model was trained on and how well it predicts."""

    # Version of Cachewright that wrote the document.
    cachewright: str
    # Version of the keys of all documents; a reader of another version refuses the document.
    schema_version: int
    # Which trainer made the model: `native` or its name.
    trainer: str
    # Distinct pages that the trace writes.
    logical_pages: int
    # Pages that the trace writes.
    trace_pages: int
    # Pages written in the part that trains.
    trained_pages: int
    # Windows of training in that part.
    windows: int
    # Pages written in a window.
    window_pages: int
    # Series trained on.
    series: int
    # Steps with a label.
    labelled_steps: int
    # Lifetimes up to this count as short, in pages.
    threshold: int
    # Predictions on the part that does not train; null without predictions.
    held_out: Prediction | None = None
    # Name of the stack.
    name: str
    # The separation with its settings.
    separation: str
    # Bytes of a page.
    page_bytes: int
    # Predictions on other traces.
    judged: tuple[JudgedTrace, ...]


class Prediction(Record):
    """How well short lifetimes were predicted."""

    # Predictions that can be judged.
    predictions: int
    # Share of right predictions, 0 to 1.
    accuracy: float
    # Share of those predicted short that were short, 0 to 1.
    precision: float
    # Share of the short that were predicted short, 0 to 1.
    recall: float
    # Harmonic mean of precision and recall, 0 to 1.
    f1: float
    # Share of the more frequent true class, 0 to 1.
    majority: float


class JudgedTrace(Record):
    """Predictions on another trace."""

    # Name of the stack.
    name: str
    # Pages that the trace writes.
    trace_pages: int
    # The predictions; null without predictions.
    measures: Prediction | None = None


class ModelDescription(Record):
    """What a model file holds."""

    # Kind of the model.
    kind: str
    # Numbers per step that go in.
    inputs: int
    # Units of each layer, first layer first; empty for logistic regression and forests.
    hidden: tuple[int, ...]
    # Heads: name, number of outputs.
    heads: tuple[tuple[str, int], ...]
    # Shape of a forest; null for other kinds.
    forest: ForestShape | None = None
    # A name per input.
    features: tuple[str, ...]
    # How a feature becomes an input.
    normalisation: InputScale
    # Notes of the training, by name.
    notes: dict[str, str]
    # Whether the weights are 8-bit integers.
    int8: bool
    # Bytes of the weights.
    weight_bytes: int


class ForestShape(Record):
    """Shape of a forest."""

    # Trees.
    trees: int
    # Nodes of all trees.
    nodes: int


class InputScale(Record):
    """How a feature becomes an input: feature minus mean, over deviation."""

    # Mean of each feature, in its unit.
    mean: tuple[float, ...]
    # Deviation of each feature, in its unit.
    deviation: tuple[float, ...]
