"""The engine of studies: rows of cases, tables in the blocks of a page, regrets by hand."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachewright_lab import goal_mixes, one_model, regret
from cachewright_lab.study import (
    Mix,
    Programme,
    Replay,
    Row,
    Study,
    Volume,
    grid,
    misses,
    present,
    write_blocks,
)

PAGE = "# A\n\n<!-- begin one -->\nold\n<!-- end one -->\n\nby hand\n"


def test_a_case_gives_a_row(traces: Path) -> None:
    volumes = tuple(Volume(name, traces / f"{name}.csv", "made", 3) for name in "ab")
    mix = Mix("a+b", volumes)
    assert [volume.label for volume in volumes] == ["made-a-3", "made-b-3"]
    for subject, tenants in ((mix, volumes), (volumes[0], volumes[:1])):
        stack = {
            "cache": {"capacity": "64KiB", "policy": "lru"},
            "tenant": [volume.tenant() for volume in tenants],
        }
        vary = {"capacity": ["64KiB", "128KiB"], "policy": ["lru", "fifo"]}
        replay = Replay(subject, stack, vary, {"misses": misses}, traces / "out" / subject.name)
        rows = list(replay.rows())
        assert {(row.setting, row.scheme) for row in rows} == {
            (size, policy) for size in ("64KiB", "128KiB") for policy in ("lru", "fifo")
        }
        assert {row.subject for row in rows} == {subject.name}
        assert {row.tenants for row in rows} == {len(tenants)}
        assert all(row.values["misses"] >= 1 for row in rows)
        assert list(replay.rows()) == rows, "kept cases give the same"
    assert (rows[0].group, rows[0].seed) == ("made", 3)


def programme(page: Path | None, rows: list[Row]) -> Programme:
    def measured(_: Namespace) -> Iterator[Row]:
        yield from rows

    def tables(_: Namespace, found: object) -> dict[str, str]:
        return {"one": grid(["a", "b"], [[row.scheme, row.setting] for row in rows])}

    studies = {"one": Study(measured, tables), "other": Study(measured, tables, usual=False)}
    return Programme("A test.", page, studies)


def test_tables_take_the_places_of_blocks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder / "page.md"
    page.write_text(PAGE)
    rows = [Row("v", "5%wss", "lru", {"x": 1.0})]
    assert programme(page, rows).main(["--out", "out"]) == 0
    assert page.read_text() == PAGE, "nothing is written unless it is asked for"
    assert "| lru | 5%wss |" in capsys.readouterr().out
    assert programme(page, rows).main(["--out", "out", "--write"]) == 0
    assert page.read_text() == PAGE.replace("old", "| a | b |\n|---|--:|\n| lru | 5%wss |")
    (kept,) = json.loads((folder / "out" / "one.json").read_text())
    assert kept["scheme"] == "lru"
    assert kept["values"] == {"x": 1.0}
    assert not (folder / "out" / "other.json").exists()
    with pytest.raises(SystemExit, match="one: found no volume to run"):
        programme(None, []).main(["--out", "out"])
    with pytest.raises(SystemExit, match=r"page\.md: found no block `two`, expected one"):
        write_blocks(page, {"two": "x"})


def test_volumes_without_a_file_are_left_out_and_named(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    volumes = [Volume("a", traces / "a.csv"), Volume("z", traces / "z.csv", "made", 2)]
    assert present(volumes) == volumes[:1]
    assert "left out, no file: made-z-2" in capsys.readouterr().err


def test_a_regret_is_beside_the_least_of_a_study() -> None:
    rows = [
        Row("a", "5%wss", "lru", {"misses": 12.0}),
        Row("a", "5%wss", "arc", {"misses": 10.0}),
        Row("b", "5%wss", "lru", {"misses": 5.0}),
        Row("b", "5%wss", "arc", {"misses": 10.0}),
        Row("b", "5%wss", "lru", {"mean response": 7.0}),
    ]
    assert regret.regrets(rows, ["lru", "arc", "auto"]).splitlines()[2:] == [
        "| `lru` | 20.0 %, 10.0 % (a 5%wss) | 0.0 %, 0.0 % (b 5%wss) |",
        "| `arc` | 100.0 %, 50.0 % (b 5%wss) | - |",
        "| `auto` | - | - |",
        "",
        "Studies: 2 of misses, 1 of mean response.",
    ]


def test_goals_and_kinds_are_counted_by_scheme() -> None:
    met = {"met": 2, "goals": 2, "hit_ratio": 0.5}
    rows = [Row("m", "5%wss", "auto", met, tenants=2), Row("n", "5%wss", "auto", met, tenants=3)]
    rows.append(Row("o", "5%wss", "auto", {**met, "met": 1}, tenants=3))
    (row,) = goal_mixes.table(rows).splitlines()[2:]
    assert row == "| `auto` | 2/2 | 3/4 | 0/0 | 0/0 | 5/6 | 2 |"
    values = [Row(kind, "", "`lru`", {"value": one}) for kind, one in (("a", 0.5), ("b", 0.25))]
    assert one_model.table(values).splitlines()[-1] == "| `lru` | 0.500 | 0.250 | 0.375 |"
