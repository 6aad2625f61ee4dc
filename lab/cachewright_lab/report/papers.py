"""The page of each paper: claims and tables, made from claims and from results that are kept.

A paper is a folder of `lab/papers`: specs, `claims.toml`, the page (`README.md`) and the results
that are kept (`measured.json`, `measured-elsewhere.json` of runs on given volumes). The blocks of a
page stand between `<!-- begin ... -->` and `<!-- end -->`: `claims`, or `table FIGURE`
(`FIGURE/NAME` for another than the main table, `table elsewhere FIGURE` for results on given
volumes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cachewright import measures, words
from cachewright._native import SpecError
from cachewright.measures import GIVEN, Measured, Shown
from cachewright.report.parts import Table, markdown
from cachewright_lab.reproduce import claims, measured, specs
from cachewright_lab.reproduce.claims import Claim
from cachewright_lab.reproduce.measured import ALL

FOLDER, PAGE, KEPT = "papers", "README.md", "measured"
ELSEWHERE = "elsewhere"
NOT_MEASURED = "not measured"
HEADERS = (
    "what the paper claims",
    "how it is read",
    "measured under its conditions",
    "on later parts",
    "on new volumes",
    "why",
)
BLOCK = re.compile(r"<!-- begin (?P<what>[^\n]+?) -->\n(?P<body>.*?)<!-- end -->\n", re.DOTALL)


@dataclass(frozen=True)
class Paper:
    """What is known of a paper: its specs, its claims, the results that are kept."""

    name: str
    root: Path
    claims: tuple[Claim, ...]
    own: Measured
    elsewhere: Measured

    @staticmethod
    def of(root: Path, name: str) -> Paper:
        """Return what a laboratory has of a paper. Errors: `SpecError`."""
        found = tuple(claims.read(root / FOLDER / name))
        own, elsewhere = (_kept(root, name, given=given) for given in (False, True))
        return Paper(name, root, found, own, elsewhere)

    @property
    def page(self) -> Path:
        """Where the page is."""
        return self.specs / PAGE

    @property
    def specs(self) -> Path:
        """Where the specs are."""
        return self.root / FOLDER / self.name

    def text(self) -> str:
        """Return the page as it is. Errors: `SpecError` where it cannot be read."""
        try:
            return self.page.read_text(encoding="utf-8")
        except OSError as error:
            reason = words.reason(error)
            raise SpecError(f"{self.page}: {reason}; expected the page of the paper") from None

    def figures(self) -> list[str]:
        """Return the figures of the specs, and that of all together."""
        return [*(path.stem for path in specs.figure_files(self.specs)), ALL]


def names(root: Path) -> list[str]:
    """Return the papers of a laboratory."""
    return sorted(path.parent.name for path in (root / FOLDER).glob(f"*/{specs.SETUP}"))


def kept_at(root: Path, name: str, *, given: bool) -> Path:
    """Return where results of a paper are kept, those on given volumes apart."""
    return root / FOLDER / name / f"{KEPT}{f'-{ELSEWHERE}' if given else ''}.json"


def _kept(root: Path, name: str, *, given: bool) -> Measured:
    path = kept_at(root, name, given=given)
    return measures.read(path) if path.is_file() else Measured(name)


def problems(paper: Paper) -> list[str]:
    """Return what is wrong with claims and results: measures and figures that are nowhere."""
    figures = paper.figures()
    found = [
        f"{kept_at(paper.root, paper.name, given=results is paper.elsewhere)}: "
        f"found figure `{figure}`, expected one of {', '.join(figures)}"
        for results in (paper.own, paper.elsewhere)
        for figure in results.figures
        if figure not in figures
    ]
    for claim in paper.claims:
        where = f"{paper.specs / claims.CLAIMS}: claim `{claim.name}`"
        for key, name in _named(claim):
            figure = measures.figure_of(name)
            places = [paper.elsewhere, paper.own] if key == ELSEWHERE else [paper.own]
            ran = [results for results in places if figure in results.figures]
            if figure not in figures:
                expected = ", ".join(figures)
                found.append(f"{where}: `{key}`: found figure `{figure}`, expected {expected}")
            elif ran and not any(name in results.measures for results in ran):
                said = measured.with_nearest(name, ran[0].measures)
                found.append(f"{where}: `{key}`: found {said}, expected a measure of the results")
    return found


def _named(claim: Claim) -> Iterator[tuple[str, str]]:
    named = (("measure", claim.measure), ("later", claim.later), (ELSEWHERE, claim.elsewhere))
    for key, name in named:
        if name is not None:
            yield key, name


def written(paper: Paper) -> str:
    """Return the page with its blocks made anew. Errors: `SpecError` for a block of no kind."""
    text = paper.text()

    def made(found: re.Match[str]) -> str:
        what = found["what"]
        return f"<!-- begin {what} -->\n{_block(paper, what)}\n<!-- end -->\n"

    if "<!-- begin claims -->\n" not in text:
        raise SpecError(f"{paper.page}: found no block `<!-- begin claims -->`, expected one")
    if text.count("<!-- begin ") != len(BLOCK.findall(text)):
        raise SpecError(
            f"{paper.page}: found a block without end, expected `<!-- end -->` after it"
        )
    return BLOCK.sub(made, text)


def _block(paper: Paper, what: str) -> str:
    kind, _, rest = what.partition(" ")
    if what == "claims":
        return _claims(paper)
    if kind == "table" and rest:
        given = rest.startswith(f"{ELSEWHERE} ")
        name = rest.removeprefix(f"{ELSEWHERE} ")
        return _table(paper, paper.elsewhere if given else paper.own, name)
    expected = "`claims` or `table FIGURE`"
    raise SpecError(f"{paper.page}: found block `{what}`, expected {expected}")


def _claims(paper: Paper) -> str:
    rows = [_row(paper, claim) for claim in paper.claims]
    lines = [markdown(HEADERS, rows, len(HEADERS)), "", *_sources(paper)]
    return "\n".join(lines)


def _row(paper: Paper, claim: Claim) -> list[str]:
    said = f"{claim.claim}: {claim.paper} ({claim.source})"
    if claim.measure is None:
        return [said, claim.reading, "untested", "", "", f"{claim.untested}"]
    bound = f"met: {claim.bound()}"
    read = f"{claim.reading}; {bound}" if claim.reading else bound
    value = paper.own.measures.get(claim.measure)
    later = _value(paper.own, claim.later)
    why = claim.why if value is not None and not claim.holds(value) else ""
    cells = [_found(claim, one) for one in (value, later, _on_new_volumes(paper, claim))]
    return [said, read, cells[0] or NOT_MEASURED, *cells[1:], why]


def _on_new_volumes(paper: Paper, claim: Claim) -> float | None:
    """Return the measure on given volumes, or one of the paper's own run that is of others."""
    if claim.elsewhere is None:
        return _value(paper.elsewhere, claim.measure)
    found = _value(paper.elsewhere, claim.elsewhere)
    return _value(paper.own, claim.elsewhere) if found is None else found


def _value(results: Measured, name: str | None) -> float | None:
    return None if name is None else results.measures.get(name)


def _found(claim: Claim, value: float | None) -> str:
    if value is None:
        return ""
    return f"{claim.shown(value)}, **{'met' if claim.holds(value) else 'missed'}**"


def _sources(paper: Paper) -> list[str]:
    """Return where the numbers come from, and which specs changed since."""
    lines = [_source("Measured", paper.own), _source("On new volumes", paper.elsewhere)]
    wanted = [name for name in paper.figures() if name != ALL]
    missing = [name for name in wanted if name not in paper.own.figures]
    if paper.own.figures and missing:
        lines.append(f"Not measured: {', '.join(missing)}.")
    for results in (paper.own, paper.elsewhere):
        stale = measured.stale(results, paper.specs)
        if stale:
            lines.append(f"The specs changed since these were measured: {', '.join(stale)}.")
    return [line for line in lines if line] or ["Nothing is measured yet."]


def _source(head: str, results: Measured) -> str:
    """Return the figures that were measured on the same traces together."""
    groups: dict[str, list[str]] = {}
    for name, where in results.figures.items():
        folder = "" if where.traces.folder is None else f" of {where.traces.folder}"
        own = f"{', '.join(where.traces.names)}{folder} (Cachewright {where.cachewright})"
        groups.setdefault(own, []).append(name)
    parts = [f"{', '.join(figures)} on {own}" for own, figures in groups.items()]
    return f"{head}: {'; '.join(parts)}." if parts else ""


def _table(paper: Paper, results: Measured, name: str) -> str:
    """Return a figure's table from the results; nothing is made up where there is none."""
    figure, _, own = name.partition("/")
    if figure not in paper.figures():
        expected = ", ".join(paper.figures())
        raise SpecError(f"{paper.page}: table `{name}`: found no such figure, expected {expected}")
    if figure not in results.figures:
        return f"({figure}: {NOT_MEASURED})"
    tables = results.tables.get(figure, ())
    for one in tables:
        if one.name == own:
            return _drawn(one)
    expected = ", ".join(f"`{figure}/{one.name}`".replace("/`", "`") for one in tables)
    raise SpecError(f"{paper.page}: table `{name}`: found none, expected one of {expected}")


def _drawn(one: Shown) -> str:
    rows, best = [list(row) for row in one.rows], [set(places) for places in one.best]
    table = Table("", one.title, list(one.headers), rows, best, one.texts)
    return f"{one.title[:1].upper()}{one.title[1:]}:\n\n{table.markdown()}"


def run_of(root: Path, folder: Path) -> Measured:
    """Return the results of a run. Errors: `SpecError` for a run of a paper without specs."""
    path = folder / measures.FILE
    new = measures.read(path)
    if new.paper not in names(root):
        expected = ", ".join(names(root))
        raise SpecError(f"{path}: found paper `{new.paper}`, expected one of {expected}")
    return new


def _given(run: Measured) -> bool:
    """Return whether a run is of given volumes."""
    return any(one.traces.kind == GIVEN for one in run.figures.values())


def accept(root: Path, folder: Path) -> tuple[Path, Measured]:
    """Keep the results of a run as those of its paper, figure by figure, and return them.

    Errors: `SpecError` for a run in small, or of a paper without specs.
    """
    new = run_of(root, folder)
    if not new.whole:
        path = folder / measures.FILE
        raise SpecError(f"{path}: found results in small, expected reference traces or volumes")
    given = _given(new)
    kept = _kept(root, new.paper, given=given)
    figures = Paper.of(root, new.paper).figures()
    for gone in [name for name in kept.figures if name not in figures]:
        del kept.figures[gone]
    found = kept.taking(new)
    return found.write(kept_at(root, new.paper, given=given)), found


def compared(root: Path, folder: Path) -> tuple[list[measured.Change], list[str]]:
    """Return what a run changes beside the kept results, and its figures that are new to them.

    Errors: `SpecError` for a run of a paper without specs.
    """
    new = run_of(root, folder)
    kept = _kept(root, new.paper, given=_given(new))
    added = [name for name in new.figures if name not in kept.figures]
    return measured.changes(kept, new), added
