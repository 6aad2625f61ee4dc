"""What a paper claims, and whether what was measured bears it out: `lab/papers/PAPER/claims.toml`.

For: reading claims and judging them by measures (`measured`). Must never know: any paper, how a
claim is shown, how anything is measured. A claim names one measure and what it has to be at least,
at most, or both. It is met or missed only by numbers of the paper's own figures on the reference
traces or on given volumes. Small synthetic traces judge nothing: a claim that they bear out holds
"in small", one that they do not "differs in small".
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from cachewright import words
from cachewright._native import SpecError
from cachewright.tables.measures import figure_of, is_number
from cachewright_lab.reproduce import specs

CLAIMS = "claims.toml"
# What became of them, beside the measures of a run.
FILE = "claims.json"
Status = Literal["met", "missed", "holds in small", "differs in small", "untested", "not run"]
TEXTS = ("name", "claim", "source", "paper")
OPTIONAL_TEXTS = (
    "reading",
    "measure",
    "later",
    "elsewhere",
    "unit",
    "why",
    "untested",
    "unmeasured",
)
BOUNDS = ("at_least", "at_most")
# What decides a claim, or why nothing does.
# A size or a share in the name of a measure, which differs in small.
SIZE = re.compile(r"\d+(%|[KMG]iB)")
DECIDED_BY = ("measure", "untested", "unmeasured")
KEYS = (*TEXTS, *OPTIONAL_TEXTS, *BOUNDS)


def _beside(value: float) -> str:
    if value == 1:
        return "the same"
    side = "above" if value >= 1 else "below"
    return f"{words.significant(100 * abs(value - 1))} % {side}"


# How a measure is shown: from its value to text. `beside` is of a quotient, `change` of a share.
UNITS: dict[str, Callable[[float], str]] = {
    "plain": words.significant,
    "times": lambda value: f"{words.significant(value)} time{'' if value == 1 else 's'}",
    "percent": lambda value: f"{words.significant(100 * value)} %",
    "change": lambda value: f"{'+' if value > 0 else ''}{words.significant(100 * value)} %",
    "beside": _beside,
    "duration": words.duration,
    "size": words.size,
    "count": words.count,
    "us": lambda value: f"{words.significant(value)} us",
    "points": lambda value: f"{words.significant(100 * value)} points",
}


@dataclass(frozen=True)
class Claim:
    """One claim of a paper: its words, where they stand, and what decides whether it is met.

    `paper` is the paper's value as shown, `reading` how we understand the claim, `why` what to say
    where it is missed. `later` and `elsewhere` are measures of later parts and of new volumes.
    """

    name: str
    claim: str
    source: str
    paper: str
    reading: str = ""
    measure: str | None = None
    later: str | None = None
    elsewhere: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "plain"
    why: str = ""
    # Why no measure can tell, and why none was taken although one could.
    untested: str | None = None
    unmeasured: str | None = None

    def shown(self, value: float | None) -> str:
        """Return a value of the claim's measures as text."""
        return words.NOTHING if value is None else UNITS[self.unit](value)

    def bound(self) -> str:
        """Return what counts as met, as text."""
        low, high = "at least", "at most"
        parts = []
        for word, other, value in ((low, high, self.at_least), (high, low, self.at_most)):
            if value is not None:
                # At least 0.85 of something is at most 15 % below it.
                turned = self.unit == "beside" and value < 1
                parts.append(f"{other if turned else word} {self.shown(value)}")
        return " and ".join(parts)

    def holds(self, value: float) -> bool:
        """Return whether a value meets the claim."""
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class Judged:
    """A claim with what became of it."""

    claim: Claim
    status: Status
    value: float | None

    @property
    def shown(self) -> str:
        """Return the value as text."""
        return self.claim.shown(self.value)

    @property
    def verdict(self) -> str:
        """Return the status with its reason."""
        claim = self.claim
        match self.status:
            case "untested":
                return f"untested because {claim.untested}"
            case "not run" if claim.unmeasured:
                return f"not run because {claim.unmeasured}"
            case "missed":
                return f"missed because {claim.why}" if claim.why else "missed"
        return self.status


def of_figures(found: Sequence[Judged], figures: Collection[str]) -> list[Judged]:
    """Return what became of the claims that some figures decide."""
    return [one for one in found if figure_of(one.claim.measure or "") in figures]


def judged(claims: Sequence[Claim], measures: Mapping[str, float], *, whole: bool) -> list[Judged]:
    """Return what became of each claim; runs that are not `whole` decide none."""
    return [_judged(claim, measures, whole=whole) for claim in claims]


def _judged(claim: Claim, measures: Mapping[str, float], *, whole: bool) -> Judged:
    if claim.measure is None:
        return Judged(claim, "untested" if claim.untested else "not run", None)
    value = measures.get(claim.measure)
    if value is None and not whole:
        value = _in_small(claim.measure, measures)
    if value is None:
        return Judged(claim, "not run", None)
    if not whole:
        return Judged(claim, "holds in small" if claim.holds(value) else "differs in small", value)
    return Judged(claim, "met" if claim.holds(value) else "missed", value)


def _in_small(name: str, measures: Mapping[str, float]) -> float | None:
    """Return the measure that a run in small has in place of one with a size in its name.

    Nothing where several sizes stand for it.
    """
    found = [value for key, value in measures.items() if SIZE.sub("", key) == SIZE.sub("", name)]
    return found[0] if len(found) == 1 else None


def write(found: Sequence[Judged], path: Path) -> Path:
    """Write what became of claims and return the path."""
    document = [
        {**asdict(one.claim), "status": one.status, "value": one.value, "shown": one.shown}
        for one in found
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"claims": document}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def read(folder: Path) -> list[Claim]:
    """Return the claims of the paper in a folder of specs; none where it has no file of them.

    Errors: `SpecError`, naming the file, the claim, the key, what was found and what was expected.
    """
    path = folder / CLAIMS
    if not path.is_file():
        return []
    document = specs.toml(path)
    for key in document:
        if key != "claim":
            raise SpecError(f"{path}: found `{key}`, expected `[[claim]]` tables alone")
    tables = document.get("claim", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise SpecError(f"{path}: `claim`: found no list of tables, expected `[[claim]]`")
    found = [_claim(path, number, table) for number, table in enumerate(tables, 1)]
    for number, claim in enumerate(found):
        if claim.name in [other.name for other in found[:number]]:
            where = _where(path, number + 1, claim.name)
            raise SpecError(f"{where}: found a second claim of that name, expected one")
    return found


def _where(path: Path, number: int, name: object) -> str:
    return f"{path}: claim {number}" + (f" (`{name}`)" if isinstance(name, str) else "")


def _claim(path: Path, number: int, table: Mapping[str, Any]) -> Claim:
    where = _where(path, number, table.get("name"))
    for key, value in table.items():
        _check(where, key, value)
    for key in TEXTS:
        if key not in table:
            raise SpecError(f"{where}: found no `{key}`, expected one")
    _consistent(where, table)
    fields = dict(table) | {key: float(table[key]) for key in BOUNDS if key in table}
    return Claim(**fields)


def _check(where: str, key: str, value: object) -> None:
    """Check one key and the kind of its value."""
    if key not in KEYS:
        near = difflib.get_close_matches(key, KEYS, 1) or KEYS
        raise SpecError(f"{where}: found `{key}`, expected a key such as `{near[0]}`")
    if key in BOUNDS:
        if not is_number(value):
            raise SpecError(f"{where}: `{key}`: found `{value}`, expected a number")
    elif not isinstance(value, str) or not value.strip():
        raise SpecError(f"{where}: `{key}`: found `{value}`, expected text")
    if key == "unit" and value not in UNITS:
        raise SpecError(f"{where}: `unit`: found `{value}`, expected one of {', '.join(UNITS)}")


def _consistent(where: str, table: Mapping[str, Any]) -> None:
    """Check what keys say together: a measure with a bound, or why there is none."""
    bounds = [key for key in BOUNDS if key in table]
    given = [key for key in DECIDED_BY if key in table]
    if len(given) != 1:
        found = " and ".join(f"`{key}`" for key in given) or "none of them"
        named = ", ".join(f"`{key}`" for key in DECIDED_BY)
        raise SpecError(f"{where}: found {found}, expected one of {named}")
    if "measure" in table and not bounds:
        raise SpecError(f"{where}: found no bound, expected `at_least` or `at_most`")
    if "measure" not in table:
        for key in (*bounds, "later", "elsewhere", "why"):
            if key in table:
                raise SpecError(f"{where}: found `{key}` beside `{given[0]}`, expected none")
    if len(bounds) == 2 and table["at_least"] > table["at_most"]:
        low, high = table["at_least"], table["at_most"]
        raise SpecError(f"{where}: `at_least`: found {low}, expected at most {high} (`at_most`)")
    for key in ("later", "elsewhere"):
        if key in table and table[key] == table["measure"]:
            raise SpecError(
                f"{where}: `{key}`: found the claim's own measure, expected another one "
                "(the same measure on new volumes is taken from their results by itself)"
            )
