"""Tables at any width: nothing is cut, numbers align, the best is marked.

For: `cachewright.cli.tables`. Must never know: what tables show.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cachewright.cli import output
from cachewright.cli.tables import Column, table


def _columns() -> list[Column]:
    return [
        Column("", ["1", "2"]),
        Column("policy", ["arc", "s3-fifo"], numeric=False),
        Column("hit ratio", ["0.5012", "0.4999"], best={0}),
        Column("read hit ratio", ["0.6012", "0.6999"], best={1}),
        *(Column(f"tenant-{n}", [f"0.{n}001", f"0.{n}002"]) for n in range(8)),
    ]


@given(st.integers(30, 200))
def test_every_cell_is_there_at_any_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setattr(output, "terminal", lambda: Console(width=width, highlight=False))
    table("title", _columns())
    out = capsys.readouterr().out
    for column in _columns():
        for word in [*column.header.split(), *column.cells]:
            assert word in out
    assert "0.5012*" in out
    assert "0.6999*" in out
    assert out.count("*") == 2
    assert max(map(len, out.splitlines())) <= width


def test_numbers_align_with_and_without_a_mark(capsys: pytest.CaptureFixture[str]) -> None:
    table("title", _columns()[:3])
    lines = capsys.readouterr().out.splitlines()
    found = [re.search(r"\d\.\d{4}", line) for line in lines]
    ends = {match.end() for match in found if match is not None}
    assert len(ends) == 1


def test_a_piped_table_is_plain_and_narrow(capsys: pytest.CaptureFixture[str]) -> None:
    wide = [Column(f"a header of words {n}", ["0.1234", "0.5678"]) for n in range(20)]
    table("title", [*_columns(), *wide])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 120
    assert all(line == line.rstrip() and line.isascii() for line in out.splitlines())
    assert out.count("0.1234") == 20
    assert out.count("s3-fifo") > 1, "each part names its rows"


def test_a_piped_sentence_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "what an entry does, " * 10
    names = Column("name", ["lru"], numeric=False)
    table("", [names, Column("what it does", [sentence], numeric=False)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name  what it does"
    assert f"lru   {sentence}".rstrip() in lines
