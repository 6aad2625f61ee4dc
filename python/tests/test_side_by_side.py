"""Results side by side: rows are aligned by what varies, and nothing else is called comparable.

Documents are made up; the command line is tried on small runs.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import re
from pathlib import Path

import pytest
from conftest import Command, fits_schema
from hypothesis import given
from hypothesis import strategies as st
from recorded import result_document, result_of

from cachewright import SpecError, characterize
from cachewright.report import compared
from cachewright.report.figure import PrintStyle
from cachewright.tables.side_by_side import (
    RATIO,
    Comparison,
    Curve,
    Measure,
    Reading,
    Row,
    exact_size,
    labels,
    of_run,
    read_all,
)


def reading(label: str, rows: list[tuple[dict[str, str], float]], **settings: str) -> Reading:
    """Return a result of hit ratios."""
    made = [Row(keys, {"hit ratio": value}) for keys, value in rows]
    return Reading(label, "run", settings, [RATIO], made)


def test_rows_are_aligned_by_the_keys_that_vary() -> None:
    one = reading(
        "one", [({"policy": p, "write": "back"}, v) for p, v in (("lru", 0.1), ("arc", 0.2))]
    )
    two = reading(
        "two", [({"policy": p, "write": "around"}, v) for p, v in (("arc", 0.3), ("2q", 0.4))]
    )
    found = Comparison.of([one, two])
    assert found.keys == ["policy"]
    (table,) = found.tables
    assert table.rows == [
        (("arc",), (0.2, 0.3)),
        (("lru",), (0.1, None)),
        (("2q",), (None, 0.4)),
    ]
    assert table.matched == 1
    assert found.differences == [("write", ["back", "around"])]


def test_settings_that_vary_within_a_result_are_no_differences() -> None:
    settings = {"cache.policy.name": "lru", "cache.block": "4KiB"}
    several = [({"cache.policy": p}, 0.5) for p in ("lru", "arc")]
    one = reading("one", several, **settings)
    two = reading("two", several[1:], **{"cache.policy.name": "arc", "cache.block": "8KiB"})
    assert Comparison.of([one, two]).differences == [("cache.block", ["4KiB", "8KiB"])]


def test_results_without_a_common_measure_are_refused_by_name() -> None:
    one = reading("one", [({}, 0.5)])
    other = Reading("drive", "wa", {}, [Measure("write amplification", str)], [])
    with pytest.raises(SpecError, match=r"one: found hit ratio \(`run`\), and write ampl.* drive"):
        Comparison.of([one, other])
    with pytest.raises(SpecError, match="found 1 result"):
        Comparison.of([one])
    with pytest.raises(SpecError, match=r"^drive: "):
        Comparison.of([one, reading("two", [({}, 0.4)]), other])


def test_a_curve_is_read_between_its_points_and_never_outside() -> None:
    curve = Curve("all", "lru", [(10, 0.2), (20, 0.4), (40, 0.4)])
    sizes = (9, 10, 15, 20, 30, 40, 41)
    assert [curve.at(size) for size in sizes] == [
        None, 0.2, pytest.approx(0.3), 0.4, pytest.approx(0.4), 0.4, None,
    ]  # fmt: skip


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50))
def test_different_sizes_have_different_texts(first: int, second: int) -> None:
    assert (exact_size(first) == exact_size(second)) == (first == second)


def test_labels_are_the_shortest_ends_that_differ() -> None:
    paths = [Path("/r/a/x"), Path("/r/b/x"), Path("/r/c"), Path("/r/c")]
    assert labels(paths) == ["a/x", "b/x", "c (1)", "c (2)"]


def test_numbers_are_those_of_the_results() -> None:
    document = result_document()
    other = copy.deepcopy(document)
    other["spec"]["cache"]["block"] = "8KiB"
    other["tenants"][0]["requests"] += 1
    answers = [result_of(one).answer for one in (document, other)]
    found = Comparison.of([of_run(name, a) for name, a in zip("ab", answers, strict=True)])
    ratios = next(table for table in found.tables if table.measure is RATIO)
    assert ratios.matched == len(ratios.rows) == len(answers[0].cases) * 4
    told = dict(ratios.rows)
    for case in answers[0].cases:
        policy, partition, capacity = (
            case.settings[f"cache.{key}"] for key in ("policy", "partition", "capacity")
        )
        assert told[policy, partition, capacity, "all"] == (case.total.hit_ratio,) * 2
        for tenant in case.tenants:
            assert told[policy, partition, capacity, tenant.name][1] == tenant.hit_ratio
    assert found.differences == [("cache.block", ["4KiB", "8KiB"])]
    assert [name for name, _ in found.workloads] == ["oltp"]
    page = compared.page(found)
    assert "The results replay different requests" in page
    assert "<td>cache.block</td><td>4KiB</td><td>8KiB</td>" in page
    assert set(found.curves) == {"oltp", "web", "mail", "all"}


def test_a_run_meets_the_curve_at_its_capacity(stack: Path, command: Command) -> None:
    run = ("--set", "cache.partition=shared", "--vary", "capacity=256KiB,512KiB")
    assert command("compare", "stack.toml", *run, "--vary", "policy=lru", "--out", "r").status == 0
    curve = ("--policy", "lru", "--sizes", "256KiB,512KiB,1MiB", "--method", "exact")
    assert command("mrc", "stack.toml", *curve, "--out", "m").status == 0
    found = Comparison.of(read_all([Path("r"), Path("m")]))
    (table,) = found.tables
    assert table.matched == 2
    for _, (ran, curved) in table.rows[:2]:
        assert ran == pytest.approx(curved, abs=1e-12)


def test_the_command_compares_and_writes_figures_for_print(stack: Path, command: Command) -> None:
    vary = ("--vary", "policy=lru,arc", "--vary", "capacity=256KiB,512KiB")
    for name, block in (("a", "4KiB"), ("b", "8KiB")):
        made = command(
            "compare", "stack.toml", *vary, "--set", f"cache.block={block}", "--out", name
        )
        assert made.status == 0, made.err
    printed = ("--figures", "svg,pdf,png", "--width", "column", "--into", "f")
    shown = command("report", "a", "b", *printed)
    assert shown.status == 0, shown.err
    assert re.search(r"cache.block +4KiB +8KiB", shown.out)
    assert "report: results/side-by-side/report.html" in shown.out
    drawings = sorted(Path("f").iterdir())
    assert {path.suffix for path in drawings} == {".svg", ".pdf", ".png"}
    column_points = 85 / 25.4 * 72
    for path in Path("f").glob("*.svg"):
        width = float(re.search(r'<svg[^>]*?\bwidth="([\d.]+)"', path.read_text())[1])
        assert abs(width - column_points) <= 3, path
        assert 'font-size="8px"' in path.read_text()
    for path in Path("f").glob("*.pdf"):
        box = re.search(rb"MediaBox ?\[ ?0 0 ([\d.]+)", path.read_bytes())
        assert abs(float(box[1]) - column_points) <= 3, path
    rows = list(csv.DictReader(io.StringIO(command("report", "a", "b", "--csv").out)))
    assert {row["result"] for row in rows} == {"a", "b"}
    assert all(float(row["value"]) >= 0 for row in rows if row["measure"] == "hit ratio")


def test_what_runs_on_two_traces_is_set_side_by_side(traces: Path, command: Command) -> None:
    for name in ("a", "b"):
        words = ("characterize", f"{name}.csv", "--every", "100", "--out", f"of-{name}")
        assert command(*words).status == 0
        document = json.loads(Path(f"of-{name}/characterize.json").read_text())
        fits_schema("CharacterizeAnswer", document)
        assert json.loads(command(*words[:4], "--json").out) == document
    cells = list(csv.DictReader(io.StringIO(command("report", "of-a", "of-b", "--csv").out)))
    told = {
        (row["result"], row["measure"]): float(row["value"])
        for row in cells
        if row["from"] == "all" and row["value"]
    }
    for name in ("a", "b"):
        total = characterize(f"{name}.csv", every="100").total
        assert told[f"of-{name}", "share of reads"] == total.read_share
        assert told[f"of-{name}", "working set"] == total.working_set_bytes
    assert (
        "characterize" in (command("report", "of-a").out, Path("of-a/report.html").read_text())[1]
    )
    refused = command("characterize", "b.csv", "--out", "of-a")
    assert refused.status == 2
    assert "found a result of a.csv, expected another folder" in refused.err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["report"], ["found no folder"]),
        (["report", "a", "--csv"], ["--csv", "one folder"]),
        (["report", "a", "--width", "column"], ["no `--figures`"]),
        (["report", "a", "--figures", "svg", "--width", "3mm"], ["--width", "40mm to 400mm"]),
        (["report", "a", "--figures", "svg", "--font", "99"], ["--font", "4 to 24"]),
        (["report", "a", "nowhere"], ["no such folder", "result folder"]),
        (["view", "nowhere"], ["nowhere: found no such folder"]),
    ],
)
def test_what_cannot_be_reported_is_said(
    folder: Path, command: Command, words: list[str], parts: list[str]
) -> None:
    shown = command(*words)
    assert shown.status == 2
    assert all(part in shown.err for part in parts), shown.err


def test_widths_have_names_and_millimetres() -> None:
    assert PrintStyle.of() is None
    assert PrintStyle.of("120mm") == PrintStyle(120.0, 8.0)
    assert PrintStyle.of(font=9) == PrintStyle(85.0, 9)
    assert PrintStyle.of("page", 7) == PrintStyle(178.0, 7)
