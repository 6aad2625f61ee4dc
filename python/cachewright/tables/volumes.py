"""What a command found on the volumes of a dataset: a row per volume, and what they say together.

Each row tells what to use on its volume. Units: bytes, ratios.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

from cachewright import words
from cachewright.answers import (
    AmplificationAnswer,
    Case,
    CharacterizeAnswer,
    CurvesAnswer,
    MissRatioCurve,
    RunAnswer,
)
from cachewright.documents import load
from cachewright.tables import Better, Column, Table, amplification, conclusion, ranking, summary

# A volume's name and the document of its answer.
Answered = tuple[str, Mapping[str, Any]]
# Rows that a terminal shows.
SHOWN = 40


@dataclass(frozen=True)
class Spread:
    """A measure over the volumes, by scheme: what a page draws."""

    measure: str
    scheme: str
    values: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Summed:
    """The answers of a command, volume by volume: a table, and a sentence of all of them.

    `work` says of a row how much its volume did.
    """

    table: Table[Any]
    sentence: str
    work: Callable[[Any], int]
    spread: Spread | None = None

    def busiest(self, most: int) -> Table[Any]:
        """Return the table of the volumes that did most, in the order of all."""
        whole = self.table
        rows = list(whole.rows)
        if len(rows) <= most:
            return Table(whole.title, whole.columns, rows, by_row=whole.by_row)
        order = sorted(range(len(rows)), key=lambda at: (-self.work(rows[at]), at))
        kept = [rows[at] for at in sorted(order[:most])]
        title = f"{whole.title}; the busiest {words.count(most)} of {words.count(len(rows))} rows"
        return Table(title, whole.columns, kept, by_row=whole.by_row)


def of(command: str, answers: Iterable[Answered], rank_by: str | None = None) -> Summed | None:
    """Return the table of a command's answers; nothing for a command without one.

    Errors: `SpecError` for what the cases of a volume cannot be ranked by.
    """
    makers: dict[str, Callable[[list[Answered]], Summed]] = {
        "compare": lambda found: _compared(found, rank_by),
        "mrc": _curves,
        "wa": _amplified,
        "characterize": _characters,
    }
    if command not in makers:
        return None
    found = list(answers)
    return makers[command](found) if found else None


@dataclass(frozen=True)
class _Advice:
    """What to use on a volume, among the cases of one size."""

    name: str
    answer: RunAnswer
    best: Case
    rank: ranking.Rank

    @cached_property
    def same(self) -> dict[str, Case]:
        """The cases of the size advised, by policy."""
        size = summary.capacity_bytes(self.best)
        cases = [case for case in self.answer.cases if summary.capacity_bytes(case) == size]
        return {summary.policy_label(case): case for case in cases}

    @cached_property
    def is_any(self) -> bool:
        """Whether another policy is as good at this size."""
        policy = summary.value(self.best, summary.POLICY)
        return any(
            self.rank.of(case) == self.rank.of(self.best)
            for case in self.same.values()
            if not summary.is_bound(case) and summary.value(case, summary.POLICY) != policy
        )

    @cached_property
    def has_none(self) -> bool:
        """Whether no cache is worth its space."""
        return summary.is_worthless(self.best, self.rank)

    def use(self) -> str:
        if self.has_none:
            return "no cache"
        others = ", or others" if self.is_any else ""
        return f"{summary.label(self.best, _but_capacity(self.answer))}{others}"

    def size_bytes(self) -> int | None:
        return None if self.has_none else summary.capacity_bytes(self.best)


def _compared(answers: Sequence[Answered], rank_by: str | None) -> Summed:
    """Return per volume what to use at which size, and what each policy gives there."""
    rows = []
    for name, document in answers:
        answer = load(RunAnswer, document)
        rank = ranking.rank_of(answer, rank_by)
        rows.append(_Advice(name, answer, summary.advised(answer, rank), rank))
    rank = rows[0].rank
    policies = list(dict.fromkeys(label for row in rows for label in row.same))
    columns: list[Column[Any]] = [
        Column("volume", lambda row: row.name),
        Column("use", lambda row: row.use()),
        Column("at", lambda row: row.size_bytes(), words.size),
        Column(rank.title, lambda row: rank.of(row.best), rank.text),
        Column("requests", lambda row: row.answer.workload.requests, words.count),
        Column("working set", lambda row: row.answer.workload.working_set_bytes, words.size),
    ]
    if len(policies) > 1:
        columns += [
            Column(label, _value_under(label), rank.text, _better(label, rank.better))
            for label in policies
        ]
    title = f"{words.counted(len(rows), 'volume')}: what to use, and {rank.title} at that size"
    sentence = _use_of_all(rows)
    values = {label: _known(map(_value_under(label), rows)) for label in policies}
    return Summed(
        Table(title, columns, rows, shown=SHOWN, by_row=True),
        sentence,
        lambda row: row.answer.workload.requests,
        Spread(rank.title, "policy", values),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _use_of_all(rows: Sequence[_Advice]) -> str:
    """Return on how many volumes each policy alone is best, and what the sizes are together."""
    cached = [row for row in rows if not row.has_none]
    alone = [row for row in cached if not row.is_any]
    used = Counter(summary.value(row.best, summary.POLICY) for row in alone)
    said = [f"{policy} on {words.count(count)}" for policy, count in used.most_common()]
    if equal := len(cached) - len(alone):
        said.append(f"several alike on {words.count(equal)}")
    if none := len(rows) - len(cached):
        least = words.percent(conclusion.HARDLY)
        said.append(f"no cache on {words.count(none)}, where less than {least} of accesses hit")
    parts = [f"best policy: {', '.join(said)}"]
    if cached:
        total = words.size(sum(summary.capacity_bytes(row.best) for row in cached))
        parts.append(f"the sizes advised are {total} together")
    if largest := sum(summary.is_largest_tried(row.answer, row.best) for row in cached):
        parts.append(f"on {words.count(largest)} it is the largest size tried; try larger ones")
    return "; ".join(parts)


def _but_capacity(answer: RunAnswer) -> list[str]:
    keys = [key for key in answer.varied if key != summary.CAPACITY]
    return keys or [summary.POLICY]


def _better(label: str, better: Better) -> Better | None:
    """Return which value is best; a bound is no choice."""
    return None if "(bound)" in label else better


def _value_under(label: str) -> Callable[[Any], float | None]:
    return lambda row: row.rank.of(row.same[label]) if label in row.same else None


@dataclass(frozen=True)
class _CurveOf:
    """The curve of one policy on a volume."""

    name: str
    curve: MissRatioCurve
    block_bytes: int

    @property
    def least(self) -> float:
        return min(point[1] for point in self.curve.points)

    def size_of(self, share: float) -> int | None:
        """Return the smallest size with a share of the curve's hits; None where nothing hits.

        It is linear between two points, in whole blocks.
        """
        most = 1 - self.least
        if most <= 0:
            return None
        wanted, below = share * most, None
        for size, miss, *_ in self.curve.points:
            hits = 1 - miss
            if hits >= wanted:
                blocks = size if below is None else _between(below, (size, hits), wanted)
                return blocks * self.block_bytes
            below = (size, hits)
        return None


def _between(below: tuple[int, float], above: tuple[int, float], wanted: float) -> int:
    """Return the size between two points of a curve at which it has the hits wanted."""
    (low, least), (high, most) = below, above
    return low + ceil((high - low) * (wanted - least) / (most - least))


def _curves(answers: Sequence[Answered]) -> Summed:
    """Return per volume and policy the sizes that give half and nine tenths of its hits."""
    rows = []
    for name, document in answers:
        answer = load(CurvesAnswer, document)
        whole = [curve for curve in answer.curves if curve.window in (None, 0) and curve.points]
        rows += [
            _CurveOf(name, curve, answer.block_bytes)
            for curve in whole
            if curve.tenant == whole[0].tenant
        ]
    columns: list[Column[_CurveOf]] = [
        Column("volume", lambda row: row.name),
        Column("policy", lambda row: row.curve.policy),
        Column("accesses", lambda row: row.curve.accesses, words.count),
        Column("working set", lambda row: row.curve.distinct * row.block_bytes, words.size),
        Column("half of the hits at", lambda row: row.size_of(0.5), words.size),
        Column("nine tenths at", lambda row: row.size_of(conclusion.NEARLY), words.size),
        Column("least miss ratio", lambda row: row.least, words.ratio),
    ]
    policies = list(dict.fromkeys(row.curve.policy for row in rows))
    said = ", ".join(_nearly_all([row for row in rows if row.curve.policy == p]) for p in policies)
    sentence = f"nine tenths of all volumes' hits take {said} together"
    title = f"{words.counted(len(answers), 'volume')}: cache sizes by share of the hits"
    values = {p: [row.least for row in rows if row.curve.policy == p] for p in policies}
    return Summed(
        Table(title, columns, rows, shown=SHOWN),
        sentence,
        lambda row: row.curve.accesses,
        Spread("least miss ratio", "policy", values),
    )


def _nearly_all(rows: Sequence[_CurveOf]) -> str:
    """Return the size that a policy takes for nearly all hits of every volume."""
    total = sum(size for row in rows if (size := row.size_of(conclusion.NEARLY)))
    return f"{words.size(total)} under {rows[0].curve.policy}"


def _amplified(answers: Sequence[Answered]) -> Summed:
    """Return per volume the write amplification of each scheme."""
    rows = []
    for name, document in answers:
        answer = load(AmplificationAnswer, document)
        best = amplification.best_case(answer.cases)
        rows.append((name, answer, best, {amplification.label(c): c for c in answer.cases}))
    schemes = list(dict.fromkeys(label for *_, cases in rows for label in cases))
    columns: list[Column[Any]] = [
        Column("volume", lambda row: row[0]),
        Column("written", lambda row: row[1].trace_pages * row[1].page_bytes, words.size),
        Column("use", lambda row: amplification.label(row[2])),
        *(
            Column(label, _amplification_under(label), words.ratio, _better(label, "low"))
            for label in schemes
        ),
    ]
    used = Counter(amplification.label(row[2]) for row in rows)
    said = ", ".join(f"{label} on {count}" for label, count in used.most_common())
    title = f"{words.counted(len(rows), 'volume')}: write amplification by scheme"
    values = {label: _known(map(_amplification_under(label), rows)) for label in schemes}
    return Summed(
        Table(title, columns, rows, shown=SHOWN, by_row=True),
        f"fewest writes: {said}",
        lambda row: row[1].trace_pages,
        Spread("write amplification", "scheme", values),
    )


def _amplification_under(label: str) -> Callable[[Any], float | None]:
    return lambda row: row[3][label].write_amplification if label in row[3] else None


def _characters(answers: Sequence[Answered]) -> Summed:
    """Return per volume what its requests are like."""
    rows = [(name, load(CharacterizeAnswer, document)) for name, document in answers]
    columns: list[Column[Any]] = [
        Column("volume", lambda row: row[0]),
        Column("requests", lambda row: row[1].total.reads + row[1].total.writes, words.count),
        Column("reads", lambda row: row[1].total.read_share, words.percent),
        Column("requests per s", lambda row: row[1].total.rate_per_s, words.significant),
        Column("mean size", lambda row: round(row[1].total.mean_bytes), words.size),
        Column("working set", lambda row: row[1].total.working_set_bytes, words.size),
        Column("sequential", lambda row: row[1].total.classes.sequential, words.percent),
        Column("random", lambda row: row[1].total.classes.random, words.percent),
        Column("kind", lambda row: kind(row[1])),
    ]
    if not any(kind(row[1]) for row in rows):
        columns.pop()
    requests = sum(row[1].total.reads + row[1].total.writes for row in rows)
    reads = sum(row[1].total.reads for row in rows) / requests if requests else 0.0
    sentence = f"{words.counted(requests, 'request')}, {words.percent(reads)} of them reads"
    title = f"{words.counted(len(rows), 'volume')}: what their requests are like"
    return Summed(
        Table(title, columns, rows, shown=SHOWN),
        sentence,
        lambda row: row[1].total.reads + row[1].total.writes,
    )


def kind(answer: CharacterizeAnswer) -> str | None:
    """Return the kind that most periods were judged to be; None without a model."""
    kinds = Counter(one.kind for period in answer.periods for one in period.judged)
    return min(kinds, key=lambda name: (-kinds[name], name)) if kinds else None
