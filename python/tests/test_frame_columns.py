"""What the columns of a frame may hold: typed times, whole numbers however they are held, words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cachewright as cw

SECONDS = (0, 1, 600)
START = dt.datetime(2025, 1, 1)
DAY_NS = 86_400 * 10**9
ROWS = pl.DataFrame(
    {
        "time_ns": [second * 10**9 for second in SECONDS],
        "offset_bytes": [0, 4096, 0],
        "length_bytes": [4096] * 3,
        "op": ["read", "write", "read"],
    }
)


def frame_with(name: str, values: Any, **how: Any) -> pl.DataFrame:
    return ROWS.with_columns(pl.Series(name, values, **how))


def dates() -> pl.Series:
    return pl.Series("time_ns", [START + dt.timedelta(seconds=second) for second in SECONDS])


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_a_typed_time_is_nanoseconds_since_1970_in_any_unit_and_zone(
    unit: Any, zone: str | None
) -> None:
    times = dates().dt.cast_time_unit(unit)
    if zone is not None:
        times = times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    rows = cw.read_trace(ROWS.with_columns(times))
    since_1970 = int(START.replace(tzinfo=dt.UTC).timestamp()) * 10**9
    assert rows["time_ns"].to_list() == [since_1970 + s * 10**9 for s in SECONDS]
    assert cw.info(ROWS.with_columns(times)).span_ns == 600 * 10**9


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_a_duration_is_nanoseconds_in_any_unit(unit: Any) -> None:
    times = (dates() - START).dt.cast_time_unit(unit)
    assert cw.read_trace(ROWS.with_columns(times))["time_ns"].to_list() == [0, 10**9, 600 * 10**9]


def test_a_date_and_a_time_of_day_are_nanoseconds() -> None:
    days = frame_with("time_ns", [dt.date(1970, 1, day) for day in (1, 2, 3)])
    assert cw.read_trace(days)["time_ns"].to_list() == [0, DAY_NS, 2 * DAY_NS]
    clock = frame_with("time_ns", [dt.time(0, 0, 1), dt.time(0, 0, 2), dt.time(0, 10, 1)])
    assert cw.info(clock).span_ns == 600 * 10**9


VERBS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    "info": lambda frame, _: cw.info(frame),
    "simulate": lambda frame, _: cw.simulate(frame, capacity="64KiB"),
    "mrc": lambda frame, _: cw.mrc(frame),
    "read_trace": lambda frame, _: cw.read_trace(frame),
    "write_trace": lambda frame, folder: cw.write_trace(frame, folder / "t.parquet"),
}
REFUSED = {
    "fraction": (frame_with("offset_bytes", [4096.0, 4095.5, 8191.9]), "row 2, `offset_bytes`: "),
    "no number": (frame_with("length_bytes", [1.0, 2.0, float("nan")]), "row 3, `length_bytes`: "),
    "decimal": (frame_with("offset_bytes", [Decimal("0.5")] * 3), "row 1, `offset_bytes`: "),
    "boolean": (frame_with("length_bytes", [True] * 3), "a column of type Boolean"),
    "date as offset": (frame_with("offset_bytes", dates()), "a column of type Datetime"),
    "missing": (frame_with("offset_bytes", [0, None, 1]), "row 2, `offset_bytes`: found a missing"),
    "negative": (frame_with("offset_bytes", [0, 0, -1]), "row 3, `offset_bytes`: found -1"),
    "before 1970": (frame_with("time_ns", [dt.datetime(1950, 1, 1)] * 3), "found 1950-01-01"),
    "after 2554": (frame_with("time_ns", [dt.datetime(9999, 1, 1)] * 3), "found 9999-01-01"),
    "boolean op": (frame_with("op", [True] * 3), "a column of type Boolean"),
    "large op": (frame_with("op", [0, 256, 1]), "row 2, `op`: found 256"),
    "missing op": (frame_with("op", ["read", None, "read"]), "row 2, `op`: found a missing"),
    "other word": (frame_with("op", ["read", "x", "read"]), "row 2, `op`: found `x`"),
    "missing volume": (frame_with("volume", ["a", None, "a"]), "row 2, `volume`: found a missing"),
    "volume list": (frame_with("volume", [[1]] * 3), "a column of type List"),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("case", REFUSED)
def test_a_value_that_would_be_cut_off_is_refused_by_row_everywhere(
    verb: str, case: str, tmp_path: Path
) -> None:
    frame, message = REFUSED[case]
    with pytest.raises(cw.SpecError) as refused:
        VERBS[verb](frame, tmp_path)
    assert message in str(refused.value)
    assert not (tmp_path / "t.parquet").exists()


def test_whole_numbers_held_as_something_else_are_whole_numbers() -> None:
    for values in ([8192.0, 4096.0, 0.0], [Decimal("8192.0"), Decimal(4096), Decimal(0)]):
        assert cw.read_trace(frame_with("offset_bytes", values))["offset_bytes"][0] == 8192
    assert cw.read_trace(frame_with("op", [0.0, 1.0, 0.0]))["op"].to_list()[1] == "write"
    assert cw.read_trace(frame_with("volume", [1.0, 2.0, 1.0]))["volume"].to_list()[0] == "1"


def test_operations_may_be_the_words_of_the_csv_format() -> None:
    rows = cw.read_trace(frame_with("op", ["R", "Discard", "fsync"], dtype=pl.Categorical))
    assert rows["op"].to_list() == ["read", "trim", "flush"]


def test_bad_rows_of_a_frame_are_counted_where_they_are_to_be_skipped() -> None:
    frame = frame_with("offset_bytes", [0.0, None, 4095.5])
    info = cw.info(cw.Trace(frame, on_bad_record="skip"))
    assert (info.requests, info.skipped_bad) == (1, 2)


def test_a_column_map_names_the_columns_of_a_frame() -> None:
    frame = ROWS.rename({"time_ns": "start", "offset_bytes": "lba", "length_bytes": "n"})
    options = {
        "columns": "time=start,op=op,offset=lba,length=n",
        "time_unit": "ns",
        "offset_unit": "sector",
        "length_unit": "B",
    }
    rows = cw.read_trace(cw.Trace(frame, options=options))
    assert rows["offset_bytes"].to_list() == [0, 4096 * 512, 0]


def test_the_products_own_frame_is_readable_as_parquet(tmp_path: Path) -> None:
    frame = frame_with("volume", ["a", "b", "a"])
    rows = cw.read_trace(frame)
    rows.write_parquet(tmp_path / "saved.parquet")
    assert cw.read_trace(tmp_path / "saved.parquet").equals(rows)


SECTORS = pl.DataFrame(
    {
        "time_s": [0.0, 1.5],
        "op": ["R", "write"],
        "offset_sectors": [8, 16],
        "length_sectors": [8, 1],
    }
)


def test_columns_with_other_units_are_read_as_in_a_csv_header(tmp_path: Path) -> None:
    SECTORS.write_csv(tmp_path / "t.csv")
    rows = cw.read_trace(SECTORS)
    assert rows.rows() == [(0, 4096, 4096, "read", "0"), (1_500_000_000, 8192, 512, "write", "0")]
    assert rows.equals(cw.read_trace(tmp_path / "t.csv"))
    cw.write_trace(SECTORS, tmp_path / "t.parquet")
    assert rows.equals(cw.read_trace(tmp_path / "t.parquet"))
    with pytest.raises(cw.SpecError, match=r"^frame: line 2, column 2: found `op x`"):
        cw.read_trace(SECTORS.with_columns(op=pl.Series(["R", "x"])))


@pytest.mark.parametrize(
    ("frame", "missing"),
    [
        (ROWS.select("op"), "`time_ns`, `offset_bytes`, `length_bytes`, or"),
        (SECTORS.drop("time_s"), "`time_ns`, `offset_bytes`, `length_bytes`, or"),
        (ROWS.drop("time_ns"), "`time_ns`, or"),
        (ROWS.drop("op"), "`op`, or"),
    ],
)
def test_all_missing_columns_are_named(frame: pl.DataFrame, missing: str) -> None:
    with pytest.raises(cw.SpecError, match=f"expected also {missing} names with another unit"):
        cw.read_trace(frame)


def test_a_list_where_a_mapping_belongs_is_refused_by_keyword() -> None:
    wrong: Any = ["lru"]
    for keyword, said in (("policies", 'policy=."lru", "arc".'), ("settings", "such as {")):
        with pytest.raises(cw.SpecError, match=f"`{keyword}`: found .'lru'., .*{said}"):
            cw.compare(ROWS, **{keyword: wrong})
    with pytest.raises(cw.SpecError, match=r"`vary`: found .'lru'., expected a mapping"):
        cw.compare(ROWS, wrong)
