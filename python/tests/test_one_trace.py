"""One way to name a trace everywhere: a path, a `Trace`, a frame; and a lazy frame of a trace.

For: `cachewright.traces`, `scan_trace`. Must never know: the command line.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cachewright
from cachewright import Trace, traces
from cachewright.documents import values

MATRIX = (
    "time_us,volume,op,offset_bytes,length_bytes\n0,a,W,0,4096\n10,a,R,0,4096\n20,b,T,0,4096\n"
    "30,b,F,0,0\n40,b,R,8192,4096\n50,a,R,4096,8192\n"
)


def misses(trace: Any) -> Any:
    result = cachewright.simulate(trace, "lru", "100 blocks")
    return result.cases.select("accesses", "hits", "capacity_blocks").rows()


def curve(trace: Any) -> Any:
    return cachewright.mrc(trace, method="exact", sizes=["50 blocks", "200 blocks"]).points.select(
        "size_blocks", "miss_ratio"
    )


def run(trace: Any) -> Any:
    result = cachewright.run(trace, settings={"capacity": "100 blocks"})
    return result.cases.select("accesses", "hits", "capacity_blocks").rows()


def compare(trace: Any) -> Any:
    vary = {"policy": ["lru", "arc"], "capacity": ["50 blocks", "100 blocks"]}
    return cachewright.compare(trace, vary).cases["hits"].to_list()


def amplification(trace: Any) -> Any:
    found = cachewright.wa(trace, ["none", "sepbit"], op=["28%"], superblock="16KiB", reserve=2)
    return [case["write_amplification"] for case in found.document["cases"]]


def facts(trace: Any) -> Any:
    found = cachewright.info(trace)
    return {key: one for key, one in values(found).items() if key not in ("path", "format")}


def character(trace: Any) -> Any:
    found = cachewright.characterize(trace, every="1s")
    return {key: one for key, one in values(found).items() if key not in ("path", "format")}


def rows(trace: Any) -> Any:
    return cachewright.read_trace(trace).rows()


def lazy_rows(trace: Any) -> Any:
    return cachewright.scan_trace(trace).collect().rows()


USES = [misses, curve, run, compare, amplification, facts, character, rows, lazy_rows]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_every_call_takes_a_trace_in_every_way(traces: Path, use: Callable[[Any], Any]) -> None:
    expected = use("a.csv")
    frame = cachewright.read_trace("a.csv")
    ways = {
        "path": traces / "a.csv",
        "Trace": Trace("a.csv", format="alibaba", on_bad_record="skip", volume="1"),
        "frame": frame,
        "lazy frame": frame.lazy(),
        "scan": cachewright.scan_trace("a.csv"),
        "Trace of a frame": Trace(frame, volume="1"),
    }
    for way, trace in ways.items():
        found = use(trace)
        assert found.equals(expected) if isinstance(found, pl.DataFrame) else found == expected, way


def test_tenants_of_a_mapping_may_be_frames(traces: Path) -> None:
    frame = cachewright.read_trace("a.csv")

    def stack(first: Any, second: Any) -> dict[str, Any]:
        tenants = [{"name": "one", "trace": first}, {"name": "two", "trace": second}]
        return {"cache": {"capacity": "100 blocks", "partition": "equal"}, "tenant": tenants}

    by_path = cachewright.run(stack("a.csv", "b.csv")).tenants
    mixed = cachewright.run(stack(frame, Trace("b.csv", format="alibaba"))).tenants
    assert mixed.equals(by_path)
    two_frames = cachewright.run(stack(frame, cachewright.read_trace("b.csv"))).tenants
    assert two_frames.equals(by_path)


def test_a_frame_leaves_no_file_and_no_descriptor(traces: Path) -> None:
    frame = cachewright.read_trace("a.csv")
    before = set(os.listdir("/proc/self/fd"))
    results = [cachewright.simulate(frame, capacity="64 blocks").document for _ in range(2)]
    assert results[0] == results[1]
    assert set(os.listdir("/proc/self/fd")) == before
    assert {path.name for path in traces.iterdir()} == {"a.csv", "b.csv"}


def test_answers_about_a_frame_are_kept(traces: Path) -> None:
    frame = cachewright.read_trace("a.csv")
    first = cachewright.run(frame, settings={"capacity": "64 blocks"}, out="r")
    again = cachewright.run(frame, settings={"capacity": "64 blocks"}, out="r")
    other = cachewright.run(frame.head(2000), settings={"capacity": "64 blocks"}, out="r")
    assert [one.document.get("reused", 0) for one in (first, again, other)] == [0, 1, 0]


def test_volumes_of_a_frame_keep_their_names(folder: Path) -> None:
    Path("m.csv").write_text(MATRIX)
    frame = cachewright.read_trace("m.csv")
    names = [one.name for one in cachewright.info(frame).volumes]
    assert names == ["a", "b"]
    assert cachewright.info(Trace(frame, volume="b")).requests == 3
    assert cachewright.info(frame).path == "frame"
    assert cachewright.info("m.csv").path == "m.csv"


@pytest.mark.parametrize(
    ("trace", "said"),
    [
        (5, "type int, expected a trace"),
        (None, "type NoneType, expected a trace"),
        (pl.DataFrame({"time_ns": [1]}), "expected also `offset_bytes`"),
        (
            pl.DataFrame(
                {"time_ns": [], "offset_bytes": [], "length_bytes": [], "op": []},
                schema_overrides={"op": pl.UInt8},
            ),
            "frame without a row",
        ),
        (Trace(pl.DataFrame({"time_ns": [1]}), format="csv"), "format `csv` of a frame"),
        (Trace("a.csv", format="alibba"), "alibaba"),
        (Trace("a.csv", on_bad_record="maybe"), "maybe.*fail.*skip"),
        (Trace("a.csv", options={"x": "1"}), "expected an option of format"),
    ],
    ids=range(8),
)
def test_what_is_no_trace_is_refused(traces: Path, trace: Any, said: str) -> None:
    for use in (cachewright.info, cachewright.simulate, cachewright.characterize):
        with pytest.raises(cachewright.SpecError, match=said):
            use(trace)


def test_a_trace_is_no_stack(traces: Path) -> None:
    with pytest.raises(cachewright.SpecError, match="found a trace, expected a stack"):
        cachewright.check(Trace("a.csv"))  # type: ignore[arg-type]


class Reads:
    """Counts what the readers that are opened are asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = self.requests = 0
        opening = traces.open_trace

        def counted(*arguments: Any) -> Any:
            self.opened += 1
            return Reader(opening(*arguments), self)

        monkeypatch.setattr("cachewright.traces.open_trace", counted)


class Reader:
    def __init__(self, reader: Any, counts: Reads) -> None:
        self.reader, self.counts = reader, counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def read(self, limit: int) -> Any:
        columns = self.reader.read(limit)
        self.counts.requests += len(columns[0])
        return columns


def test_scanning_reads_nothing_before_it_is_collected(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("m.csv").write_text(MATRIX)
    reads = Reads(monkeypatch)
    lazy = cachewright.scan_trace("m.csv")
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == cachewright.read_trace("m.csv", first=1).schema
    reads.requests = 0
    query = lazy.filter(pl.col("op") == "read").select(pl.col("length_bytes").sum())
    assert reads.requests == 0
    assert query.collect().item() == 4096 + 4096 + 8192
    assert reads.requests == 6


def test_scanning_ends_with_the_last_row_that_is_taken(
    traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = cachewright.read_trace("a.csv")
    reads = Reads(monkeypatch)
    lazy = cachewright.scan_trace("a.csv", batch=100)
    assert lazy.head(10).collect().equals(frame.head(10))
    assert reads.requests == 10
    reads.requests = 0
    writes = frame.filter(pl.col("op") == "write")
    assert lazy.filter(pl.col("op") == "write").head(20).collect().equals(writes.head(20))
    assert reads.requests < 1000
    assert lazy.slice(150, 7).collect().equals(frame.slice(150, 7))


def test_scanning_makes_only_the_columns_of_the_query(
    traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachewright import traces as frames

    made: set[str] = set()
    series = frames._series

    def noted(name: str, *arguments: Any) -> Any:
        made.add(name)
        return series(name, *arguments)

    frame = cachewright.read_trace("a.csv")
    monkeypatch.setattr(frames, "_series", noted)
    lazy = cachewright.scan_trace("a.csv", batch=1000)
    query = lazy.filter(pl.col("offset_bytes") < 409600).select("length_bytes")
    expected = frame.filter(pl.col("offset_bytes") < 409600).select("length_bytes")
    assert query.collect().equals(expected)
    assert made == {"offset_bytes", "length_bytes"}
    assert lazy.select(pl.len()).collect().item() == len(frame)


def test_scanning_agrees_with_reading(folder: Path) -> None:
    Path("m.csv").write_text(MATRIX)
    frame = cachewright.read_trace("m.csv")
    for batch in (1, 2, 4, 100):
        lazy = cachewright.scan_trace("m.csv", batch=batch)
        assert lazy.collect().equals(frame)
        assert lazy.collect(engine="streaming").equals(frame)
        by_volume = lazy.group_by("volume").agg(pl.len()).sort(pl.col("volume").cast(pl.String))
        assert by_volume.collect()["len"].to_list() == [3, 3]
        for condition in (
            pl.col("volume") == "b",
            pl.col("op").is_in(["trim", "flush"]),
            pl.col("time_ns").is_between(10_000, 40_000),
        ):
            assert lazy.filter(condition).collect().equals(frame.filter(condition))
            found = lazy.filter(condition).select("time_ns").head(1).collect()
            assert found.equals(frame.filter(condition).select("time_ns").head(1))
    cachewright.write_trace(cachewright.scan_trace("m.csv"), "out.parquet")
    assert cachewright.read_trace("out.parquet").equals(frame)


def test_a_bad_record_ends_a_scan_with_its_place(folder: Path) -> None:
    Path("bad.csv").write_text(MATRIX + "60,a,R,-1,4096\n")
    lazy = cachewright.scan_trace("bad.csv")
    with pytest.raises(cachewright.TraceError, match=r"bad\.csv: line 8, column 4"):
        lazy.collect()
    with pytest.raises(cachewright.TraceError, match="no such file"):
        cachewright.scan_trace("nowhere.csv")
    with pytest.raises(cachewright.SpecError, match="`batch`: found 0"):
        cachewright.scan_trace("bad.csv", batch=0)
