"""What notebooks show of answers, and answers as frames and charts of other libraries."""

from __future__ import annotations

import sys
from pathlib import Path

import altair
import numpy as np
import polars as pl
import pytest

import cachewright
from cachewright import SpecError
from cachewright.live import observing


@pytest.fixture(scope="module")
def trace() -> pl.DataFrame:
    """Return a loop of 60 blocks with hot ones between."""
    blocks = [block for at in range(600) for block in (at % 60, 100 + at % 3)]
    return pl.DataFrame(
        {
            "time_ns": [20_000_000 * at for at in range(len(blocks))],
            "offset_bytes": [4096 * block for block in blocks],
            "length_bytes": [4096] * len(blocks),
            "op": ["read"] * len(blocks),
        }
    )


def test_a_comparison_shows_its_conclusion_its_table_and_a_figure(trace: pl.DataFrame) -> None:
    result = cachewright.compare(trace, {"policy": ["lru", "arc"], "capacity": ["80KiB", "1MiB"]})
    shown = result._repr_html_()
    assert "At 1MiB use lru: hit ratio 0.9475" in shown
    assert shown.count("<table>") == 1
    assert shown.count("<svg ") == 1
    assert "<script" not in shown, "notebooks do not run scripts of others"
    assert isinstance(result.chart("hit-ratio-by-policy"), altair.TopLevelMixin)
    with pytest.raises(SpecError, match="chart: found `pie`, expected one of hit-ratio-by-cap"):
        result.chart("pie")


def test_one_case_shows_its_tenants(trace: pl.DataFrame) -> None:
    shown = cachewright.simulate(trace)._repr_html_()
    assert "<table>" in shown
    assert "use lru" not in shown, "there was nothing to choose"


def test_curves_show_their_table_and_figure(trace: pl.DataFrame) -> None:
    curves = cachewright.mrc(trace)
    shown = curves._repr_html_()
    assert "<table>" in shown
    assert "<svg " in shown
    assert isinstance(curves.chart(), altair.TopLevelMixin)


def test_frames_are_of_pandas_without_pyarrow(trace: pl.DataFrame) -> None:
    pandas = pytest.importorskip("pandas")
    result = cachewright.simulate(trace, capacity="80KiB")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["hits"].tolist() == [one.total.hits for one in result.answer.cases]
    given = pandas.DataFrame(trace.to_dict(as_series=False))
    again = cachewright.simulate(given, capacity="80KiB")
    assert again.answer.cases[0].total == result.answer.cases[0].total
    typed = given.assign(offset_bytes=given["offset_bytes"].to_numpy(np.uint64))
    assert cachewright.info(typed).requests == len(trace)


def test_pandas_that_is_absent_is_named(
    trace: pl.DataFrame, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = cachewright.simulate(trace, capacity="80KiB")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SpecError, match="found no pandas, expected it: `pip install pandas`"):
        result.to_pandas()


def test_a_trace_shows_what_it_holds_and_its_rate(trace: pl.DataFrame) -> None:
    shown = cachewright.info(trace)._repr_html_()
    assert "1,200 requests in 24s, 100.0% of them reads; working set 252KiB" in shown
    assert shown.count("<table>") == 1
    assert "<svg " in shown


def test_a_plan_shows_its_answer_its_tables_and_its_sizes(trace: pl.DataFrame) -> None:
    tenant = {"name": "t", "trace": trace, "goal_hit_ratio": 0.9}
    stack = {
        "name": "s",
        "cache": {"capacity": "1MiB"},
        "tenant": [tenant, {**tenant, "name": "u"}],
    }
    shown = cachewright.plan(stack, ["equal", "shared"])._repr_html_()
    assert "is the smallest cache that meets 2 goals" in shown
    assert shown.count("<table>") == 2
    assert "<svg " in shown


def test_keys_of_the_cache_are_keywords_with_one_value_or_a_list(trace: pl.DataFrame) -> None:
    result = cachewright.compare(trace, policy=["lru", "arc"], capacity="80KiB")
    assert len(result.answer.cases) == 2
    assert {case.settings["cache.policy"] for case in result.answer.cases} == {"lru", "arc"}
    with pytest.raises(SpecError, match="found it in `vary` and as a keyword"):
        cachewright.compare(trace, {"policy": ["lru"]}, policy="arc")


def test_figures_fit_into_a_narrow_cell(trace: pl.DataFrame) -> None:
    for shown in (cachewright.mrc(trace)._repr_html_(), cachewright.info(trace)._repr_html_()):
        assert '<svg style="max-width: 100%; height: auto" ' in shown


def test_a_workload_and_a_trace_are_shown(trace: pl.DataFrame, tmp_path: Path) -> None:
    found = observing.workload(trace)
    assert "<table>" in found._repr_html_()
    assert "A cache of " in found._repr_html_()
    trace.write_csv(tmp_path / "t.csv")
    shown = cachewright.Trace(tmp_path / "t.csv")._repr_html_()
    assert "t.csv" in shown
    assert "the first 10 requests" in shown
    assert shown.count("<tr>") == 11
    gone = cachewright.Trace(tmp_path / "gone.csv")._repr_html_()
    assert "gone.csv" in gone
    assert "no such file" in gone.lower()
