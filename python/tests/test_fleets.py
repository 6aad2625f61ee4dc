"""Commands on datasets, sweeps by case and studies give the same bytes on every engine.

For: `--engine`, `fleet study`, and what is left of a sweep that is killed. Must never know: time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from conftest import Command, fits_schema, trace_text
from engines import ENGINES, HAS_RAY

import cachewright
from cachewright.answers import CurvesAnswer, StudyAnswer
from cachewright.documents import dump, load
from cachewright.fleet import study, study_work

POLICIES = "lru,fifo,clock,sieve,lfu,s3-fifo,arc,larc,2q,lirs"
CAPACITIES = ",".join(f"{share}%wss" for share in range(2, 42, 2))
KILLS = 5


@pytest.fixture
def dataset(traces: Path) -> Path:
    """Return a folder of three traces, one of which cannot be read."""
    folder = traces / "set"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        (traces / name).rename(folder / name)
    (folder / "bad.csv").write_text("no trace\n")
    return folder


def _files(folder: str) -> dict[str, bytes]:
    """Return what a result folder holds, but for journals."""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if path.suffix != ".journal"
    }


COMMANDS = {
    "mrc": ["mrc", "set", "--policy", "lru,arc"],
    "wa": ["wa", "set", "--separation", "2r", "--superblock", "16KiB"],
    "characterize": ["characterize", "set"],
    "compare": ["compare", "set", "--policy", "lru,arc", "--capacity", "10%wss"],
    "train": ["train", "shiro", "set", "--page", "4KiB"],
    "study": ["fleet", "study", "set", "--superblock", "16KiB", "--report"],
}

# Ray takes seconds to start.
ON_RAY = ("compare", "study")


@pytest.mark.parametrize("name", COMMANDS)
def test_engines_give_the_same_bytes(dataset: Path, command: Command, name: str) -> None:
    engines = ["local", "ray"] if HAS_RAY and name in ON_RAY else ["local"]
    # A page is headed by the name of its folder.
    for engine in engines:
        words = [
            *COMMANDS[name],
            "--out",
            f"{engine}/kept",
            "--engine",
            engine,
            "--workers",
            "2",
            "-q",
        ]
        found = command(*words)
        assert (found.status, "1 of 3 files could not be read" in found.err) == (1, True), found.err
    again = command(*COMMANDS[name], "--out", "local/kept", "-q")
    assert again.status == 1
    for engine in engines:
        assert _files(f"{engine}/kept") == _files("local/kept")
    assert len(_files("local/kept")) >= 3


def test_files_that_cannot_be_read_are_in_the_answer_and_on_the_page(
    dataset: Path, command: Command
) -> None:
    found = command("mrc", "set", "--out", "out")
    assert found.status == 1
    assert "; 1 of 3 files could not be read\n" in found.out
    assert "error: 1 of 3 files could not be read" in found.err
    page = Path("out/report.html").read_text()
    assert "1 of 3 files could not be read</strong>" in page
    assert "<td>set/bad.csv</td>" in page
    assert command("report", "out").status == 0
    assert Path("out/report.html").read_text() == page
    (dataset / "bad.csv").unlink()
    assert command("mrc", "set", "--out", "out", "-q").status == 0
    assert not Path("out/unread.json").exists()
    assert "could not be read" not in Path("out/report.html").read_text()


def test_an_answer_of_a_volume_is_that_of_its_trace(dataset: Path, command: Command) -> None:
    assert command("mrc", "set", "--policy", "lru,arc", "--out", "out", "-q").status == 1
    lines = [json.loads(line) for line in Path("out/answers.jsonl").read_text().splitlines()]
    assert [line["volume"] for line in lines] == ["a", "b"]
    for line in lines:
        own = cachewright.mrc(f"set/{line['volume']}.csv", ["lru", "arc"])
        assert load(CurvesAnswer, line["answer"]) == own.answer
    rows = pl.read_parquet("out/rows.parquet")
    assert rows["volume"].unique().sort().to_list() == ["a", "b"]


def test_volumes_that_fail_are_listed_and_tried_again_on_request(
    dataset: Path, command: Command
) -> None:
    words = ["wa", "set", "--separation", "2r", "--out", "out"]
    found = command(*words)
    assert found.status == 1
    assert "2 volumes without an answer; `--retry-failed` tries them again" in found.err
    assert "note: a: stack: `superblock`: found 1MiB" in found.err
    assert "note: set/bad.csv: " in found.err
    failed = [json.loads(line) for line in Path("out/failed.jsonl").read_text().splitlines()]
    assert [one["name"] for one in failed] == ["a", "b"]
    journal = Path("out/wa.journal")
    assert journal.read_bytes().count(b"\n") == 2
    assert command(*words, "-q").status == 1
    assert journal.read_bytes().count(b"\n") == 2
    assert command(*words, "-q", "--retry-failed").status == 1
    assert journal.read_bytes().count(b"\n") == 4


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["mrc", "set", "--figure", "a.svg"], "--figure: found a dataset"),
        (["compare", "set", "--fresh"], "--fresh: found a dataset"),
        (["mrc", "set", "--address", "x:1"], "found `x:1` for engine `local`"),
        (["fleet", "study", "set", "--out", "o", "--rate", "0"], "--rate: found 0.0"),
        (["train", "shiro", "set", "--out", "o", "--judge", "b.csv"], "--judge: found a dataset"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_a_dataset_cannot_have_is_refused(
    dataset: Path, command: Command, words: list[str], expected: str
) -> None:
    found = command(*words, "-q")
    assert found.status == 2
    assert expected in found.err


def test_a_stack_file_is_no_dataset(stack: Path, command: Command) -> None:
    found = command("mrc", "stack.toml", "--engine", "local")
    assert found.status == 2
    assert "which is one task here" in found.err


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sweep_by_case_is_that_of_one_process(stack: Path, command: Command, engine: str) -> None:
    words = ["compare", "stack.toml", "--policy", "lru,arc", "--partition", "shared,equal", "-q"]
    assert command(*words, "--out", "whole").status == 0
    assert command(*words, "--out", "parts", "--engine", engine, "--workers", "2").status == 0
    whole, parts = _files("whole"), _files("parts")
    assert whole.keys() == parts.keys()
    # A case's file says which number the case had where it was run.
    assert {name for name in whole if whole[name] != parts[name]} <= {
        name for name in whole if name.startswith("cases/")
    }


def test_a_case_that_fails_ends_a_sweep_with_its_error(stack: Path, command: Command) -> None:
    words = ["compare", "stack.toml", "--policy", "lru", "--capacity", "64KiB,1B", "--out", "out"]
    found = command(*words, "--engine", "local", "-q")
    assert found.status == 1
    assert "1 of 2 cases failed (policy=lru, capacity=1B: " in found.err
    assert Path("out/failed.jsonl").exists()


def _sweep(out: str, engine: str) -> subprocess.Popen[bytes]:
    words = ["compare", "a.csv", "--policy", POLICIES, "--capacity", CAPACITIES, "--out", out]
    words += ["--engine", engine, "--workers", "2", "--json", "-q"]
    return subprocess.Popen(
        [sys.executable, "-m", "cachewright", *words], stdout=subprocess.DEVNULL
    )


def _lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sweep_of_200_cases_killed_five_times_ends_with_the_same_bytes(
    traces: Path, engine: str
) -> None:
    (traces / "a.csv").write_text(trace_text(1, 1000))
    assert _sweep("whole", engine).wait() == 0
    draw, journal, kills = random.Random(engine), Path("killed/cases.journal"), 0
    while kills < KILLS:
        goal = _lines(journal) + draw.randint(5, 30)
        sweep = _sweep("killed", engine)
        while sweep.poll() is None and _lines(journal) < goal:
            os.sched_yield()
        sweep.send_signal(signal.SIGKILL)
        kills += sweep.wait() == -signal.SIGKILL
        assert _lines(journal) < 200
    assert _sweep("killed", engine).wait() == 0
    assert _lines(journal) == 200
    files = _files("killed")
    assert files == _files("whole")
    assert sum(name.startswith("cases/") for name in files) == 200


def test_a_study_with_drives_fits_its_schema(dataset: Path, command: Command) -> None:
    assert command(*COMMANDS["study"], "--out", "out", "-q").status == 1
    document = json.loads(Path("out/study.json").read_text())
    fits_schema("StudyAnswer", document)
    drives = [one for one in document["distributions"] if "separation" in one]
    assert [one["separation"] for one in drives] == list(study.SEPARATIONS)
    assert load(StudyAnswer, document).plan.drive is not None


@pytest.mark.parametrize("engine", ENGINES)
def test_seeds_are_trained_alike_on_every_engine(
    stack: Path, command: Command, engine: str
) -> None:
    pytest.importorskip("jax", reason="needs jax and optax (pip install 'cachewright[train]')")
    pytest.importorskip("optax", reason="needs jax and optax (pip install 'cachewright[train]')")
    Path("one.toml").write_text(
        '[cache]\ncapacity = "20%wss"\n[[tenant]]\nname = "mail"\ntrace = "a.csv"\n'
    )
    words = ["train", "rc-rnn", "one.toml", "--seeds", "2", "--units", "8", "--layers", "1"]
    words += ["--window", "10", "--batch", "8", "--epochs", "2", "--updates", "10"]
    assert command(*words, "--out", "whole").status == 0
    found = command(*words, "--out", "parts", "--engine", engine, "--workers", "2")
    assert found.status == 0, found.err
    whole, parts = _files("whole"), _files("parts")
    assert whole.keys() == parts.keys()
    models = {name for name in whole if name.endswith(".safetensors")}
    assert len(models) == 4
    assert all(whole[name] == parts[name] for name in models)
    reports = [json.loads(files["mail.json"]) for files in (whole, parts)]
    for report in reports:
        for model in report["models"]:
            del model["cpu_seconds"], model["step_ns"]
    assert reports[0] == reports[1]


def test_a_study_counts_wins_ties_and_losses(dataset: Path) -> None:
    plan = study.Plan(("lru", "fifo"), ("1%wss", "10%wss"), separations=())
    found = study.study("set", Path("out"), plan).document
    assert json.loads(Path("out/study.json").read_text()) == found
    fits_schema("StudyAnswer", found)
    assert dump(load(StudyAnswer, found)) == found
    assert found["volumes"] == 2
    assert [one["name"] for one in found["unread"]] == ["set/bad.csv"]
    hits = pl.read_parquet("out/hits.parquet")
    for volume in ("a", "b"):
        curves = cachewright.mrc(f"set/{volume}.csv", ["lru", "fifo"], sizes=["1%wss", "10%wss"])
        for policy in ("lru", "fifo"):
            own = hits.filter((pl.col("volume") == volume) & (pl.col("policy") == policy))
            points = [c for c in curves.answer.curves if c.policy == policy and c.tenant != "all"]
            expected = [1 - point[1] for point in points[0].points]
            assert own["hit_ratio"].to_list() == expected
    for size in ("1%wss", "10%wss"):
        wide = hits.filter(pl.col("size") == size).pivot(
            "policy", index="volume", values="hit_ratio"
        )
        for one in found["wins"]:
            if one["size"] != size or one["volume_class"] != "all":
                continue
            other = "fifo" if one["policy"] == "lru" else "lru"
            ahead = wide[one["policy"]] - wide[other]
            assert one["win_share"] == (ahead > 0).sum() / 2
            assert one["tie_share"] == (ahead == 0).sum() / 2
            assert one["mean_loss"] == pytest.approx(-ahead.clip(upper_bound=0).mean())


def test_close_policies_are_simulated_exactly_and_others_are_not(folder: Path) -> None:
    Path("loop.toml").write_text(
        '[synth]\nseed = 1\n[[tenant]]\nname = "v"\ncount = 200_000\n'
        'arrival = { kind = "constant", rate = "1000/s" }\nread_share = 0.9\nsize = "4KiB"\n'
        'pattern = { kind = "loop", span = "256MiB" }\n'
    )
    arguments = {
        "volume": {"paths": ["loop.toml"], "volume": None},
        "requests": 200_000,
        "share": 1.0,
        "reading": {"format": None, "on_bad_record": "fail", "options": {}},
        "policies": ["lru", "fifo", "lirs"],
        "sizes": ["30%wss"],
        "rate": 0.1,
        "block": "4KiB",
        "drive": None,
    }
    near = study_work.volume(**arguments, close=1.0)["sizes"][0]["policies"]
    assert all(hit["exact"] for hit in near.values())
    far = study_work.volume(**arguments, close=0.0)["sizes"][0]["policies"]
    assert not any(hit["exact"] for hit in far.values())
    for policy, hit in far.items():
        assert abs(hit["hit_ratio"] - near[policy]["hit_ratio"]) < 0.05
        assert hit["low"] <= hit["hit_ratio"] <= hit["high"]


def test_classes_follow_the_mix_and_the_order_of_requests() -> None:
    ordered = {"sequential": 0.2, "strided": 0.2, "overlapped": 0.2}
    scattered = {"sequential": 0.1, "strided": 0.0, "overlapped": 0.1}
    assert study_work.class_of({"read_share": 0.1, **ordered}) == "writes, sequential"
    assert study_work.class_of({"read_share": 0.5, **scattered}) == "mixed, random"
    assert study_work.class_of({"read_share": 0.8, **scattered}) == "reads, random"


def test_quantiles_lie_between_neighbours() -> None:
    spread = study._spread([4.0, 0.0, 2.0])
    assert spread["mean"] == 2.0
    assert dict(map(tuple, spread["quantiles"]))[0.25] == 1.0
    assert study._spread([]) == {"count": 0, "mean": None, "quantiles": []}


def test_a_study_of_a_sample_is_near_that_of_the_whole(folder: Path) -> None:
    Path("zipf.toml").write_text(
        '[synth]\nseed = 1\n[[tenant]]\nname = "v"\ncount = 100_000\n'
        'arrival = { kind = "constant", rate = "1000/s" }\nread_share = 0.5\nsize = "8KiB"\n'
        'pattern = { kind = "zipf", span = "256MiB", alpha = 0.8 }\n'
    )
    found = [
        study_work.volume(
            volume={"paths": ["zipf.toml"], "volume": None},
            requests=100_000,
            share=share,
            reading={"format": None, "on_bad_record": "fail", "options": {}},
            policies=["lru", "fifo"],
            sizes=["10%wss"],
            rate=1.0,
            close=0.01,
            block="4KiB",
            drive=None,
        )
        for share in (1.0, 0.3)
    ]
    whole, sample = (one["sizes"][0]["policies"] for one in found)
    for policy in ("lru", "fifo"):
        assert whole[policy]["exact"]
        assert not sample[policy]["exact"]
        assert abs(sample[policy]["blocks"] - 0.3 * whole[policy]["blocks"]) < 200
        assert abs(sample[policy]["hit_ratio"] - whole[policy]["hit_ratio"]) < 0.05
    assert found[1]["facts"]["share"] == 0.3
