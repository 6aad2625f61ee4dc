"""How a caching model of RC-RNN is trained.

For: `RcRnnTraining`, its settings and what they may be. Must never know: requests, networks beyond
their shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from cachewright._native import SpecError
from cachewright.train import checks, labelling
from cachewright.train.labelling import Shape

LABELS = ("remaining", "residence")
FEEDBACKS = ("labels", "scheduled", "none")
KEEPS = {"epochs": labelling.LAST, "loss": labelling.LEAST_LOSS, "hits": labelling.BEST_SCORE}


@dataclass(frozen=True)
class RcRnnTraining:
    """How a caching model is trained."""

    features: str = "reuse"
    """`reuse`, or `paper` (normalised address)."""

    oracle: str = "benefit-oracle"
    labels: str = "remaining"
    """What a duration counts: `remaining` (from each access on) or `residence` (the whole stay)."""

    requeue_hits: bool = True
    """Whether hits enter the queue of their own label, in the replays that count hits."""

    share: float = 0.6
    """Part of the requests that trains; the rest judges."""

    units: int = 256
    layers: int = 3
    window: int = 100
    batch: int = 32
    epochs: int = 40
    patience: int = 10
    stop: str = "epochs"
    """What says when to stop: the number of `epochs`, the `loss`, or simulated `hits`.

    Labels of the part that says so end where it ends: the oracle keeps less there than it would.
    """

    updates: int = 60
    """Maximum number of updates per epoch, on a part of the trace that is drawn for each epoch."""

    rate: float = 1e-3
    balance: float = 0.0
    """Power of one over its frequency by which a label counts."""

    own: float = 0.0
    """Share of requests told the model's own label of the one before; 0 is teacher forcing."""

    feedback: str = "none"
    """`labels` (of the request before, as `own` says), `scheduled` (own ones, ever more of them,
    all from epoch 10 on), or `none` (the model does not see them, live neither)."""

    seeds: int = 1
    seed: int = 1
    """The first seed."""

    def check(self) -> None:
        """Check what no other part checks. Errors: `SpecError`."""
        checks.part("share", self.share)
        for name, share in (("balance", self.balance), ("own", self.own)):
            if not 0.0 <= share <= 1.0:
                raise SpecError(f"`{name}`: found {share}, expected 0 to 1")
        checks.counts(
            units=self.units,
            window=self.window,
            batch=self.batch,
            epochs=self.epochs,
            patience=self.patience,
            updates=self.updates,
            seeds=self.seeds,
        )
        for name, found, known in (
            ("labels", self.labels, LABELS),
            ("stop", self.stop, tuple(KEEPS)),
            ("feedback", self.feedback, FEEDBACKS),
        ):
            if found not in known:
                raise SpecError(f"`{name}`: found `{found}`, expected {', '.join(known)}")
        if not 1 <= self.layers <= 3:
            raise SpecError(f"`layers`: found {self.layers}, expected 1 to 3")

    def shape(self) -> Shape:
        """Return the network."""
        return Shape(self.units, self.layers, self.window, self.batch)
