"""What `wa` found: write amplification by scheme, as tables and as polars frames.

Units: pages; `write_amplification` is F/U, `extra_writes` is
(F-U)/U, where F are pages programmed to flash and U pages written by the host. A scheme that reads
the future is a bound, not a choice: it is shown, but never called best. A scheme marked with a
dagger learned from, or knew, a trace that was repeated: its number flatters it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cachewright import documents, tables, words
from cachewright.answers import AmplificationAnswer, AmplificationCase, Classifier, EraseSpread
from cachewright.documents import AnswerFrames, values
from cachewright.tables import Better, Column, Table, conclusion

if TYPE_CHECKING:
    import polars as pl

Case = AmplificationCase
DAGGER = "†"
_NESTED = ("series", "streams", "erases", "classifier", "learning", "training")
MEASURES: tuple[tuple[str, Callable[[Classifier], float | None]], ...] = (
    ("accuracy", lambda found: found.accuracy),
    ("precision", lambda found: found.precision),
    ("recall", lambda found: found.recall),
    ("f1", lambda found: found.f1),
    ("majority", lambda found: found.majority),
    ("called_short", lambda found: found.called_short),
    ("were_short", lambda found: found.were_short),
)
# A terabyte, as drives are sold.
TERABYTE = 10**12
LOW: Better = "low"
# The separation that puts all pages on one stream.
NONE = "none"


@dataclass(frozen=True)
class JudgedPart:
    """Predictions of short lifetimes in one part of a run, which begins after `drive_writes`."""

    drive_writes: float
    threshold_pages: int
    short_right: int
    short_wrong: int
    long_right: int
    long_wrong: int
    accuracy: float | None
    cumulative_accuracy: float | None
    """Of all parts up to this one."""


@dataclass(frozen=True)
class AmplificationFrames(AnswerFrames[AmplificationAnswer]):
    """The document of `wa` (`wa.json`), and its frames."""

    @property
    def name(self) -> str:
        """The stack's name."""
        return self.answer.name

    @property
    def warnings(self) -> list[str]:
        """What to know before believing the numbers."""
        return list(self.answer.warnings)

    @cached_property
    def cases(self) -> pl.DataFrame:
        """One row per case: scheme, counts, both measures, erases as `erases_min` and so on.

        Schemes that predict have their `accuracy`, `precision`, `recall`, `f1` and the share of
        the `majority`; those that keep metadata in flash the share of misses, `meta_miss_share`.
        """
        rows = [
            {
                **{key: item for key, item in values(case).items() if key not in _NESTED},
                **{f"erases_{key}": item for key, item in values(case.erases).items()},
                **{name: of(case.classifier) if case.classifier else None for name, of in MEASURES},
                "meta_miss_share": miss_share(case),
            }
            for case in self.answer.cases
        ]
        return documents.frame(rows)

    @cached_property
    def predictions(self) -> pl.DataFrame:
        """Predictions of short lifetimes over time: one row per case and part of its run.

        Columns: the scheme, `drive_writes` (its beginning), `threshold_pages`, the four counts
        (`short_right` and so on), `accuracy` of the part and `cumulative_accuracy` up to its end.
        """
        rows = [
            {**_scheme(case), **asdict(part)}
            for case in self.answer.cases
            for part in accuracy_over_time(case)
        ]
        return documents.frame(rows)

    @cached_property
    def series(self) -> pl.DataFrame:
        """Parts of a drive write: scheme, `drive_writes` (its end), pages, amplification in it."""
        rows = [
            {
                **_scheme(case),
                "drive_writes": end,
                "user_pages": user,
                "flash_pages": flash,
                "write_amplification": flash / user if user else None,
            }
            for case in self.answer.cases
            for end, user, flash in case.series
        ]
        return documents.frame(rows)

    @cached_property
    def streams(self) -> pl.DataFrame:
        """One row per case and stream: pages from the host and moved pages placed on it."""
        rows = [
            {**_scheme(case), **{k: held for k, held in values(stream).items() if k != "lifetimes"}}
            for case in self.answer.cases
            for stream in case.streams
        ]
        return documents.frame(rows)

    @cached_property
    def lifetimes(self) -> pl.DataFrame:
        """Pages per stream and bin of remaining lifetime.

        `most_pages` is the longest lifetime of the bin (a power of two), null for pages that are
        not overwritten any more.
        """
        rows = [
            {
                **_scheme(case),
                "stream": stream.stream,
                "most_pages": most,
                "user_pages": user,
                "moved_pages": moved,
            }
            for case in self.answer.cases
            for stream in case.streams
            for most, user, moved in stream.lifetimes or ()
        ]
        return documents.frame(rows)

    def best(self) -> Case:
        """Return the case with the lowest write amplification; bounds do not count."""
        return best_case(self.answer.cases)

    def __repr__(self) -> str:
        best = self.best()
        top = f"best {label(best)}: {words.significant(best.write_amplification, 4)}"
        return f"{type(self).__name__}({self.name!r}, {len(self.answer.cases)} cases, {top})"


def best_case(cases: Sequence[Case]) -> Case:
    """Return the case with the fewest flash writes; bounds only when there is nothing else."""
    return min(cases, key=lambda c: (c.bound, c.write_amplification, c.case))


def by_op(answer: AmplificationAnswer) -> list[tuple[float, list[Case]]]:
    """Return the cases of each over-provisioning, the fewest flash writes first."""
    found: dict[float, list[Case]] = {}
    for case in sorted(answer.cases, key=lambda c: (c.write_amplification, c.case)):
        found.setdefault(case.op, []).append(case)
    return sorted(found.items())


def label(case: Case) -> str:
    """Return a case's schemes in a few words, a bound told apart, a flattered one marked."""
    return f"{separation(case)}, {case.reclaim}"


def separation(case: Case) -> str:
    """Return a case's separation, a bound told apart, a flattered one marked."""
    bound = " (bound)" if case.bound else ""
    return f"{case.separation}{bound}{f' {DAGGER}' if case.flattered else ''}"


def predicting(cases: Sequence[Case]) -> list[Case]:
    """Return the cases whose separation predicts lifetimes and was judged."""
    return [case for case in cases if case.classifier and case.classifier.judged]


def ranked(answer: AmplificationAnswer, op: float, cases: Sequence[Case]) -> Table[Case]:
    """Return the schemes under one over-provisioning; `cases` are the best first."""
    return Table(
        f"over-provisioning {words.percent(op)}",
        [
            tables.rank(cases),
            Column("separation", separation),
            Column("reclaim", lambda case: case.reclaim),
            Column("write amplification", lambda case: case.write_amplification, words.ratio, LOW),
            Column("extra writes", lambda case: case.extra_writes, words.ratio, LOW),
            Column(
                "in the last drive write",
                lambda case: case.last_write_amplification,
                words.ratio,
                LOW,
            ),
            Column("relocated pages", lambda case: case.moved_pages, words.count, LOW),
            Column("erases per superblock", lambda case: _spread(case.erases), numeric=True),
            Column("bytes per page", lambda case: case.metadata_bytes_per_page, words.significant),
            Column("memory per TB", lambda case: dram(answer, case), numeric=True),
            Column("metadata misses", miss_share, words.percent),
            Column("streams", lambda case: case.streams_used, words.count),
        ],
        cases,
        choice=lambda case: not case.bound,
    )


def predictions(op: float, cases: Sequence[Case]) -> Table[Case] | None:
    """Return how well lifetimes were predicted; None where no scheme predicts.

    It is table V of Shiro's paper.
    """
    rows = predicting(cases)
    if not rows:
        return None
    columns: list[Column[Classifier]] = [
        Column("judged", lambda found: found.judged, words.count),
        Column("accuracy", lambda found: found.accuracy, words.percent, "high"),
        Column("precision", lambda found: found.precision, words.percent, "high"),
        Column("recall", lambda found: found.recall, words.percent, "high"),
        Column("F1", lambda found: found.f1, words.percent, "high"),
        Column("most frequent class", lambda found: found.majority, words.percent),
        Column("called short", lambda found: found.called_short, words.percent),
        Column("were short", lambda found: found.were_short, words.percent),
        Column("lifetime cutoff, min/median/max", thresholds, numeric=True),
    ]

    def judged(case: Case) -> Classifier | None:
        return case.classifier

    title = f"predictions of short lifetimes, over-provisioning {words.percent(op)}"
    schemes: list[Column[Case]] = [
        Column("separation", separation),
        Column("reclaim", lambda case: case.reclaim),
    ]
    return Table(title, [*schemes, *(column.on(judged) for column in columns)], rows)


def miss_share(case: Case) -> float | None:
    """Return the share of look-ups of metadata that read flash; None where there are none."""
    learning = case.learning
    return learning.meta_miss_share if learning and learning.meta_lookups else None


def dram(answer: AmplificationAnswer, case: Case) -> str:
    """Return the memory that a scheme's state of pages takes per terabyte of the drive."""
    return words.size(case.memory_bytes_per_page * TERABYTE / answer.page_bytes)


def _spread(erases: EraseSpread) -> str:
    return f"{erases.mean:.1f} ±{erases.stddev:.1f}"


def thresholds(classifier: Classifier) -> str:
    """Return the least, middle and most lifetime that was called short, in host page writes."""
    found = classifier.threshold
    return " / ".join(words.count(value) for value in (found.min, found.median, found.max))


def accuracy_over_time(case: Case) -> list[JudgedPart]:
    """Return the parts of a case's run with their counts, accuracy and that of all so far."""
    parts, right, judged = [], 0, 0
    for at, threshold, *counts in case.classifier.parts if case.classifier else ():
        short_right, short_wrong, long_right, long_wrong = counts
        part = sum(counts)
        right, judged = right + short_right + long_right, judged + part
        parts.append(
            JudgedPart(
                drive_writes=at,
                threshold_pages=threshold,
                short_right=short_right,
                short_wrong=short_wrong,
                long_right=long_right,
                long_wrong=long_wrong,
                accuracy=(short_right + long_right) / part if part else None,
                cumulative_accuracy=right / judged if judged else None,
            )
        )
    return parts


def best_at(op: float, cases: Sequence[Case]) -> str:
    """Return which scheme writes least at one over-provisioning, and how far a bound is below."""
    best = best_case(cases)
    value = words.ratio(best.write_amplification)
    line = f"best at {words.percent(op)}: {label(best)}: write amplification {value}"
    bounds = [case for case in cases if case.bound and case is not best]
    if bounds:
        lowest = best_case(bounds)
        value = words.ratio(lowest.write_amplification)
        line += f"; the bound {lowest.separation}, {lowest.reclaim} has {value}"
    return line


def answered(answer: AmplificationAnswer) -> str:
    """Return in a paragraph which scheme to use, what it saves and what more space would save.

    It is of the least over-provisioning; pages that the flash programs are counted in bytes, too.
    """
    (op, cases), *larger = by_op(answer)
    best = best_case(cases)
    programmed = words.size(best.flash_pages * answer.page_bytes)
    written = words.size(best.user_pages * answer.page_bytes)
    parts = [
        f"At {words.percent(op)} over-provisioning use {label(best)}: write amplification "
        f"{words.ratio(best.write_amplification)}, {programmed} programmed for {written} written"
    ]
    plain = next((c for c in cases if c.separation == NONE and c is not best), None)
    if plain:
        saved = words.percent(1 - best.write_amplification / plain.write_amplification)
        parts.append(f"That is {saved} less than without separation")
    bounds = [case for case in cases if case.bound and case is not best]
    if bounds and not best.bound:
        lowest = best_case(bounds)
        value = words.ratio(lowest.write_amplification)
        parts.append(f"The bound {lowest.separation}, {lowest.reclaim} has {value}")
    if larger:
        more, others = larger[-1]
        value = words.ratio(best_case(others).write_amplification)
        parts.append(f"{words.percent(more)} over-provisioning has {value}")
    return conclusion.paragraph(parts)


def drive_sentence(answer: AmplificationAnswer) -> str:
    """Return the drive in one sentence: size, where that comes from, what was written."""
    size = words.size(answer.logical_pages * answer.page_bytes)
    scale = "scaled to what is live at once" if answer.capacity == "live" else None
    origin = (scale or "scaled to what is written") if answer.scaled else "as asked"
    load = f", after a load of {words.count(answer.load_pages)}"
    return (
        f"drive of {size} ({origin}), superblocks of {words.size(answer.superblock_bytes)}, "
        f"{words.count(answer.user_pages)} pages of "
        f"{words.size(answer.page_bytes)} written "
        f"({words.significant(answer.drive_writes)} drive writes"
        f"{_looped(answer)})"
        f"{load if answer.load_pages else ''}"
    )


def _looped(answer: AmplificationAnswer) -> str:
    rounds = words.significant(answer.rounds)
    return f", the trace repeated {rounds} times" if answer.looped else ""


def _scheme(case: Case) -> dict[str, Any]:
    return {
        "case": case.case,
        "separation": case.separation,
        "reclaim": case.reclaim,
        "op": case.op,
        "bound": case.bound,
    }
