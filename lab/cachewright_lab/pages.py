"""The page of each paper: claims and tables, made from claims and from results that are kept.

A paper is a folder of `lab/papers`: specs, `claims.toml`, the page (`README.md`) and what is kept
of its results (`digest.json`). The blocks of a page stand between `<!-- begin ... -->` and
`<!-- end -->`. `claims` is made from claims and the kept numbers. `table FIGURE` (`FIGURE/NAME` for
another than the main table, `table elsewhere FIGURE` for results on given volumes) is a table of
the run that was kept last; the digest tells whether it is still that table. `picture claims` shows
the paper's values beside ours, `picture FIGURE` a table of the page as groups of bars, and
`picture FIGURE: COLUMN; COLUMN` a panel of bars for each of its columns.

`python -m cachewright_lab.pages` for `make generate`, `make check-generated`, `make figures` and
keeping new results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cachewright import Error, words
from cachewright._native import SpecError
from cachewright.tables import measures
from cachewright.tables.measures import GIVEN, Measured, Shown
from cachewright_lab import digest, pictures, took
from cachewright_lab.digest import Digest, Kept
from cachewright_lab.report.tables import Table, markdown
from cachewright_lab.reproduce import claims, measured, specs
from cachewright_lab.reproduce.claims import Claim
from cachewright_lab.reproduce.measured import ALL, Change

# The laboratory: the folder of this package, its papers and its pages.
ROOT = Path(__file__).resolve().parents[1]
FOLDER, PAGE = "papers", "README.md"
ELSEWHERE = "elsewhere"
PICTURE = "picture "
NOT_MEASURED = "not measured"
HEADERS = (
    "what the paper claims",
    "how it is read",
    "measured under its conditions",
    "on later parts",
    "on new volumes",
    "why",
)
# Units of claims that one axis of a picture shows, as percent.
PERCENT = {"percent", "change", "points", "beside"}
BLOCK = re.compile(r"<!-- begin (?P<what>[^\n]+?) -->\n(?P<body>.*?)<!-- end -->\n", re.DOTALL)


@dataclass(frozen=True)
class Paper:
    """What is known of a paper: its specs, its claims, what is kept of its results."""

    name: str
    root: Path
    claims: tuple[Claim, ...]
    kept: Digest

    @staticmethod
    def of(root: Path, name: str) -> Paper:
        """Return what a laboratory has of a paper. Errors: `SpecError`."""
        folder = root / FOLDER / name
        return Paper(
            name, root, tuple(claims.read(folder)), digest.read(folder / digest.FILE, name)
        )

    @property
    def specs(self) -> Path:
        """Where the specs are, the page and what is kept."""
        return self.root / FOLDER / self.name

    @property
    def page(self) -> Path:
        """Where the page is."""
        return self.specs / PAGE

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


def problems(paper: Paper) -> list[str]:
    """Return what is wrong with claims and results: measures and figures that are nowhere."""
    figures, path = paper.figures(), paper.specs / digest.FILE
    found = [
        f"{path}: found figure `{figure}`, expected one of {', '.join(figures)}"
        for kept in (paper.kept.own, paper.kept.elsewhere)
        for figure in kept.figures
        if figure not in figures
    ]
    for claim in paper.claims:
        where = f"{paper.specs / claims.CLAIMS}: claim `{claim.name}`"
        for key, name in _named(claim):
            figure = measures.figure_of(name)
            own, elsewhere = paper.kept.own, paper.kept.elsewhere
            places = [elsewhere, own] if key == ELSEWHERE else [own]
            ran = [kept for kept in places if figure in kept.figures]
            if figure not in figures:
                expected = ", ".join(figures)
                found.append(f"{where}: `{key}`: found figure `{figure}`, expected {expected}")
            elif ran and not any(name in kept.measures for kept in ran):
                found.append(
                    f"{where}: `{key}`: found `{name}`, which no run that was kept has, expected "
                    "a measure of the kept results"
                )
    return found


def _named(claim: Claim) -> Iterator[tuple[str, str]]:
    named = (("measure", claim.measure), ("later", claim.later), (ELSEWHERE, claim.elsewhere))
    for key, name in named:
        if name is not None:
            yield key, name


def written(paper: Paper) -> str:
    """Return the page with its claims made anew. Errors: `SpecError` for a block of no kind."""
    return _with_blocks(paper, lambda what, body: _block(paper, what, body))


def _with_blocks(paper: Paper, made: Callable[[str, str], str]) -> str:
    """Return the page with each block as `made` gives it, of what it is and what it holds."""
    text = paper.text()
    if "<!-- begin claims -->\n" not in text:
        raise SpecError(f"{paper.page}: found no block `<!-- begin claims -->`, expected one")
    if text.count("<!-- begin ") != len(BLOCK.findall(text)):
        raise SpecError(
            f"{paper.page}: found a block without end, expected `<!-- end -->` after it"
        )

    def block(found: re.Match[str]) -> str:
        body = made(found["what"], found["body"].rstrip("\n"))
        return f"<!-- begin {found['what']} -->\n{body}\n<!-- end -->\n"

    return BLOCK.sub(block, text)


def _is_table(what: str) -> bool:
    return what != "claims" and not what.startswith(PICTURE)


def _table_of(paper: Paper, what: str) -> tuple[str, bool]:
    """Return the table of a block, and whether it is of given volumes. Errors: `SpecError`."""
    kind, _, rest = what.partition(" ")
    if kind != "table" or not rest:
        expected = "`claims`, `table FIGURE` or `picture FIGURE`"
        raise SpecError(f"{paper.page}: found block `{what}`, expected {expected}")
    given = rest.startswith(f"{ELSEWHERE} ")
    name = rest.removeprefix(f"{ELSEWHERE} ")
    if measures.figure_of(name) not in paper.figures():
        expected = ", ".join(paper.figures())
        raise SpecError(f"{paper.page}: table `{name}`: found no such figure, expected {expected}")
    return name, given


def _block(paper: Paper, what: str, body: str) -> str:
    """Return a block of the page: claims made anew, a table as it was kept."""
    if what == "claims":
        return _claims(paper)
    if what.startswith(PICTURE):
        one = Picture.of(paper, what)
        return f"![{one.name}]({pictures.FOLDER}/{one.path.name})"
    name, given = _table_of(paper, what)
    kept = paper.kept.elsewhere if given else paper.kept.own
    figure = measures.figure_of(name)
    if figure not in kept.figures:
        return f"({figure}: {NOT_MEASURED})"
    if kept.tables.get(name) != digest.text(body):
        raise SpecError(
            f"{paper.page}: table `{name}`: found a table that is not the kept one, expected "
            f"that of a run of {figure}, which `--accept` puts here"
        )
    return body


def _claims(paper: Paper) -> str:
    rows = [_row(paper, claim) for claim in paper.claims]
    table = markdown(HEADERS, rows, len(HEADERS))
    return "\n".join([_count(paper), "", table, "", *_sources(paper)])


def _count(paper: Paper) -> str:
    """Return how many claims are met, missed and not testable, in a sentence."""
    values = [_value(paper.kept.own, claim.measure) for claim in paper.claims]
    pairs = list(zip(paper.claims, values, strict=True))
    counts = {
        "met": sum(value is not None and claim.holds(value) for claim, value in pairs),
        "missed": sum(value is not None and not claim.holds(value) for claim, value in pairs),
        "not testable here": sum(claim.untested is not None for claim in paper.claims),
        NOT_MEASURED: sum(c.untested is None and value is None for c, value in pairs),
    }
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"**{words.counted(len(pairs), 'claim')}: {said}.**"


@dataclass(frozen=True)
class Picture:
    """A picture on a page: what it shows, and the file that holds it."""

    name: str
    columns: tuple[str, ...]
    paper: Paper

    @staticmethod
    def of(paper: Paper, what: str) -> Picture:
        """Return the picture that a block names."""
        name, colon, rest = what.removeprefix(PICTURE).partition(":")
        columns = tuple(column.strip() for column in rest.split(";")) if colon else ()
        return Picture(name.strip(), columns, paper)

    @property
    def path(self) -> Path:
        """Where the picture is."""
        slug = re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-")
        return self.paper.specs / pictures.FOLDER / f"{slug}{pictures.SUFFIX}"

    def source(self) -> str:
        """Return what it is drawn from, as text. Errors: `SpecError` without such a table."""
        if self.name == "claims":
            return repr(self._beside())
        for block in BLOCK.finditer(self.paper.text()):
            if block["what"] == f"table {self.name}":
                return f"{'; '.join(self.columns)}\n{block['body']}"
        raise SpecError(
            f"{self.paper.page}: picture `{self.name}`: found no `table {self.name}` on the page, "
            "expected one"
        )

    def draw(self) -> None:
        """Draw it anew. Errors: `SpecError`."""
        source = self.source()
        if self.name == "claims":
            figure = pictures.of_claims(self._beside())
        else:
            figure = pictures.of_table(self.name, source.partition("\n")[2], self.columns)
        pictures.write(figure, source, self.path)

    def _beside(self) -> list[pictures.Beside]:
        """Return the claims of shares and changes, with the paper's bound and our value."""
        found = []
        for claim in self.paper.claims:
            value = _value(self.paper.kept.own, claim.measure)
            bound = claim.at_most if claim.at_least is None else claim.at_least
            if value is not None and bound is not None and claim.unit in PERCENT:
                shift = 1 if claim.unit == "beside" else 0
                percent = [round(100 * (one - shift), 3) for one in (bound, value)]
                found.append(pictures.Beside(claim.name, *percent))
        return found


def pictures_of(paper: Paper) -> list[Picture]:
    """Return the pictures of a page."""
    blocks = [block["what"] for block in BLOCK.finditer(paper.text())]
    return [Picture.of(paper, what) for what in blocks if what.startswith(PICTURE)]


def _row(paper: Paper, claim: Claim) -> list[str]:
    said = f"{claim.claim}: {claim.paper} ({claim.source})"
    if claim.measure is None:
        what = "not testable" if claim.untested else NOT_MEASURED
        return [said, claim.reading, what, "", "", claim.untested or claim.unmeasured or ""]
    bound = f"met: {claim.bound()}"
    read = f"{claim.reading}; {bound}" if claim.reading else bound
    value = paper.kept.own.measures.get(claim.measure)
    later = _value(paper.kept.own, claim.later)
    why = claim.why if value is not None and not claim.holds(value) else ""
    cells = [_found(claim, one) for one in (value, later, _on_new_volumes(paper, claim))]
    return [said, read, cells[0] or NOT_MEASURED, *cells[1:], why]


def _on_new_volumes(paper: Paper, claim: Claim) -> float | None:
    """Return the measure on given volumes, or one of the paper's own run that is of others."""
    if claim.elsewhere is None:
        return _value(paper.kept.elsewhere, claim.measure)
    found = _value(paper.kept.elsewhere, claim.elsewhere)
    return _value(paper.kept.own, claim.elsewhere) if found is None else found


def _value(results: Kept, name: str | None) -> float | None:
    return None if name is None else results.measures.get(name)


def _found(claim: Claim, value: float | None) -> str:
    if value is None:
        return ""
    return f"{claim.shown(value)}, **{'met' if claim.holds(value) else 'missed'}**"


def _sources(paper: Paper) -> list[str]:
    """Return where the numbers come from, and which specs changed since."""
    lines = [_source("Measured", paper.kept.own), _source("On new volumes", paper.kept.elsewhere)]
    wanted = [name for name in paper.figures() if name != ALL]
    missing = [name for name in wanted if name not in paper.kept.own.figures]
    if paper.kept.own.figures and missing:
        lines.append(f"Not measured: {', '.join(missing)}.")
    for results in (paper.kept.own, paper.kept.elsewhere):
        stale = measured.stale(results.figures, paper.specs)
        if stale:
            lines.append(f"The specs changed since these were measured: {', '.join(stale)}.")
    return [line for line in lines if line] or ["Nothing is measured yet."]


def _source(head: str, results: Kept) -> str:
    """Return the figures that were measured on the same traces together."""
    groups: dict[str, list[str]] = {}
    for name, where in results.figures.items():
        folder = "" if where.traces.folder is None else f" of {where.traces.folder}"
        own = f"{', '.join(where.traces.names)}{folder} (Cachewright {where.cachewright})"
        groups.setdefault(own, []).append(name)
    parts = [f"{', '.join(figures)} on {own}" for own, figures in groups.items()]
    return f"{head}: {'; '.join(parts)}." if parts else ""


def tables(paper: Paper, run: Measured) -> dict[str, str]:
    """Return the text of a run's tables that the page shows, by the names of their blocks.

    Errors: `SpecError` for a table that the run does not have.
    """
    found = {}

    def drawn(what: str, body: str) -> str:
        if _is_table(what):
            name, given = _table_of(paper, what)
            if given == _given(run) and measures.figure_of(name) in run.figures:
                found[name] = _drawn(paper, run, name)
        return body

    _with_blocks(paper, drawn)
    return found


def _drawn(paper: Paper, run: Measured, name: str) -> str:
    figure, _, own = name.partition("/")
    shown = run.tables.get(figure, ())
    for one in shown:
        if one.name == own:
            return _text_of(one)
    expected = ", ".join(f"`{figure}/{one.name}`".replace("/`", "`") for one in shown)
    raise SpecError(f"{paper.page}: table `{name}`: found none, expected one of {expected}")


def _text_of(one: Shown) -> str:
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


def accept(root: Path, folder: Path) -> Path:
    """Keep the results of a run as those of its paper, figure by figure; return the digest's path.

    The tables of the run take the places of the page's. Errors: `SpecError` for a run in small, of
    a paper without specs, and where the page has a block for a table that no run has; nothing is
    kept then.
    """
    run = run_of(root, folder)
    if not run.whole:
        path = folder / measures.FILE
        raise SpecError(f"{path}: found results in small, expected reference traces or volumes")
    paper = Paper.of(root, run.paper)
    given = _given(run)
    kept = paper.kept.elsewhere if given else paper.kept.own
    kept.drop([name for name in kept.figures if name not in paper.figures()])
    shown = tables(paper, run)
    named = {name for claim in paper.claims for _, name in _named(claim)}
    kept.take(run, named, shown, took.read(folder))

    def taken(what: str, body: str) -> str:
        if not _is_table(what):
            return body
        name, of_given = _table_of(paper, what)
        if of_given == given and name in shown:
            return shown[name]
        # Nothing is kept where another block has no table: the page could not be made then.
        return _block(paper, what, body)

    paper.page.write_text(_with_blocks(paper, taken), encoding="utf-8")
    return paper.kept.write(paper.specs / digest.FILE)


@dataclass
class Compared:
    """What a run changes beside the kept results, or beside another run."""

    changes: list[Change]
    # Figures of which other numbers than those named changed, with the rows of the page's tables
    # that differ: before and now.
    others: dict[str, list[tuple[str, str]]]
    added: list[str]


def compared(root: Path, folder: Path) -> Compared:
    """Return what a run changes beside the kept results.

    Errors: `SpecError` for a run of a paper without specs.
    """
    run = run_of(root, folder)
    paper = Paper.of(root, run.paper)
    kept = paper.kept.elsewhere if _given(run) else paper.kept.own
    added = [name for name in run.figures if name not in kept.figures]
    changes: list[Change] = []
    others: dict[str, list[tuple[str, str]]] = {}
    shown, now = _shown(paper, given=_given(run)), tables(paper, run)
    for figure in run.figures:
        if figure in added or kept.figures[figure].numbers == digest.numbers(run, figure):
            continue
        own = {k: v for k, v in kept.measures.items() if measures.figure_of(k) == figure}
        named = {name: run.measures[name] for name in own if name in run.measures}
        changes += measured.changed(own, named)
        others[figure] = [
            rows
            for name, text in now.items()
            if measures.figure_of(name) == figure
            for rows in _rows(shown.get(name, ""), text)
        ]
    return Compared(changes, others, added)


def compared_runs(root: Path, before: Path, folder: Path) -> Compared:
    """Return what a run changes beside another run, number by number. Errors: `SpecError`."""
    old, new = run_of(root, before), run_of(root, folder)
    if old.paper != new.paper:
        path = before / measures.FILE
        raise SpecError(f"{path}: found paper `{old.paper}`, expected {new.paper}")
    added = [name for name in new.figures if name not in old.figures]
    return Compared(measured.changes(old, new), {}, added)


def _shown(paper: Paper, *, given: bool) -> dict[str, str]:
    """Return the tables on the page by the names of their blocks."""
    found = {}
    for block in BLOCK.finditer(paper.text()):
        if _is_table(block["what"]):
            name, of_given = _table_of(paper, block["what"])
            if of_given == given:
                found[name] = block["body"].rstrip("\n")
    return found


def _rows(before: str, now: str) -> list[tuple[str, str]]:
    """Return the lines of a table that differ, as far as both have them."""
    pairs = zip(before.splitlines(), now.splitlines(), strict=False)
    return [(old, new) for old, new in pairs if old != new]


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="make the blocks of all pages anew")
    what.add_argument("--check", action="store_true", help="fail where a block is stale")
    what.add_argument("--changes", type=Path, metavar="DIR", help="what a run changes")
    what.add_argument("--accept", type=Path, metavar="DIR", help="keep the results of a run")
    about = "with --changes: beside the results of another run, number by number"
    parser.add_argument("--since", type=Path, metavar="DIR", help=about)
    chosen = parser.parse_args()
    try:
        if chosen.changes:
            return changes(chosen.changes, chosen.since)
        if chosen.accept:
            path = accept(ROOT, chosen.accept)
            print(f"kept: {path.relative_to(ROOT)}")
        return write(check=chosen.check)
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def write(*, check: bool) -> int:
    """Write every page, or say which are stale; claims must name measures that there are."""
    status = 0
    for name in names(ROOT):
        paper = Paper.of(ROOT, name)
        for problem in problems(paper):
            print(problem, file=sys.stderr)
            status = 1
        text = written(paper)
        page = paper.page.relative_to(ROOT)
        if text != paper.text():
            if check:
                print(f"{page}: stale, run `make generate`", file=sys.stderr)
                status = 1
            else:
                paper.page.write_text(text, encoding="utf-8")
                print(f"wrote {page}")
        status |= _write_pictures(paper, check=check)
    return status


def _write_pictures(paper: Paper, *, check: bool) -> int:
    """Draw the pictures that are not of the page, or say which those are; no others are kept."""
    status, wanted = 0, pictures_of(paper)
    for one in wanted:
        if pictures.is_of(one.path, one.source()):
            continue
        path = one.path.relative_to(ROOT)
        if check:
            print(f"{path}: stale, run `make generate`", file=sys.stderr)
            status = 1
        else:
            one.draw()
            print(f"wrote {path}")
    known = {one.path for one in wanted}
    for path in (paper.specs / pictures.FOLDER).glob(f"*{pictures.SUFFIX}"):
        if path not in known:
            if check:
                print(
                    f"{path.relative_to(ROOT)}: no page shows it, run `make generate`",
                    file=sys.stderr,
                )
                status = 1
            else:
                path.unlink()
    return status


def changes(folder: Path, since: Path | None = None) -> int:
    """Print what a run changes beside the kept results, or another run, and how to keep it."""
    if since is None and not run_of(ROOT, folder).whole:
        print(f"{folder}: results in small, which are not compared with the kept ones")
        return 0
    found = compared(ROOT, folder) if since is None else compared_runs(ROOT, since, folder)
    for change in found.changes:
        print("changed: {}: {} before, {} now ({})".format(*change.row()))
    for figure, rows in found.others.items():
        print(f"changed: numbers of {figure} are not the kept ones")
        for before, now in rows:
            print(f"  before {before}\n  now    {now}")
    if found.added:
        print(f"not kept before: {', '.join(found.added)}")
    if not (found.changes or found.others or found.added):
        print(f"{folder}: nothing changed since {since or 'the kept results'}")
    elif since is None:
        print(f"to keep these results: python -m cachewright_lab.pages --accept {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
