"""A paper's claims: read strictly, judged by measures, and shown on pages that are never stale.

For: `cachewright_lab.reproduce.claims` and `measured`, `pages`. Must never
know: any paper; but every paper's own claims must be right.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cachewright import SpecError, words
from cachewright.documents import values
from cachewright.tables import measures
from cachewright.tables.measures import Measured, Provenance, Shown, Traces, figure_of
from cachewright_lab import digest, pages
from cachewright_lab.report.tables import Table, plain
from cachewright_lab.reproduce import claims, measured
from cachewright_lab.reproduce.claims import Claim

ROOT = Path(__file__).resolve().parents[1]
GOOD = """[[claim]]
name = "hits"
claim = "Hits rise"
source = "figure 1"
paper = "11 % above"
measure = "fig1/a/hits"
unit = "beside"
at_least = 1.11
why = "the trace is short"
"""
OPEN = """[[claim]]
name = "power"
claim = "Power falls"
source = "figure 2"
paper = "less"
untested = "no model of power"
"""


def written(folder: Path, text: str) -> list[Claim]:
    (folder / claims.CLAIMS).write_text(text)
    return claims.read(folder)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("claim =", "clam =", r"claim 1 \(`hits`\): found `clam`, expected a key such as `claim`"),
        ('source = "figure 1"\n', "", r"claim 1 \(`hits`\): found no `source`, expected one"),
        ("1.11", '"1.11"', "`at_least`: found `1.11`, expected a number"),
        ("1.11", "true", "`at_least`: found `True`, expected a number"),
        ('"Hits rise"', '" "', "`claim`: found ` `, expected text"),
        ('"beside"', '"miles"', "`unit`: found `miles`, expected one of plain, times"),
        ("at_least = 1.11\n", "", "found no bound, expected `at_least` or `at_most`"),
        ("at_least = 1.11", "at_least = 2\nat_most = 1", "`at_least`: found 2, expected at most 1"),
        ('measure = "fig1/a/hits"\n', "", "found none of them, expected one of `measure`"),
        ("at_least", 'untested = "x"\nat_least', "found `measure` and `untested`, expected one of"),
        ("at_least", 'later = "fig1/a/hits"\nat_least', "`later`: found the claim's own measure"),
        ("[[claim]]", "[other]\n[[claim]]", "found `other`, expected `.*claim.*` tables alone"),
        ("[[claim]]", "[claim]", "`claim`: found no list of tables"),
        ("[[claim]]", "[[claim]", "claims.toml: "),
    ],
)
def test_claims_are_read_strictly(folder: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        written(folder, GOOD.replace(old, new, 1))


def test_what_cannot_be_tested_has_no_bounds(folder: Path) -> None:
    with pytest.raises(SpecError, match="found `at_most` beside `untested`, expected none"):
        written(folder, OPEN + "at_most = 1\n")
    with pytest.raises(SpecError, match=r"claim 2 \(`power`\): found a second claim of that name"):
        written(folder, OPEN + OPEN)
    assert claims.read(folder / "nowhere") == []


def test_claims_are_met_missed_untested_or_not_run(folder: Path) -> None:
    found = written(folder, GOOD + OPEN)

    def verdicts(measures: dict[str, float], *, whole: bool = True) -> list[str]:
        return [one.verdict for one in claims.judged(found, measures, whole=whole)]

    never = "untested because no model of power"
    assert verdicts({"fig1/a/hits": 1.11}) == ["met", never]
    assert verdicts({"fig1/a/hits": 1.109}) == ["missed because the trace is short", never]
    assert verdicts({"fig2/a/hits": 2.0}) == ["not run", never]
    assert verdicts({"fig1/a/hits": 2.0}, whole=False) == ["holds in small", never]
    assert verdicts({"fig1/a/hits": 1.0}, whole=False) == ["differs in small", never]
    assert verdicts({}, whole=False) == ["not run", never]
    (sized,) = written(folder, GOOD.replace("fig1/a/hits", "fig1/64MiB, 7%/hits"))
    small = {"fig1/1MiB, 20%/hits": 2.0, "fig1/hits": 1.0}
    assert claims.judged([sized], small, whole=False)[0].status == "holds in small"
    assert claims.judged([sized], small, whole=True)[0].status == "not run", "another size"
    several = {**small, "fig1/2MiB, 20%/hits": 1.0}
    assert claims.judged([sized], several, whole=False)[0].status == "not run"
    assert claims.judged(found, {"fig1/a/hits": 0.83}, whole=True)[0].shown == "17 % below"


def test_bounds_read_as_what_counts_as_met(folder: Path) -> None:
    (rises,) = written(folder, GOOD)
    assert rises.bound() == "at least 11 % above"
    (loses,) = written(folder, GOOD.replace("1.11", "0.85"))
    assert loses.bound() == "at most 15 % below"
    (falls,) = written(folder, GOOD.replace("at_least = 1.11", "at_most = 0.85"))
    assert falls.bound() == "at least 15 % below"
    (equal,) = written(folder, GOOD.replace("1.11", "1"))
    assert equal.bound() == "at least the same"


def test_one_figure_decides_its_own_claims(folder: Path) -> None:
    found = claims.judged(written(folder, GOOD + OPEN), {"fig1/a/hits": 2.0}, whole=True)
    assert [one.claim.name for one in claims.of_figures(found, ["fig1"])] == ["hits"]
    assert claims.of_figures(found, ["fig2"]) == []
    document = json.loads(claims.write(found, folder / claims.FILE).read_text())
    assert [one["status"] for one in document["claims"]] == ["met", "untested"]
    assert document["claims"][0]["shown"] == "100 % above"


def test_both_bounds_hold() -> None:
    claim = Claim("n", "c", "s", "p", measure="m", at_least=1.0, at_most=2.0)
    assert [claim.holds(value) for value in (0.9, 1.0, 2.0, 2.1)] == [False, True, True, False]
    assert claim.bound() == "at least 1 and at most 2"


def test_numbers_of_tables_are_measures() -> None:
    rows = [["lu", "oc", words.percent(0.5), "text"], ["lu", "fb", words.NOTHING, "1.5"]]
    table = plain("F", "t", ["tenant", "layout", "hits", "said"], rows, 2, "tenants")
    assert list(table.measures()) == [("tenants/lu, oc/hits", 0.5)]
    keyed = Table("F", "t", ["a", "b", "c"], [["x", "y", words.fixed(2.04, 1)]], [], 2, keys=1)
    assert list(keyed.measures()) == [("x/c", 2.04)]


def test_the_text_of_a_number_keeps_its_value() -> None:
    for text, value in [
        (words.significant(1.23456), 1.23456),
        (words.size(1536), 1536),
        (words.duration(2.5e9), 2.5e9),
        (words.change(2.0, 1.6), 0.25),
        (words.times(3.0, 2.0), 1.5),
        (words.Number("3 of 4", 0.75), 0.75),
    ]:
        assert words.value_of(text) == pytest.approx(value), text
    assert words.change(2.0, 1.6) == "+25.0%"
    assert words.value_of("1.5") is None
    assert words.value_of(words.times(1.0, 0.0)) is None


def test_names_are_given_once() -> None:
    pairs = [("b", 1.0), ("a", 2.0), ("b", 3.0), ("c", float("nan"))]
    assert measured.unique(pairs) == {"a": 2.0, "b": 1.0, "b (2)": 3.0}


def results(kind: str = "trace", **measures: float) -> Measured:
    named = {name.replace("_", "/"): value for name, value in measures.items()}
    traces = Traces(kind=kind, names=("lu",))
    where = Provenance(cachewright="0", specs="0", traces=traces)
    figures = dict.fromkeys(map(figure_of, named), where)
    shown = Shown(
        name="",
        title="hits of all",
        headers=("", "hits"),
        rows=(("a", "0.5000"),),
        best=((), ()),
        texts=1,
    )
    return Measured("p", figures, named, dict.fromkeys(figures, (shown,)))


def tree(folder: Path, text: str = GOOD + OPEN) -> Path:
    """Return a laboratory with one paper of one figure."""
    own = folder / pages.FOLDER / "p"
    own.mkdir(parents=True)
    (own / "setup.toml").write_text('paper = "P"\n')
    (own / "fig1.toml").write_text('[figure]\ntitle = "F"\n')
    (own / claims.CLAIMS).write_text(text)
    (own / pages.PAGE).write_text(
        "# P\n\n<!-- begin claims -->\n<!-- end -->\n\n"
        "<!-- begin table fig1 -->\n<!-- end -->\nend\n"
    )
    return folder


def run_of(folder: Path, found: Measured) -> Path:
    out = folder / "results"
    found.write(out / measures.FILE)
    return out


def test_a_page_is_made_from_claims_and_kept_results(folder: Path) -> None:
    root = tree(folder)
    page = pages.written(pages.Paper.of(root, "p"))
    assert "| Hits rise: 11 % above (figure 1) |" in page
    assert "| not measured |" in page
    assert "no model of power" in page
    assert "(fig1: not measured)" in page
    pages.accept(root, run_of(folder, results(fig1_a_hits=1.2)))
    page = pages.written(pages.Paper.of(root, "p"))
    assert "| 20 % above, **met** |" in page
    assert "| a | 0.5000 |" in page
    assert "Not measured" not in page
    other = root / pages.FOLDER / "p" / "fig2.toml"
    other.write_text('[figure]\ntitle = "G"\n')
    assert "Not measured: fig2." in pages.written(pages.Paper.of(root, "p"))
    other.unlink()
    assert "The specs changed since these were measured: fig1." in page
    pages.accept(root, run_of(folder, results("given", fig1_a_hits=0.9)))
    page = pages.written(pages.Paper.of(root, "p"))
    assert "| 20 % above, **met** |  | 10 % below, **missed** |" in page
    assert page.endswith("<!-- end -->\nend\n"), "what is written by hand stays"


def test_results_in_small_are_not_kept(folder: Path) -> None:
    root = tree(folder)
    with pytest.raises(SpecError, match="found results in small"):
        pages.accept(root, run_of(folder, results("quick", fig1_a_hits=1.2)))
    strange = results(fig1_a_hits=1.2)
    strange.paper = "q"
    with pytest.raises(SpecError, match="found paper `q`, expected one of p"):
        pages.accept(root, run_of(folder, strange))


def test_a_figure_is_kept_in_place_of_its_own_only(folder: Path) -> None:
    root = tree(folder)
    (root / pages.FOLDER / "p" / "fig2.toml").write_text('[figure]\ntitle = "F"\n')
    pages.accept(root, run_of(folder, results(fig1_a_hits=1.0, fig2_a_hits=2.0)))
    second = digest.read(root / pages.FOLDER / "p" / digest.FILE, "p").own.figures["fig2"]
    path = pages.accept(root, run_of(folder, results(fig1_a_hits=3.0)))
    kept = digest.read(path, "p").own
    assert kept.measures == {"fig1/a/hits": 3.0}, "numbers that claims name"
    assert list(kept.figures) == ["fig1", "fig2"]
    assert kept.figures["fig2"] == second
    assert list(kept.tables) == ["fig1"], "tables of the page"
    (root / pages.FOLDER / "p" / "fig2.toml").unlink()
    assert "found figure `fig2`, expected one of fig1, all" in "".join(
        pages.problems(pages.Paper.of(root, "p"))
    )


def test_nothing_is_kept_where_a_block_has_no_table(folder: Path) -> None:
    root = tree(folder)
    (root / pages.FOLDER / "p" / "fig2.toml").write_text('[figure]\ntitle = "F"\n')
    path = pages.accept(root, run_of(folder, results(fig1_a_hits=1.0)))
    page = root / pages.FOLDER / "p" / pages.PAGE
    page.write_text(page.read_text() + "<!-- begin table fig1/x -->\nold\n<!-- end -->\n")
    before = [page.read_text(), path.read_text()]
    why = "table `fig1/x`: found a table that is not the kept one, expected that of a run of fig1"
    with pytest.raises(SpecError, match=re.escape(why)):
        pages.accept(root, run_of(folder, results(fig2_a_hits=2.0)))
    assert [page.read_text(), path.read_text()] == before


def test_claims_name_measures_that_there_are(folder: Path) -> None:
    root = tree(folder, GOOD.replace("fig1/a/hits", "fig1/a/hitz"))
    assert pages.problems(pages.Paper.of(root, "p")) == [], "nothing is measured"
    pages.accept(root, run_of(folder, results(fig1_a_hits=1.2)))
    (problem,) = pages.problems(pages.Paper.of(root, "p"))
    assert "`measure`: found `fig1/a/hitz`, which no run that was kept has, expected" in problem
    (root / pages.FOLDER / "p" / claims.CLAIMS).write_text(GOOD.replace("fig1/a", "fig9/a"))
    (problem,) = pages.problems(pages.Paper.of(root, "p"))
    assert "`measure`: found figure `fig9`, expected fig1, all" in problem


def test_blocks_that_are_none_are_refused(folder: Path) -> None:
    root = tree(folder)
    page = root / pages.FOLDER / "p" / pages.PAGE
    run = run_of(folder, results(fig1_a_hits=1.2))
    pages.accept(root, run)
    text = page.read_text()
    for old, new, why in [
        ("table fig1", "table fig9", "table `fig9`: found no such figure, expected fig1, all"),
        (
            "table fig1",
            "chart fig1",
            "found block `chart fig1`, expected `claims`, `table FIGURE` or",
        ),
        ("begin claims", "begin table fig1", "found no block `<!-- begin claims -->`"),
        ("<!-- end -->\nend", "end", "found a block without end"),
        ("| a | 0.5000 |", "| a | 0.6000 |", "table `fig1`: found a table that is not the kept"),
        ("table fig1", "table fig1/x", "table `fig1/x`: found a table that is not the kept one"),
    ]:
        page.write_text(text.replace(old, new))
        with pytest.raises(SpecError, match=re.escape(why)):
            pages.written(pages.Paper.of(root, "p"))
    with pytest.raises(SpecError, match="table `fig1/x`: found none, expected one of `fig1`"):
        pages.accept(root, run)


def test_changes_since_the_kept_results_are_found(folder: Path) -> None:
    root = tree(folder)
    out = run_of(folder, results(fig1_a_hits=1.0, fig1_b_hits=2.0, fig1_c_hits=3.0))
    assert pages.compared(root, out).added == ["fig1"], "nothing is kept yet"
    pages.accept(root, out)
    assert pages.compared(root, out) == pages.Compared([], {}, [])
    close = results(fig1_a_hits=1.0 + 1e-12, fig1_b_hits=2.0, fig1_c_hits=3.0)
    assert pages.compared(root, run_of(folder, close)) == pages.Compared([], {}, [])
    changed = results(fig1_a_hits=1.5, fig1_b_hits=2.0, fig1_c_hits=3.0)
    (table,) = changed.tables["fig1"]
    shown = Shown(**(values(table) | {"rows": (("a", "0.7500"),)}))
    changed.tables["fig1"] = (shown,)
    found = pages.compared(root, run_of(folder, changed))
    assert [change.row() for change in found.changes] == [["fig1/a/hits", "1", "1.5", "+50.0%"]]
    assert found.others == {"fig1": [("| a | 0.5000 |", "| a | 0.7500 |")]}
    other = run_of(folder, results(fig1_a_hits=1.0, fig1_b_hits=2.5, fig1_c_hits=3.0))
    found = pages.compared(root, other)
    assert (found.changes, found.others) == ([], {"fig1": []}), "a number that nothing shows"


def test_changes_between_two_runs_are_found_by_number(folder: Path) -> None:
    root = tree(folder)
    before = results(fig1_a_hits=1.0, fig1_b_hits=2.0, fig1_c_hits=3.0)
    before.write(folder / "before" / measures.FILE)
    now = run_of(folder, results(fig1_a_hits=1.0, fig1_b_hits=2.5, fig1_d_hits=4.0))
    found = pages.compared_runs(root, folder / "before", now)
    assert found.added == []
    assert [change.row() for change in found.changes] == [
        ["fig1/b/hits", "2", "2.5", "+25.0%"],
        ["fig1/c/hits", "3", "-", "-"],
        ["fig1/d/hits", "-", "4", "-"],
    ]


def test_a_digest_that_is_none_is_refused(folder: Path) -> None:
    root = tree(folder)
    path = pages.accept(root, run_of(folder, results(fig1_a_hits=1.0)))
    document = json.loads(path.read_text())
    for change, why in [
        ({"schema_version": 9}, "`schema_version`: found `9`, expected 1"),
        ({"own": []}, "found no digest"),
        ({"own": {"figures": {"fig1": {}}, "measures": {}, "tables": {}}}, "found no digest"),
        ({"own": {"figures": {}, "measures": {"a": "x"}, "tables": {}}}, "found no digest"),
    ]:
        path.write_text(json.dumps(document | change))
        with pytest.raises(SpecError, match=why):
            pages.Paper.of(root, "p")
    path.write_text("{")
    with pytest.raises(SpecError, match="found no digest"):
        pages.Paper.of(root, "p")


def test_damaged_results_are_refused(folder: Path) -> None:
    path = results(fig1_a_hits=1.0).write(folder / measures.FILE)
    document = json.loads(path.read_text())
    for key, value, why in [
        ("schema_version", 9, "`schema_version`: found `9`, expected 1"),
        ("measures", [], "found no `measures`"),
        ("measures", {"fig1/a": "x"}, "`fig1/a`: found `x`, expected a number"),
    ]:
        path.write_text(json.dumps(document | {key: value}))
        with pytest.raises(SpecError, match=why):
            measures.read(path)
    path.write_text("{")
    with pytest.raises(SpecError, match="found no JSON"):
        measures.read(path)


def test_every_paper_has_a_page_that_is_fresh() -> None:
    found = pages.names(ROOT)
    assert len(found) == 5
    for name in found:
        paper = pages.Paper.of(ROOT, name)
        assert (ROOT.parent / "specs" / f"{name}.toml").is_file(), "the paper's own scheme"
        assert paper.claims, name
        assert pages.problems(paper) == []
        assert pages.written(paper) == paper.page.read_text(encoding="utf-8"), (
            f"lab/papers/{name} is stale: run `make generate`"
        )
