"""The package from Python: runs, frames, traces, errors.

For: the public names of `cachewright`. Must never know: the command line.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cachewright
from cachewright import tables, words
from cachewright.stack import toml_text


def test_a_stack_is_the_same_from_file_and_mapping(stack: Path) -> None:
    tenants = [{"name": name, "trace": f"{name}.csv"} for name in ("a", "b")]
    tables = {
        "name": "two",
        "cache": {"capacity": "512KiB", "policy": "lru"},
        "replay": {"windows": 10},
        "tenant": tenants,
    }
    assert cachewright.check(stack) == cachewright.check(tables)
    from_file, from_mapping = cachewright.run(stack), cachewright.run(tables)
    assert from_file.document == from_mapping.document


def test_frames_agree_with_each_other(stack: Path) -> None:
    vary = {"policy": ["lru", {"name": "s3-fifo", "small_share": 0.2}], "capacity": ["256KiB"]}
    result = cachewright.compare(stack, vary, out="r")
    assert result.varied == ["cache.policy", "cache.capacity"]
    assert result.cases["cache.policy"].to_list() == ["lru", "s3-fifo(small_share=0.2)"]
    assert result.cases["capacity_bytes"].to_list() == [256 << 10] * 2
    by_case = result.tenants.group_by("case").agg(pl.col("accesses", "hits").sum()).sort("case")
    assert by_case.equals(result.cases.select("case", "accesses", "hits"))
    windows = result.series.filter(pl.col("tenant") != "all")
    by_case = windows.group_by("case").agg(pl.col("accesses", "hits").sum()).sort("case")
    assert by_case["hits"].to_list() == result.cases["hits"].to_list()
    assert set(result.curves["tenant"]) == {"a", "b", "all"}
    assert result.curves["miss_ratio"].is_between(0, 1).all()
    assert result.workload["requests"].to_list() == [4000, 4000]
    again = cachewright.Result.load("r")
    assert again.cases.equals(result.cases)
    assert again.series.equals(result.series)


def test_windows_without_a_folder_are_the_same(stack: Path) -> None:
    inside, outside = cachewright.run(stack), cachewright.run(stack, out="r")
    assert inside.series.equals(outside.series)
    assert set(inside.series["state"]) == {"none"}


def test_states_of_tenants_are_words_in_the_series(stack: Path) -> None:
    result = cachewright.run(stack, settings={"partition": "equal"})
    own = result.series.filter(pl.col("tenant") != "all")
    assert set(own["state"]) <= {"demand", "stable"}
    for tenant in result.document["cases"][0]["tenants"]:
        states = own.filter(pl.col("tenant") == tenant["name"])["state"]
        assert tenant["states"]["demand"] == (states == "demand").mean()


def test_the_result_does_not_depend_on_threads(stack: Path) -> None:
    vary = {"policy": ["lru", "arc", "sieve", "lirs"]}
    one, two = (cachewright.compare(stack, vary, threads=n) for n in (1, 2))
    assert one.document == two.document


def test_simulate_takes_one_trace(traces: Path) -> None:
    result = cachewright.simulate("a.csv", "fifo", "100 blocks", cache={"write": "write-around"})
    case = result.cases.row(0, named=True)
    assert case["cache.write"] == "write-around"
    assert case["capacity_blocks"] == 100
    lru = cachewright.simulate("a.csv", "lru", "100%wss").cases.row(0, named=True)
    assert lru["misses"] == result.workload["distinct_blocks"][0]


def test_curves_agree_with_runs(traces: Path) -> None:
    curves = cachewright.mrc("a.csv", method="exact", sizes=["50 blocks", "200 blocks"], verify=2)
    points = curves.points.filter(pl.col("tenant") == curves.points["tenant"][0])
    for row in points.iter_rows(named=True):
        run = cachewright.simulate("a.csv", "lru", f"{row['size_blocks']} blocks").cases
        assert row["miss_ratio"] == pytest.approx(1 - run["hit_ratio"][0], abs=1e-12)
        assert row["size_bytes"] == row["size_blocks"] * 4096
    assert curves.verify["error"].abs().max() == 0


def test_curves_of_several_policies_stand_side_by_side(stack: Path) -> None:
    curves = cachewright.mrc(stack, ["lru", "sieve"], points=6)
    frame = curves.frame()
    assert frame.columns == ["tenant", "window", "size_blocks", "size_bytes", "lru", "sieve"]
    assert len(frame) == 3 * 6, "two tenants and all together on one grid"
    assert frame["window"].null_count() == len(frame)
    for policy in ("lru", "sieve"):
        own = curves.points.filter(pl.col("policy") == policy)
        assert frame[policy].to_list() == own["miss_ratio"].to_list()
        assert frame["size_blocks"].to_list() == own["size_blocks"].to_list()
    by_window = cachewright.mrc(stack, ["lru", "sieve"], points=4, windows=3).frame()
    assert by_window["window"].unique().sort().to_list() == [0, 1, 2]


def test_approximate_curves_carry_their_interval(traces: Path) -> None:
    points = cachewright.mrc("a.csv", method="shards", rate=0.3).points
    assert points["low"].null_count() == 0
    inside = (pl.col("low") <= pl.col("miss_ratio")) & (pl.col("miss_ratio") <= pl.col("high"))
    assert points.select(inside.all()).item()
    assert points.select(pl.col("low", "high").is_between(0, 1).all()).row(0) == (True, True)


def test_info_counts_a_trace(traces: Path) -> None:
    info = cachewright.info("a.csv")
    frame = cachewright.read_trace("a.csv")
    assert info.requests == len(frame) == 4000
    assert info.reads == (frame["op"] == "read").sum()
    assert info.read_bytes == frame.filter(pl.col("op") == "read")["length_bytes"].sum()


def test_traces_go_out_and_in_as_arrow(traces: Path) -> None:
    frame = cachewright.read_trace("a.csv")
    assert frame.columns == ["time_ns", "offset_bytes", "length_bytes", "op", "volume"]
    assert frame["volume"].unique().to_list() == ["1"]

    class Arrow:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return frame.__arrow_c_stream__(requested_schema)

    for number, source in enumerate([frame, Arrow(), [frame.head(100), frame.slice(100)]]):
        path = f"{number}.parquet"
        written = cachewright.write_trace(source, path)
        assert (written.requests, written.left_out) == (4000, 0)
        assert cachewright.read_trace(path).equals(frame)
    assert cachewright.read_trace("a.csv", first=10).equals(frame.head(10))
    cachewright.write_trace(frame, "back.csv")
    assert Path("back.csv").read_text() == Path("a.csv").read_text()


def test_a_wrong_frame_is_refused_and_leaves_no_file(folder: Path) -> None:
    good = {"time_ns": [1], "offset_bytes": [0], "length_bytes": [1], "op": ["read"]}
    for change, said in (
        ({"op": ["reed"]}, "`reed`"),
        ({"op": [9]}, "found 9"),
        ({"time_ns": [-1]}, "time_ns"),
        ({"time_ns": [None]}, "missing"),
        ({"offset_bytes": None}, "expected also `offset_bytes`"),
    ):
        columns = {key: item for key, item in (good | change).items() if item is not None}
        with pytest.raises(cachewright.SpecError, match=said):
            cachewright.write_trace(pl.DataFrame(columns), "t.parquet")
        assert list(folder.iterdir()) == []


def test_errors_form_a_tree_and_can_be_sent(folder: Path) -> None:
    with pytest.raises(cachewright.TraceError, match="nowhere"):
        cachewright.read_trace("nowhere.csv")
    with pytest.raises(cachewright.SpecError, match="`lruu`"):
        cachewright.check({"cache": {"policy": "lruu", "capacity": "1MiB"}, "tenant": []})
    for kind in (cachewright.SpecError, cachewright.TraceError, cachewright.RunError):
        assert issubclass(kind, cachewright.Error)
        assert str(pickle.loads(pickle.dumps(kind("x")))) == "x"
    with pytest.raises(cachewright.SpecError, match="list"):
        cachewright.compare({}, {"policy": "lru"})
    with pytest.raises(cachewright.SpecError, match="type object"):
        cachewright.check({"cache": object()})


def test_stages_are_listed_by_name() -> None:
    schemes = {entry.name: entry for entry in cachewright.list("schemes")}
    assert schemes["oc-cache"].keys["cache.layout"] == "on-demand"
    assert (schemes["shiro"].spec, schemes["shiro-x"].spec) == ("specs/shiro.toml", "")
    assert {entry.source for entry in schemes.values() if not entry.spec} == {"ours"}
    with pytest.raises(cachewright.SpecError, match=r"found `polices`.*nearest is `policies`"):
        cachewright.list("polices")


def test_progress_cancels(folder: Path) -> None:
    lines = (f"1,R,{(n * 7919) % 99991 * 4096},4096,{n}" for n in range(400_000))
    Path("long.csv").write_text("\n".join(lines) + "\n")
    known = cachewright.list("policies")
    policies = [entry.name for entry in known if "model" not in entry.needs]
    tenant = {"name": "t", "trace": "long.csv"}
    stack = {"cache": {"capacity": "1%wss"}, "tenant": [tenant]}
    seen: list[tuple[str, int, int | None]] = []

    def stop(stage: str, done: int, total: int | None) -> bool:
        seen.append((stage, done, total))
        return False

    with pytest.raises(cachewright.RunError, match="cancelled"):
        cachewright.compare(stack, {"policy": policies * 4}, progress=stop)
    assert len(seen) == 1

    def fail(stage: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cachewright.compare(stack, {"policy": policies * 4}, progress=fail)


keys = st.text(min_size=1, max_size=8).filter(lambda key: key.isprintable())
leaves = st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=12)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
)


@given(st.dictionaries(keys, values, max_size=4))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_mappings_become_toml(tables: dict[str, Any]) -> None:
    import tomllib

    assert tomllib.loads(toml_text(tables)) == tables


@given(st.integers(0, 2**60))
def test_sizes_are_short_and_near(size: int) -> None:
    text = words.size(size)
    number = float(text.rstrip("BKMGTi").replace(",", ""))
    scale = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
    unit = text.lstrip("0123456789.,")
    assert number * scale[unit] == pytest.approx(size, rel=0.006)


def test_words_read_well() -> None:
    assert [words.duration(t) for t in (0, 999, 1500, 2.5e9, 90e9)] == [
        "0ns", "999ns", "1.5us", "2.5s", "1.5min",
    ]  # fmt: skip
    assert (words.duration(999_999_999), words.size((1 << 20) - 1)) == ("1s", "1MiB")
    assert words.count(1234567) == "1,234,567"
    assert words.setting('{ name = "s3-fifo", small_share = 0.2 }') == "s3-fifo(small_share=0.2)"
    assert tables.best_index([0.1, 0.3, None, 0.3], highest=True) == {1, 3}
    assert tables.best_index([0.2, 0.2], highest=True) == set()
