"""Kinds of workloads: windows, what is learned of them, judgements over time, and the commands.

For: `train_kinds`, `characterize`, `train.confusion`. Must never know: real traces. Tests that
train need jax and optax.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

import cachewright
from cachewright import _native
from cachewright.documents import load
from cachewright.train import KindsTraining, confusion, kinds, networks, train_kinds
from cachewright.train.reports import KindsReport, KindWindows

REQUESTS = 6000
HOW = KindsTraining(most=30, epochs=6, patience=6, batch=8, units=8, rate=1e-2)


@pytest.fixture
def needs_jax() -> None:
    reason = "needs jax and optax (pip install 'cachewright[train]')"
    pytest.importorskip("jax", reason=reason)
    pytest.importorskip("optax", reason=reason)


def scan(requests: int, begin: int = 0) -> list[str]:
    """Return large reads one after another."""
    return [
        f"1,R,{(begin + number) * 65536},65536,{(begin + number) * 1000}"
        for number in range(requests)
    ]


def updates(requests: int, begin: int = 0) -> list[str]:
    """Return small writes here and there."""
    rng = random.Random(begin)
    return [
        f"1,W,{rng.randrange(1 << 18) * 4096},4096,{(begin + number) * 1000}"
        for number in range(requests)
    ]


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def two(folder: Path) -> dict[str, Path]:
    """Return a trace of each of two kinds."""
    return {
        "scan": written(folder / "scan.csv", scan(REQUESTS)),
        "updates": written(folder / "updates.csv", updates(REQUESTS)),
    }


@pytest.mark.parametrize(("optimiser", "steps"), [("adam", 1.0), ("rmsprop", 0.1**-0.5)])
def test_the_first_step_is_the_rate_or_that_by_the_root_of_a_tenth(
    needs_jax: None, optimiser: str, steps: float
) -> None:
    # Adam corrects its means for their start, RMSprop as Keras has it does not: a tenth of g**2.
    one = np.ones((1, 1), dtype=np.float32)
    network = networks.Network(networks.MLP, (), "kind")
    begin = {"kind.weight": 3 * one, "kind.bias": one[0]}
    fitting = networks.Fitting(1, 1, 1, 0.01, 1, optimiser)
    examples = networks.Examples(one, 0 * one)
    found = networks.fit(network, examples, examples, fitting, begin).weights
    assert found["kind.weight"][0, 0] == pytest.approx(3 - 0.01 * steps, abs=1e-5)


def test_an_unknown_optimiser_is_refused() -> None:
    with pytest.raises(cachewright.SpecError, match="`optimiser`: found `sgd`, expected adam or"):
        KindsTraining(optimiser="sgd").check()


def test_of_ten_windows_the_majority_counts() -> None:
    sure, unsure = [0.9, 0.1], [0.45, 0.55]
    shares = np.array([sure] * 4 + [unsure] * 6 + [sure] * 5 + [unsure] * 5 + [sure] * 9)
    assert confusion.majorities(shares.astype(np.float32)).tolist() == [1, 0]


def test_accuracy_is_the_mean_over_kinds() -> None:
    found = confusion.summary([(0, [8, 2]), (1, [0, 100]), (1, [50, 50])], 2)
    assert found.confusion == ((8, 2), (50, 150))
    assert found.accuracy_per_kind == (0.8, 0.75)
    assert found.accuracy == pytest.approx(0.775)


def test_periods_without_a_model(two: dict[str, Path]) -> None:
    found = cachewright.characterize(two["scan"], every="2s")
    assert found.kinds == ()
    assert [one.start_ns for one in found.periods] == [0, 2_000_000_000, 4_000_000_000]
    for one in found.periods:
        assert (one.reads, one.writes, one.mean_bytes) == (2000, 0, 65536)
        assert one.working_set_bytes == 2000 * 65536
        assert one.judged == ()
    shares = [one.classes.sequential for one in found.periods]
    assert shares == [1999 / 2000, 1.0, 1.0]
    by_count = cachewright.characterize(two["scan"], every="2000").periods
    assert [one.reads for one in by_count] == [2000, 2000, 2000]


def test_the_classes_of_a_bundled_trace_are_these() -> None:
    path = Path(__file__).parents[2] / "data" / "oltp.csv.zst"
    found = cachewright.characterize(path).total
    counted = [found.reads, found.writes, found.trims, found.flushes]
    assert counted == [45_641, 31_620, 101, 7_637]
    of = found.classes
    shares = [of.sequential, of.overlapped, of.strided, of.random]
    counts = [round(share * (45_641 + 31_620)) for share in shares]
    assert counts == [16_637, 5_910, 4_281, 50_433]
    assert found.working_set_bytes == 722_862_080


def test_rows_are_cut_into_windows(two: dict[str, Path]) -> None:
    (found,) = kinds.seen({"scan": two["scan"]}, "io-size", 100, ["updates", "scan"])
    assert found.kind == 1
    assert found.windows.shape == (60, 100, 8)
    assert found.windows[:, :, 4].all()
    assert found.ends_ns[:2].tolist() == [99_000_000, 199_000_000]


@pytest.mark.parametrize("by", ["rc-rnn", "twsd", "frequency", "io-size"])
def test_kinds_that_differ_are_told_apart_over_time(
    folder: Path, two: dict[str, Path], needs_jax: None, by: str
) -> None:
    trained = train_kinds(two, folder / "kinds.safetensors", replace(HOW, by=by))
    report = trained.report
    assert report.windows["scan"] == KindWindows(train=30, validation=6)
    assert report.windows_judged.accuracy is not None
    assert report.windows_judged.accuracy > 0.9
    assert report.of_ten.accuracy == 1.0
    assert load(KindsReport, json.loads((folder / "kinds.json").read_text())) == report
    both = written(folder / "both.csv", [*scan(3000), *updates(3000, 3000)])
    found = cachewright.characterize(both, every="1500", model=folder / "kinds.safetensors")
    assert found.kinds == ("scan", "updates")
    assert found.characterizer == by
    assert [one.judged[0].kind for one in found.periods] == ["scan"] * 2 + ["updates"] * 2


def test_what_judges_over_time_is_what_was_judged_in_training(
    folder: Path, two: dict[str, Path], needs_jax: None
) -> None:
    trained = train_kinds(two, folder / "kinds.safetensors", HOW)
    content = trained.files["kinds.safetensors"]
    (volume,) = kinds.seen({"scan": two["scan"]}, "rc-rnn", 100, ["scan", "updates"])
    expected = kinds.answers(content, volume.windows)[:10].mean(axis=0)
    period = cachewright.characterize(two["scan"], every="1000", model=content).periods[0]
    assert period.judged[0].scores == pytest.approx(expected.tolist(), abs=1e-5)


def test_the_same_seed_gives_the_same_file(two: dict[str, Path], needs_jax: None) -> None:
    how = replace(HOW, by="twsd")
    assert train_kinds(two, None, how).files == train_kinds(two, None, how).files


def test_what_does_not_fit_is_refused(folder: Path, two: dict[str, Path]) -> None:
    cases: list[tuple[dict[str, Path], dict[str, Any], str]] = [
        ({"scan": two["scan"]}, {}, "found 1 kind, expected at least 2"),
        (two, {"by": "twds"}, "nearest is `twsd`"),
        (two, {"network": "gru"}, "`network`: found `gru`, expected lstm or mlp"),
        (two, {"without": ("sizes",)}, "`without`: found `sizes`"),
        (two, {"window": 3000}, "scan.csv: found 2 windows"),
        (two, {"window": 7000}, "found no volume of 7000 reads and writes"),
    ]
    for traces, change, expected in cases:
        with pytest.raises(_native.SpecError, match=expected):
            train_kinds(traces, None, replace(HOW, **change))
    with pytest.raises(_native.SpecError, match=r"ends with \.safetensors"):
        train_kinds(two, folder / "kinds.bin", HOW)
    with pytest.raises(_native.SpecError, match="`every`: found `0s`"):
        cachewright.characterize(two["scan"], every="0s")
    with pytest.raises(_native.SpecError, match="model: "):
        cachewright.characterize(two["scan"], model=b"no model")


def test_the_commands(
    folder: Path, two: dict[str, Path], command: Command, needs_jax: None
) -> None:
    plain = command("characterize", "scan.csv", "--every", "3s")
    assert plain.status == 0, plain.err
    assert "sequential" in plain.out
    assert "64KiB" in plain.out
    args = ["--most", "30", "--epochs", "6", "--units", "8", "--batch", "8", "--rate", "1e-2"]
    named = [f"{kind}={path.name}" for kind, path in two.items()]
    out = ["--out", "kinds.safetensors"]
    judge = ["--judge", "updates=scan.csv"]
    trained = command("train", "kinds", *named, *out, *args, *judge)
    assert trained.status == 0, trained.err
    assert "whole" in trained.out
    assert "as updates" in trained.out
    answer = command("characterize", "updates.csv", "--model", "kinds.safetensors")
    assert answer.status == 0, answer.err
    assert "updates 9" in answer.out or "updates 100 %" in answer.out
    wrong = command("train", "kinds", "scan.csv", *out)
    assert (wrong.status, wrong.err) == (2, "error: found `scan.csv`, expected KIND=TRACE\n")
