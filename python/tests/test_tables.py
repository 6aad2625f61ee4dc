"""Tables at any width: nothing is cut, numbers align, the best is marked.

For: `cachewright.tables`. Must never know: what tables show.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cachewright import tables, words
from cachewright.cli import output
from cachewright.tables import Beside, Column, Html, Table

Case = dict[str, Any]
CASES: list[Case] = [
    {"policy": "arc", "hits": 0.5012, "reads": 0.6012, "tenants": [n / 10 for n in range(8)]},
    {"policy": "s3-fifo", "hits": 0.4999, "reads": 0.6999, "tenants": [n / 20 for n in range(8)]},
]


def _of_tenant(place: int) -> Callable[[Case], float]:
    return lambda case: float(case["tenants"][place])


def _table(further: int = 0) -> Table[Case]:
    columns: list[Column[Case]] = [
        tables.rank(CASES),
        Column("policy", lambda case: case["policy"]),
        Column("hit ratio", lambda case: case["hits"], words.ratio, "high"),
        Column("read hit ratio", lambda case: case["reads"], words.ratio, "high"),
        *(Column(f"tenant-{n}", _of_tenant(n), words.ratio) for n in range(8)),
    ]
    wide: list[Column[Case]] = [
        Column(f"a heading of words {n}", lambda _: 0.1234, words.ratio) for n in range(further)
    ]
    return Table("title", [*columns, *wide], CASES)


@given(st.integers(30, 200))
def test_every_cell_is_there_at_any_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setattr(output, "terminal", lambda: Console(width=width, highlight=False))
    output.show(_table())
    out = capsys.readouterr().out
    for column in _table().written():
        for word in [*column.heading.split(), *column.cells]:
            assert word in out
    assert "0.5012*" in out
    assert "0.6999*" in out
    assert out.count("*") == 2
    assert max(map(len, out.splitlines())) <= width


def test_numbers_align_with_and_without_a_mark(capsys: pytest.CaptureFixture[str]) -> None:
    whole = _table()
    output.show(Table("title", whole.columns[:3], CASES))
    lines = capsys.readouterr().out.splitlines()
    found = [re.search(r"\d\.\d{4}", line) for line in lines]
    ends = {match.end() for match in found if match is not None}
    assert len(ends) == 1


def test_a_piped_table_is_plain_and_narrow(capsys: pytest.CaptureFixture[str]) -> None:
    output.show(_table(further=20))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 120
    assert all(line == line.rstrip() and line.isascii() for line in out.splitlines())
    assert out.count("0.1234") == 40
    assert out.count("s3-fifo") > 1, "each part names its rows"


def test_a_piped_sentence_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "what an entry does, " * 10
    output.show(tables.of_texts("", ["name", "what it does"], [["lru", sentence]], 2))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name  what it does"
    assert f"lru   {sentence}".rstrip() in lines


def test_a_bound_is_shown_but_never_best_and_rows_left_out_count() -> None:
    rows = [("opt", 0.9), ("arc", 0.5), ("lru", 0.4), ("fifo", 0.6)]
    columns: list[Column[tuple[str, float]]] = [
        Column("policy", lambda row: row[0]),
        Column("hit ratio", lambda row: row[1], words.ratio, "high"),
    ]
    whole = Table("", columns, rows, choice=lambda row: row[0] != "opt")
    assert [column.best for column in whole.written()] == [set(), {3}]
    short = Table("", columns, rows, shown=2, choice=lambda row: row[0] != "opt")
    assert short.left_out == 2
    assert [column.best for column in short.written()] == [set(), set()], "the best is not shown"
    assert short.written()[1].cells == ["0.9000", "0.5000"]


def test_a_page_marks_the_best_and_takes_no_text_for_html() -> None:
    found = tables.html(
        tables.of_texts("", ["<a>", "n"], [["<b>", "1"], [Html("<i>x</i>"), "2"]], 1, [(), {1}])
    )
    assert found == (
        '<div class="wide"><table><thead><tr><th>&lt;a&gt;</th><th class="n">n</th></tr></thead>'
        '<tbody><tr><td>&lt;b&gt;</td><td class="n">1</td></tr>'
        '<tr><td><i>x</i></td><td class="n"><b class="top">2</b></td></tr></tbody></table></div>'
    )


def test_markdown_keeps_a_cell_on_its_line() -> None:
    found = tables.markdown(tables.of_texts("", ["a|b", "n"], [["one\ntwo", "1"]], 1, [(), {0}]))
    assert found == "| a\\|b | n |\n|---|--:|\n| one two | **1** |"


def test_csv_has_all_rows_and_numbers_as_they_are() -> None:
    file = io.StringIO()
    records = [{"a": 0.125, "b": {"c": True}, "d": ["x", "y"]}, {"a": None, "e": 1, "f": [{}]}]
    tables.write_csv(tables.of_records(records, ["z"]), file)
    assert file.getvalue() == "z,a,b_c,d,e\n,0.125,true,x; y,\n,,,,1\n"


def test_results_side_by_side_have_changes_and_the_best_of_each_row() -> None:
    rows = [Beside(("lru",), (0.5, 0.75, None)), Beside(("arc",), (None, 0.5, 0.25))]
    table = tables.beside("hits", ["policy"], ["a", "b", "c"], rows, words.ratio, better="high")
    found = {column.heading: (column.cells, column.best) for column in table.written()}
    assert found == {
        "policy": (["lru", "arc"], set()),
        "a": (["0.5000", "-"], set()),
        "b": (["0.7500", "0.5000"], {0, 1}),
        "c": (["-", "0.2500"], set()),
        "b, change": (["+50.0%", "-"], set()),
        "c, change": (["-", "-"], set()),
    }
