"""By what cases are ranked: hits, times, writes to flash, slowdowns or goals.

A question about a drive is not answered by hits, nor one about goals by the mean response. What a
case is ranked by is asked for, or follows from what the stack is about and what is varied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cachewright import words
from cachewright._native import SpecError
from cachewright.answers import Case, RunAnswer
from cachewright.tables import timing

# Of a drive, beside its write amplification, which counts pages.
IN_BYTES = "NAND bytes per host byte"
# Keys of a stack that describe drives and machines.
DRIVE_KEYS = ("device.", "flash.", "machine.")


@dataclass(frozen=True)
class Rank:
    """What cases are ranked by: its name on the command line, its title, its value of a case."""

    name: str
    title: str
    of: Callable[[Case], float | None]
    better: Literal["high", "low"]
    text: Callable[[float], str]
    # What a stack must have for its cases to have a value, in words and as a check of the stack.
    needs: str = ""
    is_told_by: Callable[[Mapping[str, Any]], bool] = lambda stack: True

    def key(self, case: Case) -> float:
        """Return a number by which better cases sort first; cases without a value come last."""
        value = self.of(case)
        if value is None:
            return float("inf")
        return -value if self.better == "high" else value

    def shown(self, case: Case) -> str:
        """Return the value with its title: `write amplification 1.0312`."""
        value = self.of(case)
        return f"{self.title} {words.NOTHING if value is None else self.text(value)}"


def amplification(case: Case) -> float | None:
    """Return the write amplification of a case's flash: in it, under the cache or in its drives.

    Of several drives it is all their programs over all that was written to them, in pages.
    """
    if case.flash:
        return case.flash.write_amplification
    written, programmed = _flash_pages(case)
    return programmed / written if written else None


def amplification_in_bytes(case: Case) -> float | None:
    """Return the bytes that a case's drives program to flash per byte that their host writes.

    It is above the write amplification in pages where the host writes parts of pages.
    """
    wear = [drive.wear for _, drive in timing.drives(case)]
    written = sum(one.written_bytes for one in wear)
    return sum(one.programmed_bytes for one in wear) / written if written else None


def flash_writes(case: Case) -> float | None:
    """Return the pages that a case programs to flash; None without any flash."""
    if case.flash:
        return float(case.flash.flash_pages)
    return _flash_pages(case)[1] or None


def _flash_pages(case: Case) -> tuple[float, float]:
    """Return the pages written to a timed case's drives or store, and those programmed."""
    if case.timing is None:
        return 0.0, 0.0
    if store := case.timing.store:
        return float(store.user_pages), store.user_pages * store.write_amplification
    drives = [drive for _, drive in timing.drives(case)]
    written = [float(drive.host_programs) for drive in drives]
    programmed = [
        pages * drive.write_amplification for pages, drive in zip(written, drives, strict=True)
    ]
    return sum(written), sum(programmed)


def slowdown(case: Case) -> float | None:
    """Return the largest slowdown of a tenant beside being alone; None where it is not known."""
    fairness = case.timing.fairness if case.timing else None
    return fairness.max_slowdown if fairness else None


def _goals_met(case: Case) -> float | None:
    return None if case.total.goals_met is None else float(case.total.goals_met)


def _mean(case: Case) -> float | None:
    return case.total.mean_response_ns


def _p99(case: Case) -> float | None:
    return case.total.p99_response_ns


def _pages(value: float) -> str:
    return words.counted(round(value), "page")


def _has_devices(stack: Mapping[str, Any]) -> bool:
    return bool(stack.get("device"))


def _has_flash(stack: Mapping[str, Any]) -> bool:
    return _has_devices(stack) or bool(stack.get("flash"))


def _has_goals(stack: Mapping[str, Any]) -> bool:
    return any(key.startswith("goal") for tenant in stack.get("tenant", []) for key in tenant)


def _replays_alone(stack: Mapping[str, Any]) -> bool:
    return _has_devices(stack) and bool(stack.get("machine", {}).get("alone"))


HITS = Rank("hits", "hit ratio", lambda case: case.total.hit_ratio, "high", words.ratio)
GOALS = Rank(
    "goals", "goals met", _goals_met, "high", words.significant, "tenants with goals", _has_goals
)
MEAN = Rank("mean", "mean response", _mean, "low", words.duration, "devices", _has_devices)
P99 = Rank("p99", "p99 response", _p99, "low", words.duration, "devices", _has_devices)
AMPLIFICATION = Rank(
    "write-amplification",
    "write amplification",
    amplification,
    "low",
    words.ratio,
    "flash",
    _has_flash,
)
FLASH_WRITES = Rank(
    "flash-writes", "flash writes", flash_writes, "low", _pages, "flash", _has_flash
)
SLOWDOWN = Rank(
    "slowdown",
    "worst slowdown",
    slowdown,
    "low",
    words.ratio,
    "devices and `machine.alone = true`",
    _replays_alone,
)
RANKS = {one.name: one for one in (HITS, MEAN, P99, AMPLIFICATION, FLASH_WRITES, SLOWDOWN, GOALS)}


def rank_of(answer: RunAnswer, name: str | None = None) -> Rank:
    """Return what the cases of an answer are ranked by.

    Without a name: goals where there are some; write amplification or the mean response where
    only drives or the machine are varied; else hits. Errors: `SpecError` for a name that is none,
    and for one of which no case has a value.
    """
    if name is None:
        return _usual(answer)
    if name not in RANKS:
        raise SpecError(f"--rank-by: found `{name}`, expected one of {', '.join(RANKS)}")
    rank = RANKS[name]
    if not _is_known(rank, answer.cases):
        raise SpecError(
            f"--rank-by: found `{name}`, expected a stack with {rank.needs}, or another of "
            f"{', '.join(RANKS)}"
        )
    return rank


def check(name: str, stack: Mapping[str, Any]) -> None:
    """Refuse to rank by what a stack cannot tell, before it runs. Errors: `SpecError`."""
    rank = RANKS[name]
    if not rank.is_told_by(stack):
        raise SpecError(f"--rank-by: found `{name}`, expected a stack with {rank.needs}")


def check_settings(name: str, settings: Mapping[str, object]) -> None:
    """Refuse to rank by what a trace with these settings, or values to try, cannot tell.

    Errors: `SpecError`.
    """
    stack: dict[str, Any] = {}
    for key, value in settings.items():
        table, _, rest = key.partition(".")
        stack.setdefault(table, {})[rest] = value
    tenant = {key.rpartition(".")[2]: value for key, value in stack.get("tenant", {}).items()}
    check(name, {**stack, "tenant": [tenant]})


def _usual(answer: RunAnswer) -> Rank:
    if _is_known(GOALS, answer.cases):
        return GOALS
    varied = [key for key in answer.varied if key.startswith(DRIVE_KEYS)]
    if varied and len(varied) == len(answer.varied):
        for rank in (AMPLIFICATION, MEAN):
            if _differs(rank, answer.cases):
                return rank
    return HITS


def _is_known(rank: Rank, cases: Iterable[Case]) -> bool:
    return any(rank.of(case) is not None for case in cases)


def _differs(rank: Rank, cases: Sequence[Case]) -> bool:
    found = {rank.of(case) for case in cases}
    return None not in found and len(found) > 1
