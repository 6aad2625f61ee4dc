"""The model of mlcache: from a stack's replay to one file that says each tenant's share.

For: `train_mlcache`, and the best division of an interval found offline. Must never know: how a
replay is timed, how networks learn. Source: MLCache (Liu et al., ICCAD 2020; TPDS 2023) as
replicated in ANN-for-MLCache: 10 bins of write reuse per tenant, all normalised together, through
two ReLU layers of 256 units, Adam at 1e-4 for 200 epochs, inputs scaled min-max, softmax. Ours:
labels are the divisions with the most hits (the replication does not say which were taken), of all
accesses or of writes alone, the most even one among equals; what is made small is the cross entropy
of the shares; the epoch that says the validation part best is kept.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import _native
from cachewright._native import SpecError
from cachewright.stack import Settings, SpecLike
from cachewright.train import checks, cutting
from cachewright.train.cutting import Cutting
from cachewright.train.demand import Segments
from cachewright.train.judged import errors, report
from cachewright.train.lesson import Learned, Lesson, learn_network
from cachewright.train.model_file import Normalisation
from cachewright.train.networks import MLP, SHARES, Examples, Fitting, Network
from cachewright.train.reports import (
    Errors,
    ModelReport,
    Naive,
    PartitionerReport,
    TenantReport,
    Windows,
)
from cachewright.train.store import SUFFIX, PartitionerTrainings, add
from cachewright.types import PathLike

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

HITS = ("all", "writes")
# Pages of the window of write reuse, and the bins that cover it; one more is beyond.
WINDOW, BINS = 32_768, 9
NETWORK = Network(MLP, (256, 256), "shares", SHARES)


@dataclass(frozen=True)
class MLCacheTraining:
    """How a model of mlcache is trained."""

    granules: int = 10
    """Parts into which the cache is divided for the labels."""

    share: float = 0.6
    """Part of the replay that trains; the rest judges."""

    seed: int = 1
    epochs: int = 200
    batch: int = 8
    rate: float = 1e-4
    hits: str = "all"
    """Which hits a label counts: of `all` accesses, or of `writes` alone."""

    def check(self) -> None:
        """Check settings. Errors: `SpecError`."""
        checks.part("share", self.share)
        checks.counts(granules=self.granules, epochs=self.epochs, batch=self.batch)
        if self.hits not in HITS:
            expected = ", ".join(f"`{one}`" for one in HITS)
            raise SpecError(f"`hits`: found `{self.hits}`, expected one of {expected}")


def best_division(hits: NDArray[np.int64]) -> list[int]:
    """Return the granules of each tenant that give the most hits together.

    `hits` is [tenant, granules 0 to all]. Among equals the most even division (the least sum of
    squares). By dynamic programming over tenants.
    """
    import numpy as np

    tenants, sizes = hits.shape
    # Evenness decides among equal hits only: all squares together are less than one hit.
    worth = hits.astype(np.int64) * (tenants * sizes**2 + 1) - np.arange(sizes) ** 2
    best, choices = worth[0], []
    for own in worth[1:]:
        # sums[all, mine]: `mine` to this tenant, the others of `all` to those before.
        sums = np.full((sizes, sizes), np.iinfo(np.int64).min)
        for mine in range(sizes):
            sums[mine:, mine] = best[: sizes - mine] + own[mine]
        choices.append(sums.argmax(axis=1))
        best = sums.max(axis=1)
    left, division = sizes - 1, []
    for choice in reversed(choices):
        division.append(int(choice[left]))
        left -= division[-1]
    return [left, *reversed(division)]


def write_hits(reuse: NDArray[np.uint32], granules: int, capacity: int) -> NDArray[np.int64]:
    """Return the writes that a cache of writes alone would hold [tenant, granules, interval].

    `reuse` is [tenant, interval, bin]: a write whose distance is no more than the size hits. Within
    a bin distances are taken as even; what lies beyond the window misses.
    """
    import numpy as np

    within = np.cumsum(reuse[:, :, :BINS].astype(np.float64), axis=2)
    within = np.concatenate([np.zeros_like(within[:, :, :1]), within], axis=2)
    places = np.minimum(np.arange(granules + 1) / granules * capacity / WINDOW, 1.0) * BINS
    low = np.minimum(places.astype(np.int64), BINS - 1)
    part = places - low
    found = within[:, :, low] + (within[:, :, low + 1] - within[:, :, low]) * part
    return np.moveaxis(np.rint(found).astype(np.int64), 2, 1)


def joint(reuse: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return inputs [interval, tenant x bin] of counts [tenant, interval, bin]: shares of all."""
    import numpy as np

    counts = np.moveaxis(reuse.astype(np.float64), 0, 1)
    flat = counts.reshape(len(counts), -1)
    return np.asarray(flat / np.maximum(flat.sum(axis=1, keepdims=True), 1), dtype=np.float32)


def train_mlcache(
    spec: SpecLike | Segments,
    out: PathLike | None = None,
    how: MLCacheTraining | None = None,
    *,
    settings: Settings | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> PartitionerTrainings:
    """Train one model for all tenants on the earlier part of a timed open-loop stack.

    The rest judges. With `out` the model is written to that file (`NAME.safetensors`), in f32 and
    its report (`NAME.training.json`) beside. Errors: `SpecError`, `TraceError`, `RunError`.
    """
    how = how or MLCacheTraining()
    how.check()
    checks.model_file(out)
    found = cutting.replayed(spec, settings, how.granules, 1, threads, progress)
    course = _Course.of(found, how)
    note = ("training", progress) if progress else None
    fitting = Fitting(how.epochs, how.epochs, how.batch, how.rate, how.seed)
    learned = learn_network(course.lesson, NETWORK, fitting, note=note)
    place = Path(out).name if out is not None else f"mlcache{SUFFIX}"
    files: dict[str, bytes] = {}
    add(files, place, learned)
    about = PartitionerReport(
        scheme="mlcache",
        interval_ns=found.interval_ns,
        step_ns=found.step_ns,
        settings=asdict(how),
        tenants=(course.report(course.judge(learned, how.seed, place)),),
    )
    trainings = PartitionerTrainings(files, about)
    if out is not None:
        beside = Path(out).name.removesuffix(SUFFIX) + ".training.json"
        trainings.write(Path(out).parent, beside)
    return trainings


@dataclass(frozen=True)
class _Course:
    """All tenants' intervals: what they teach and what judges."""

    names: list[str]
    lesson: Lesson
    test: Examples
    hits: NDArray[np.int64]
    """[interval, tenant, granules] of the intervals that judge."""

    last: NDArray[np.float32]
    """The best divisions of the intervals before those."""

    @staticmethod
    def of(found: Segments, how: MLCacheTraining) -> _Course:
        import numpy as np

        hits = np.stack([tenant.hits for tenant in found.tenants]).astype(np.int64)
        hits = np.moveaxis(hits, 2, 0)
        reuse = np.stack([tenant.reuse for tenant in found.tenants])
        # An interval that the replay ends in has a histogram, but may have no step.
        reuse = reuse[:, : len(hits)]
        if how.hits == "writes":
            hits = np.moveaxis(write_hits(reuse, how.granules, found.capacity_blocks), 2, 0)
        divisions = np.array([best_division(one) for one in hits])
        inputs = joint(reuse)
        best = np.asarray(divisions / how.granules, dtype=np.float32)
        split = Cutting(1, 1, 1, how.share).split(len(hits))

        def examples(starts: NDArray[np.int64]) -> Examples:
            return Examples(inputs[starts - 1][:, None], best[starts])

        train = examples(split.train)
        rows = train.inputs[:, 0]
        least, span = rows.min(axis=0), np.ptp(rows, axis=0)
        names = [tenant.name for tenant in found.tenants]
        lesson = Lesson(
            [f"reuse.{tenant}.{one}" for tenant in range(len(names)) for one in range(10)],
            train,
            examples(split.validation),
            Normalisation(least, np.where(span > 0, span, 1).astype(np.float32)),
            np.ones(rows.shape[1], dtype=np.bool_),
            NETWORK.head,
            {
                "tenants": ",".join(names),
                "granules": str(how.granules),
                "interval_ns": str(found.interval_ns),
            },
        )
        return _Course(names, lesson, examples(split.test), hits[split.test], best[split.test - 1])

    def judge(self, learned: Learned, seed: int, file: str) -> ModelReport:
        """Return errors and hits on what was never seen, size and time of the model."""

        def judged(content: bytes, examples: Examples) -> Errors:
            shares = _softmax(_native.Model(content).outputs(examples.inputs))
            return (
                self._worth(shares) if examples is self.test else errors(shares, examples.targets)
            )

        return report(learned, self.lesson.validation, self.test, judged, seed=seed, file=file)

    def report(self, model: ModelReport) -> TenantReport:
        """Return windows, what divisions without a model would have been worth, and the model."""
        import numpy as np

        count = len(self.test.targets)
        mean = np.tile(self.lesson.train.targets.mean(axis=0), (count, 1))
        return TenantReport(
            name=" + ".join(self.names),
            windows=Windows(
                train=len(self.lesson.train.targets),
                validation=len(self.lesson.validation.targets),
                test=count,
            ),
            naive=Naive(
                last_label=self._worth(self.last),
                mean_label=self._worth(mean),
                equal=self._worth(np.full_like(self.last, 1 / len(self.names))),
            ),
            models=(model,),
        )

    def _worth(self, shares: NDArray[np.float32]) -> Errors:
        """Return the errors and hits of divisions of the intervals that judge."""
        found = errors(shares, self.test.targets)
        return Errors(mse=found.mse, mae=found.mae, hits=self._hits(shares))

    def _hits(self, shares: NDArray[np.float32]) -> float:
        """Return the hits of these divisions, a granule cut in proportion, as a part of the best.

        1 where nothing could hit.
        """
        import numpy as np

        sizes = np.arange(self.hits.shape[2])
        won, best = 0.0, 0.0
        for hits, own in zip(self.hits, shares * (len(sizes) - 1), strict=True):
            won += sum(np.interp(size, sizes, one) for size, one in zip(own, hits, strict=True))
            division = best_division(hits)
            best += sum(one[size] for size, one in zip(division, hits, strict=True))
        return float(won / best) if best > 0 else 1.0


def _softmax(outputs: NDArray[np.float32]) -> NDArray[np.float32]:
    import numpy as np

    raised = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)
