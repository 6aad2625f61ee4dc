"""What trainings say of what they made: the reports beside model files, as records.

Readers of `training.json` and `KIND.json` get them through `cachewright.documents`. Fields stand in
the order in which they are written; one that is not given is not written. Settings are those of the
training, by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Windows of each part of a replay."""

    train: int
    # The end of the part that trains, which says when to stop.
    validation: int
    # What was never seen.
    test: int


@dataclass(frozen=True, kw_only=True)
class Errors:
    """How far answers are from the truth, in shares of the cache."""

    # Mean squared error.
    mse: float
    # Mean absolute error.
    mae: float
    # Hits of the divisions as a part of the most there could be; absent where not counted.
    hits: float | None = None


@dataclass(frozen=True, kw_only=True)
class Naive:
    """Errors of answers that need no model."""

    # The label of the interval before.
    last_label: Errors
    # The mean label of what trains.
    mean_label: Errors
    # Equal shares; absent for models of one tenant.
    equal: Errors | None = None

    def least_mse(self) -> float:
        """Return the mean squared error of the best of them."""
        found = [self.last_label, self.mean_label]
        return min(one.mse for one in (*found, *([self.equal] if self.equal else [])))


@dataclass(frozen=True, kw_only=True)
class ModelReport:
    """A model of a partitioner."""

    # Seed of the random numbers.
    seed: int
    # Name of its file.
    file: str
    # Kind of the model.
    kind: str
    # Whether the weights are 8-bit integers.
    int8: bool
    # Bytes of the file.
    bytes: int
    # Bytes of the weights.
    weight_bytes: int
    # Epochs that were run; null for a forest.
    epochs: int | None
    # The epoch that is kept; null for a forest.
    best_epoch: int | None
    # Errors on the part that says when to stop.
    validation: Errors
    # Errors on what was never seen.
    test: Errors
    # The same of the network in f32; null for a forest.
    test_f32: Errors | None
    # Time of one answer.
    inference_ns: float
    # Names of the files that take over from it; absent without updates.
    updates: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class TenantReport:
    """The models of one tenant, or of all tenants together."""

    # Name of the tenant.
    name: str
    windows: Windows
    naive: Naive
    # A model per seed.
    models: tuple[ModelReport, ...]


@dataclass(frozen=True, kw_only=True)
class PartitionerReport:
    """The report of a training for `icache` or `mlcache`."""

    # Name of the partitioner.
    scheme: str
    # Length of an interval.
    interval_ns: int
    # Length of a step.
    step_ns: int
    settings: dict[str, Any]
    tenants: tuple[TenantReport, ...]


@dataclass(frozen=True, kw_only=True)
class KindWindows:
    """Windows of one kind."""

    train: int
    validation: int


@dataclass(frozen=True, kw_only=True)
class WatchedAccuracy:
    """Share of windows that were right after an epoch, 0 to 1."""

    # Of those that train.
    labelling: float
    # Of those that judge.
    evaluation: float


@dataclass(frozen=True, kw_only=True)
class JudgedVolume:
    """What the windows of one volume were taken for."""

    # Name of the volume.
    name: str
    # Which part of it judges.
    part: str
    # Number of its kind.
    kind: int
    # Windows that judge.
    windows: int
    # Windows by the kind that was answered.
    answers: tuple[int, ...]
    # The same of the network in f32.
    answers_f32: tuple[int, ...]
    # Groups of ten windows by the kind that was answered.
    answers_of_ten: tuple[int, ...]
    # Share of windows that are right, 0 to 1; null of none.
    accuracy: float | None
    # Share of groups of ten that are right, 0 to 1; null of none.
    accuracy_of_ten: float | None


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Answers of all volumes together."""

    # Answers by true kind and answered kind.
    confusion: tuple[tuple[int, ...], ...]
    # Share that is right, by true kind; null of none.
    accuracy_per_kind: tuple[float | None, ...]
    # Mean over kinds; null of none.
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class KindsReport:
    """The report of a training that tells kinds of workloads apart."""

    # Name of the characterizer.
    scheme: str
    # Kind of the network.
    network: str
    kinds: tuple[str, ...]
    settings: dict[str, Any]
    # Windows that train and validate, by kind.
    windows: dict[str, KindWindows]
    # Bytes of the file.
    bytes: int
    # Epochs that were run.
    epochs: int | None
    # The epoch that is kept.
    best_epoch: int | None
    # After each epoch.
    curve: tuple[WatchedAccuracy, ...]
    # Time of one answer.
    inference_ns: float
    judged: tuple[JudgedVolume, ...]
    # Of windows, on the later parts of what trained.
    windows_judged: Confusion
    # The same of the network in f32.
    f32: Confusion
    # Of groups of ten windows.
    of_ten: Confusion
    # Name of the model file; absent where none was written.
    file: str | None = None


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Requests of each part of a trace."""

    # Before the oracle's cache was full; they do not train.
    warm: int
    train: int
    # They say when to stop.
    validation: int
    # They were never seen.
    test: int


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How often labels are those of an oracle, 0 to 1."""

    # Whether a request is cached.
    cached: float
    # How long, of those that the oracle caches.
    duration: float
    # Share of requests that the labels cache.
    says_cached: float


@dataclass(frozen=True, kw_only=True)
class Majority:
    """How often the most frequent label is right, 0 to 1."""

    cached: float
    duration: float


@dataclass(frozen=True, kw_only=True)
class HitRatios:
    """Hit ratios of labels, 0 to 1; null where the blocks are not known."""

    # On what trained.
    in_sample: float | None
    # On what was never seen.
    later: float | None


@dataclass(frozen=True, kw_only=True)
class Fed:
    """Agreement by what the model is told of the request before."""

    # The oracle's label.
    forced: Agreement
    # Its own label, as in use.
    own: Agreement


@dataclass(frozen=True, kw_only=True)
class FedHits:
    """Hit ratios by what the model is told of the request before."""

    # The oracle's label.
    forced: HitRatios
    # Its own label, as in use.
    own: HitRatios


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """What was found after an epoch."""

    # Updates so far.
    updates: int
    # Loss of the part that says when to stop.
    loss: float
    # Hit ratio there of the model's own labels; absent where the blocks are not known.
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A model on another workload."""

    majority: Majority
    # Told its own labels.
    own: Agreement


@dataclass(frozen=True, kw_only=True)
class CachingModel:
    """A caching model."""

    # Seed of the random numbers.
    seed: int
    # Name of its file.
    file: str
    # Bytes of the file.
    bytes: int
    # Bytes of the weights.
    weight_bytes: int
    # Epochs that were run.
    epochs: int
    # The epoch that is kept.
    best_epoch: int
    # Updates of the weights.
    updates: int
    # Processor time of the training.
    cpu_seconds: float
    # On what was never seen, told the oracle's labels.
    forced: Agreement
    # The same, told its own labels.
    own: Agreement
    # On what trained.
    in_sample: Fed
    hits: FedHits
    # After each epoch.
    curve: tuple[Epoch, ...]
    # As `own`, of the network in f32.
    own_f32: Agreement
    # On other workloads, by name.
    others: dict[str, Elsewhere]
    # Time of one answer.
    step_ns: float


@dataclass(frozen=True, kw_only=True)
class Control:
    """What another learner makes of the same requests and labels."""

    # As in `Agreement`, on what was never seen.
    cached: float
    duration: float
    says_cached: float
    # Hit ratio of its labels there; null where the blocks are not known.
    hits: float | None


@dataclass(frozen=True, kw_only=True)
class CachingReport:
    """The report of a training for `rc-rnn`."""

    scheme: str
    # Kind of the workload.
    kind: str
    settings: dict[str, Any]
    # Blocks of the oracle's cache.
    capacity_blocks: int
    requests: Requests
    # Time of the first request that was never seen.
    test_begins_ns: int
    # Share of those requests that the oracle caches, 0 to 1.
    oracle_caches: float
    # The most frequent label on what was never seen.
    majority: Majority
    # The same on what trained.
    majority_in_sample: Majority
    # Hit ratio of the oracle's labels on what trained, 0 to 1; null where blocks are not known.
    perfect: float | None
    # The same on what was never seen.
    perfect_later: float | None
    # A model per seed.
    models: tuple[CachingModel, ...]
    # Another learner; absent unless asked for.
    control: Control | None = None
