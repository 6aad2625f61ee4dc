"""Kept results: which are refused, which are compared, and what pages are made of.

For: `measures.json`, `cachewright_lab.pages` and the digest. Must never
know: any paper.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_claims import GOOD, results, run_of, tree, written

from cachewright import SpecError
from cachewright.documents import values
from cachewright.tables import measures
from cachewright_lab import pages, reproduce
from cachewright_lab.report import reproduced
from cachewright_lab.report.tables import markdown

SPECS = Path(__file__).resolve().parents[1] / "papers"


def damaged(folder: Path, change: dict[str, Any], text: str | None = None) -> Path:
    path = results(fig1_a_hits=1.0).write(folder / measures.FILE)
    document = json.loads(path.read_text()) | change
    path.write_text(text or json.dumps(document))
    return path


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "1" + 400 * "0"])
def test_a_measure_that_is_not_finite_is_refused(folder: Path, value: str) -> None:
    path = damaged(folder, {})
    path.write_text(path.read_text().replace('"fig1/a/hits": 1.0', f'"fig1/a/hits": {value}'))
    with pytest.raises(SpecError, match=r"`fig1/a/hits`: found `.*`, expected a number"):
        measures.read(path)


@pytest.mark.parametrize(
    "figures",
    [
        {"fig1": {}},
        {"fig1": None},
        {"fig1": {"cachewright": "0", "specs": "0", "traces": {"kind": "trace"}}},
        {"fig1": {"cachewright": "0", "specs": "0", "traces": {"kind": 1, "names": []}}},
    ],
)
def test_a_figure_without_its_traces_is_refused(folder: Path, figures: dict[str, Any]) -> None:
    path = damaged(folder, {"figures": figures})
    with pytest.raises(SpecError, match="`figures`: `fig1`: found no traces, expected the meas"):
        measures.read(path)


@pytest.mark.parametrize(
    "change",
    [{"rows": [["a"]]}, {"best": [[]]}, {"best": [[["x"]], []]}, {"headers": None}, {"name": 3}],
)
def test_a_table_that_cannot_be_drawn_is_refused(folder: Path, change: dict[str, Any]) -> None:
    (table,) = results(fig1_a_hits=1.0).tables["fig1"]
    assert len(table.headers) == 2
    path = damaged(folder, {"tables": {"fig1": [values(table) | change]}})
    with pytest.raises(SpecError, match="`tables`: `fig1`: found no list of tables, expected the"):
        measures.read(path)


def test_a_bound_is_a_finite_number(folder: Path) -> None:
    for bound in ("nan", "inf", "1" + 400 * "0"):
        with pytest.raises(SpecError, match=r"`at_least`: found `.*`, expected a number"):
            written(folder, GOOD.replace("1.11", bound))


def test_a_cell_of_markdown_is_one_line() -> None:
    text = markdown(["a", "b"], [["one\ntwo", "x|y"]], 2)
    assert text.splitlines()[-1] == "| one two | x\\|y |"


def test_a_paper_without_a_page_is_said_to_have_none(folder: Path) -> None:
    root = tree(folder)
    (root / pages.FOLDER / "p" / pages.PAGE).unlink()
    with pytest.raises(SpecError, match=r"README\.md: no such file or directory; expected"):
        pages.written(pages.Paper.of(root, "p"))


def test_results_in_small_are_not_compared(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(folder)
    pages.accept(root, run_of(folder, results(fig1_a_hits=1.0)))
    monkeypatch.setattr(pages, "ROOT", root)
    changes = pages.changes
    assert changes(run_of(folder, results("quick", fig1_a_hits=9.0))) == 0
    assert "results in small, which are not compared" in capsys.readouterr().out
    assert changes(run_of(folder, results(fig1_a_hits=2.0))) == 0
    said = capsys.readouterr().out
    assert "changed: fig1/a/hits: 1 before, 2 now (+100.0%)" in said
    strange = results(fig1_a_hits=1.0)
    strange.paper = "q"
    with pytest.raises(SpecError, match="found paper `q`, expected one of p"):
        pages.compared(root, run_of(folder, strange))


def test_a_figure_names_the_traces_of_its_own_study(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in reproduce.KINDS.items():
        silent = replace(kind, shown=lambda _what, _figure: [])
        monkeypatch.setitem(reproduce.KINDS, name, silent)
    what = reproduce.load("rc-rnn", None, quick=True, specs=SPECS)
    found = reproduced.measured(what, every=False).figures
    table = what.setup.document
    own = tuple(one["name"] for one in table["caching"]["quick"])
    kinds = tuple(one["name"] for one in table["quick"])
    assert own != kinds
    assert found["fig11"].traces.names == own
    assert found["fig3"].traces.names == kinds
