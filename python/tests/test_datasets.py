"""A dataset's manifest says what its files hold, and its conversion holds the same requests.

For: `cachewright.fleet.datasets`, `dataset index` and `dataset convert`. Must never know: engines.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import Command, trace_text

import cachewright
from cachewright import SpecError, Trace
from cachewright.fleet.datasets import convert, distinct, files, manifest, reduce, volumes
from cachewright.fleet.job import How
from cachewright.fleet.over import needs_future

needs_fsspec = pytest.mark.skipif(
    importlib.util.find_spec("fsspec") is None,
    reason="fsspec is not installed (pip install 'cachewright[fleet]')",
)
READING = manifest.Reading()


@pytest.fixture
def dataset(traces: Path) -> Path:
    """Return a folder of a trace, one of two volumes, a damaged one and a text."""
    folder = traces / "set"
    (folder / "below").mkdir(parents=True)
    (traces / "a.csv").rename(folder / "a.csv")
    lines = (trace_text(2) + trace_text(3)).splitlines()
    lines.sort(key=lambda line: int(line.rsplit(",", 1)[1]))
    (folder / "below" / "two.csv").write_text("\n".join(lines) + "\n")
    (folder / "notes.md").write_text("# notes\n")
    (folder / ".hidden.csv").write_text(trace_text(9))
    (folder / "README.md").write_text("Traces of two volumes.\n")
    (folder / "below" / "License.txt").write_text("Public domain.\n")
    return folder


def test_a_manifest_says_what_each_volume_holds(dataset: Path) -> None:
    found = manifest.index("set")
    frame = manifest.read(dataset / "manifest.parquet")
    assert frame.equals(found.rows)
    assert frame["path"].to_list() == [
        "set/a.csv", "set/below/two.csv", "set/below/two.csv", "set/notes.md",
    ]  # fmt: skip
    assert [name for name, _ in found.failed] == ["set/notes.md"]
    for row in frame.filter(pl.col("error").is_null()).to_dicts():
        info = cachewright.info(Trace(row["path"], volume=row["volume"]))
        assert row["requests"] == info.requests
        assert (row["reads"], row["writes"]) == (info.reads, info.writes)
        assert (row["read_bytes"], row["write_bytes"]) == (info.read_bytes, info.write_bytes)
        assert row["read_share"] == info.read_share
        assert row["working_set_bytes"] == info.working_set_bytes
        assert row["working_set_exact"]
        assert row["span_ns"] == info.span_ns
        assert row["format"] == info.format


def test_an_index_reads_only_what_has_changed(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.index("set", how=How(workers=1))
    journal = dataset / "manifest.parquet.journal"
    lines = journal.read_bytes().count(b"\n")
    before = (dataset / "manifest.parquet").read_bytes()
    manifest.index("set", how=How(workers=1))
    assert journal.read_bytes().count(b"\n") == lines == 3
    assert (dataset / "manifest.parquet").read_bytes() == before
    (dataset / "notes.md").write_text(trace_text(4))
    found = manifest.index("set", how=How(workers=1))
    assert journal.read_bytes().count(b"\n") == lines + 1
    assert not found.failed
    assert found.rows.height == 4


def test_volumes_have_short_names_where_these_are_unique(dataset: Path) -> None:
    found = volumes.open_dataset("set", Path("out"), reading=READING, how=How())
    assert [one.name for one in found.volumes] == ["a", "two/2", "two/3"]
    (dataset / "below" / "a.csv").write_text(trace_text(5))
    found = volumes.open_dataset("set", Path("out"), reading=READING, how=How())
    names = ["set/a.csv#1", "set/below/a.csv#5", "set/below/two.csv#2", "set/below/two.csv#3"]
    assert [one.name for one in found.volumes] == names


@pytest.mark.parametrize("every_ns", [None, 700_000_000])
def test_a_conversion_holds_the_same_requests(dataset: Path, every_ns: int | None) -> None:
    found = convert.convert("set", Path("out"), every_ns=every_ns, how=How(workers=1))
    assert [name for name, _ in found.unread] == ["set/notes.md"]
    parts = 3 if every_ns is None else 3 * 6
    assert found.parts == found.manifest.rows.height == parts
    listed = [file.path for file in files.found("out")]
    assert all("/volume=" in path for path in listed), "its own manifests are no traces"
    opened = volumes.open_dataset("out", Path("x"), reading=READING, how=How())
    assert [one.name for one in opened.volumes] == ["1", "2", "3"]
    for volume in opened.volumes:
        source = "set/a.csv" if volume.name == "1" else "set/below/two.csv"
        expected = cachewright.read_trace(Trace(source, volume=volume.name))
        with volumes.trace_of(volume.paths, volume.volume, READING.plain()) as trace:
            assert cachewright.read_trace(trace).equals(expected)


def test_a_file_of_many_volumes_is_read_as_often_as_the_writers_memory_asks(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "ROWS", 5000)
    assert [sorted(names) for names in convert._passes({"a": 3000, "b": 3000, "c": 10})] == [
        ["a"], ["b", "c"],
    ]  # fmt: skip
    given = ("set/below/two.csv", "f", {"2": 4000, "3": 4000})
    assert convert.file_parts(*given, "out", None, None, "fail", {}) == 2
    found = sorted(Path("out").glob("*/*.parquet"))
    assert [cachewright.info(path).requests for path in found] == [4000, 4000]


def test_times_that_run_backwards_stay_in_their_order(folder: Path) -> None:
    times = [0, 5, 12, 9, 14, 25, 3, 31]
    lines = [f"1,R,{at * 4096},4096,{time}" for at, time in enumerate(times)]
    Path("back.csv").write_text("\n".join(lines) + "\n")
    expected = cachewright.read_trace("back.csv")
    convert.convert("back.csv", Path("out"), every_ns=10_000, how=How(workers=1))
    found = volumes.open_dataset("out", Path("x"), reading=READING, how=How()).volumes[0]
    assert len(found.paths) == 4
    with volumes.trace_of(found.paths, None, READING.plain()) as trace:
        assert cachewright.read_trace(trace).equals(expected)


def test_parts_that_overlap_in_time_are_refused(traces: Path) -> None:
    Path("x").mkdir()
    (traces / "a.csv").rename("x/a.csv")
    Path("x/b.csv").write_text(trace_text(1))
    convert.convert("x", Path("out"), how=How(workers=1))
    found = volumes.open_dataset("out", Path("y"), reading=READING, how=How()).volumes[0]
    with (
        pytest.raises(SpecError, match="begins before that of another file ends"),
        volumes.trace_of(found.paths, None, READING.plain()),
    ):
        pass


@needs_fsspec
def test_a_url_is_a_dataset(dataset: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    with memory.open("/bucket/a.csv", "wb") as file:
        file.write((dataset / "a.csv").read_bytes())
    (one,) = files.found("memory:/bucket/*.csv")
    assert one.path in {"memory:///bucket/a.csv", "memory://bucket/a.csv"}
    (row,) = manifest.file_rows(one.path, one.size_bytes, one.changed, **READING.plain())
    (same,) = manifest.file_rows("set/a.csv", 0, "", **READING.plain())
    beside = {"path", "bytes", "changed"}
    assert {k: v for k, v in row.items() if k not in beside} == {
        k: v for k, v in same.items() if k not in beside
    }
    assert row["bytes"] == (dataset / "a.csv").stat().st_size


@needs_fsspec
def test_a_file_url_is_indexed_and_read_like_its_folder(dataset: Path, command: Command) -> None:
    url = f"file://{dataset}"
    refused = command("dataset", "index", url, "-q")
    assert refused.status == 2
    assert "expected `--out FILE.parquet`" in refused.err
    assert command("dataset", "index", url, "--out", "m.parquet", "-q").status == 0
    frame = manifest.read(Path("m.parquet"))
    assert frame["requests"].sum() == 12_000
    assert all(path.startswith("file://") for path in frame["path"])
    # One file is no trace.
    assert command("mrc", url, "--out", "remote", "-q").status == 1
    assert command("mrc", "set", "--out", "here", "-q").status == 1
    remote = Path("remote/rows.parquet").read_bytes()
    assert remote == Path("here/rows.parquet").read_bytes()


def test_a_file_of_many_volumes_is_noted_and_its_page_has_the_busiest(
    folder: Path, command: Command
) -> None:
    lines = [
        f"{volume},R,{4096 * at},4096,{1000 * at + volume}"
        for at in range(8)
        for volume in range(101)
        if volume or at == 0
    ]
    Path("many.csv").write_text("\n".join(lines) + "\n")
    found = command("characterize", "many.csv", "--engine", "local", "--workers", "1", "--out", "o")
    assert found.status == 0, found.err
    said = "many.csv: 101 volumes, for each of which the file is read again; `dataset convert`"
    assert said in found.err
    assert "61 more are in the files" in found.out
    page = Path("o/report.html").read_text()
    assert "the busiest 100 of 101 rows" in page
    assert "<td>many/0</td>" not in page
    assert "rows.parquet has all volumes" in page


def test_commands_say_what_a_dataset_holds(dataset: Path, command: Command) -> None:
    found = command("dataset", "index", "set")
    assert found.status == 0
    assert found.out.startswith("3 files, 3 volumes, 12,000 requests: ")
    assert "note: set/notes.md: the format was not recognised" in found.err
    found = command("dataset", "convert", "set", "out", "--every", "1s", "-q")
    assert found.out.startswith("3 volumes in 12 files: ")
    assert command("dataset", "convert", "set", "set").status == 2
    assert command("dataset", "index", "nothing/*").status == 2


@pytest.mark.parametrize("blocks", [1000, 400_000])
def test_distinct_blocks_are_exact_until_there_are_many(blocks: int) -> None:
    draw = np.random.default_rng(3)
    found = distinct.Distinct()
    for _ in range(6):
        found.add(7, draw.integers(0, blocks, 2 * blocks).astype(np.uint64))
    count, is_exact = found.count(7)
    assert is_exact == (blocks < distinct.LIMIT)
    assert abs(count - blocks) <= (1 if is_exact else 0.02 * blocks)
    assert found.count(8) == (0, True)


def test_many_volumes_share_a_budget_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "BUDGET", 1 << 15)
    found = distinct.Distinct()
    for volume in range(40):
        found.add(volume, np.arange(3000, dtype=np.uint64))
        assert found.held <= max(1 << 15, (volume + 1) * 2 * distinct.LEAST_LIMIT) + 3000
    assert found.limit == distinct.LEAST_LIMIT
    for volume in range(40):
        count, _ = found.count(volume)
        assert abs(count - 3000) < 450


def test_requests_are_expanded_to_every_block_they_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "PIECE", 7)
    draw = random.Random(2)
    requests = [
        (draw.randrange(100_000), draw.choice([0, 1, 512, 4096, 90_000])) for _ in range(50)
    ]
    expected = [
        block
        for offset, length in requests
        if length
        for block in range(offset // 4096, (offset + length - 1) // 4096 + 1)
    ]
    offsets, lengths = (np.array(column, np.uint64) for column in zip(*requests, strict=True))
    pieces = list(distinct.blocks_of(offsets, lengths, 4096))
    assert max(map(len, pieces)) <= 7
    assert np.concatenate(pieces).tolist() == expected


def test_a_sample_keeps_every_access_to_its_blocks(dataset: Path) -> None:
    whole = cachewright.read_trace("set/a.csv")
    with reduce.sampled(Trace("set/a.csv"), 1.0) as trace:
        assert trace.path == "set/a.csv"
    with reduce.sampled(Trace("set/a.csv"), 0.3) as trace:
        sample = cachewright.read_trace(trace)
    blocks = np.arange(1000, dtype=np.uint64)
    kept = set(blocks[distinct.hashed(blocks) < np.uint64(int(0.3 * 2**64))].tolist())
    expected = [
        (row["time_ns"], block * 4096, 4096, row["op"])
        for row in whole.to_dicts()
        for block in range(
            row["offset_bytes"] // 4096,
            (row["offset_bytes"] + row["length_bytes"] - 1) // 4096 + 1,
        )
        if block in kept
    ]
    assert sample.select("time_ns", "offset_bytes", "length_bytes", "op").rows() == expected


def test_the_beginning_of_a_trace_is_its_first_requests(dataset: Path) -> None:
    two = Trace("set/below/two.csv", volume="3")
    with reduce.begun(two, 4000, limit=100) as trace:
        assert cachewright.read_trace(trace).equals(cachewright.read_trace(two).head(100))
    with reduce.begun(two, 4000) as trace:
        assert trace is two


def test_a_worker_of_little_memory_replays_a_share_of_a_large_volume() -> None:
    volume = volumes.Volume("v", ["v"], None, ["f"], 10**9, 2 * 10**9, 10**12)
    share = volume.share_of(1 << 30)
    assert 0 < share < 0.02
    replayed = volumes.BASE_BYTES + share * (volume.study_bytes - volumes.BASE_BYTES)
    assert replayed == pytest.approx(1 << 30)
    small = volumes.Volume("v", ["v"], None, ["f"], 1000, 2000, 10**6)
    assert small.share_of(1 << 30) == 1.0


def test_declared_memory_grows_with_distinct_blocks_and_not_with_requests() -> None:
    def of(accesses: int, blocks: int, *, future: bool = False) -> int:
        volume = volumes.Volume("v", ["v"], None, ["f"], accesses, accesses, blocks * 4096)
        return volume.replay_bytes(future=future)

    assert of(10**8, 10**6) == of(10**10, 10**6) < 512 << 20
    assert of(10**8, 2 * 10**6) - of(10**8, 10**6) == 64 * 10**6
    assert of(10**8, 10**6, future=True) - of(10**8, 10**6) == 12 * 10**8
    assert of(1000, 10) < of(10**8, 10)


def test_policies_that_need_the_future_are_known_by_name() -> None:
    for policies, expected in ((["lru", "arc"], False), (["lru", "belady"], True)):
        assert needs_future({"options": {"policies": policies}}) is expected
    assert needs_future({"vary": {"cache.policy": ["all"]}})
    assert needs_future({"vary": {"cache.policy": ['{name = "belady-bypass"}']}})


def test_a_url_needs_a_place_for_its_manifest_and_is_named_as_it_was_given() -> None:
    with pytest.raises(SpecError, match=r"^s3://traces/set: found a dataset that is no folder"):
        manifest.manifest_path("s3:/traces/set", None)
