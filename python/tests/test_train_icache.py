"""Models of icache and mlcache: windows, labels, what they learn, and the commands.

For: `train_icache`, `train_mlcache`, `train.cutting`. Must never know: devices; replays are made
up. Tests that train need jax and optax, one scikit-learn.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from devices import FIXED_DEVICES
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import cachewright
from cachewright import _native
from cachewright._native import SpecError
from cachewright.documents import load
from cachewright.train import (
    ICacheTraining,
    MLCacheTraining,
    cutting,
    train_icache,
    train_mlcache,
)
from cachewright.train.cutting import Cutting
from cachewright.train.demand import Reading, Segments, TenantSegments
from cachewright.train.mlcache import best_division, joint, write_hits
from cachewright.train.model_file import described
from cachewright.train.reports import PartitionerReport

STEPS, GRANULES, INTERVALS, PHASE = 12, 4, 60, 5
# Mean responses by granules from a cache switched off on: of the granules after the first, most is
# gained at the second, or at the third.
CURVES = np.array([[100, 40, 39, 39, 39], [100, 98, 96, 40, 39]], dtype=np.float64)
LABELS = np.array([[0.5, 0.75], [0.75, 1.0]], dtype=np.float32)
# From a cache switched off the two labels are further apart, which makes learning quick to see.
HOW = ICacheTraining(
    granules=GRANULES,
    steps=STEPS,
    window=STEPS,
    stride=3,
    from_off=True,
    epochs=6,
    batch=16,
    rate=3e-3,
)


@pytest.fixture
def needs_jax() -> None:
    reason = "needs jax and optax (pip install 'cachewright[train]')"
    pytest.importorskip("jax", reason=reason)
    pytest.importorskip("optax", reason=reason)


def tenant(name: str, seed: int) -> TenantSegments:
    """Return a tenant in two turns of five intervals, told apart by its share of writes."""
    rng = np.random.default_rng(seed)
    count = STEPS * INTERVALS
    turn = (np.arange(count) // (STEPS * PHASE) + seed) % 2
    requests = rng.integers(5, 15, count)
    features = np.stack(
        [requests, np.where(turn == 1, 0.9, 0.1), np.full(count, 4096), rng.random(count)], axis=1
    )
    responses = CURVES[turn].T * requests
    reuse = np.zeros((INTERVALS, 10), dtype=np.uint32)
    reuse[np.arange(INTERVALS), np.where(turn[::STEPS] == 1, 7, 2)] = 50
    hits = np.minimum(np.arange(GRANULES + 1)[:, None], 1 + 2 * turn) * requests
    return TenantSegments(
        name,
        features.astype(np.float32),
        requests.astype(np.uint32),
        responses,
        hits.astype(np.uint32),
        requests.astype(np.uint32),
        reuse,
    )


def replay(steps: int = STEPS) -> Segments:
    """Return two tenants in opposite turns; their steps are put together where `steps` is 1."""
    tenants = [tenant("a", 0), tenant("b/c", 1)]
    if steps == 1:
        tenants = [by_interval(one) for one in tenants]
    return Segments(STEPS * 1000, STEPS * 1000 // steps, 400, tenants)


def by_interval(one: TenantSegments) -> TenantSegments:
    hits = one.hits.reshape(GRANULES + 1, INTERVALS, STEPS).sum(axis=2, dtype=np.uint32)
    return TenantSegments(
        one.name,
        one.features[::STEPS],
        one.requests[::STEPS],
        one.response_ns[:, ::STEPS],
        hits,
        one.accesses[::STEPS],
        one.reuse,
    )


def slow_points(latency: NDArray[np.float64], reading: Reading) -> list[int]:
    """Return MBP and OAP in granules by the words of the rule, for one window."""
    first = 1 if reading.from_off else 2
    sizes = range(first, len(latency))
    gains = {size: max(float(latency[size - 1] - latency[size]), 0.0) for size in sizes}
    most = max(gains.values(), default=0.0)
    if most == 0.0:
        return [1, 1]
    mbp = min(size for size in sizes if gains[size] == most)
    whole = float(latency[first - 1] - min(latency[first:]))

    def least(size: int) -> float:
        base = {"before": float(latency[size - 1]), "largest": most, "whole": whole}
        return reading.least_gain * base[reading.gain_of]

    enough = (size for size in sizes if size > mbp and gains[size] < least(size))
    return [mbp, next(enough, len(latency) - 1)]


def test_latencies_are_means_over_a_window() -> None:
    one = tenant("a", 0)
    starts = np.array([0, 5, STEPS * PHASE - 3])
    found = cutting.latencies(one, starts, STEPS)
    np.testing.assert_allclose(found[:2], CURVES[[0, 0]])
    # Three steps of the first turn, nine of the second, weighted by requests.
    first, second = (int(one.requests[begin:end].sum()) for begin, end in ((57, 60), (60, 69)))
    mean = (first * CURVES[0] + second * CURVES[1]) / (first + second)
    np.testing.assert_allclose(found[2], mean)
    idle = replace(one, requests=one.requests * 0, response_ns=one.response_ns * 0)
    assert cutting.latencies(idle, starts, STEPS).tolist() == [[0.0] * 5] * 3


@pytest.mark.parametrize("from_off", [False, True])
@pytest.mark.parametrize("gain_of", ["before", "largest", "whole"])
@pytest.mark.parametrize("least_gain", [0.05, 0.02])
def test_labels_are_the_points_of_the_rule(
    gain_of: str, least_gain: float, *, from_off: bool
) -> None:
    one = tenant("a", 0)
    reading = Reading(from_off, least_gain, gain_of)
    starts = np.arange(0, STEPS * (INTERVALS - 1), 7)
    found = cutting.labels(one, starts, STEPS, GRANULES, reading)
    expected = [slow_points(row, reading) for row in cutting.latencies(one, starts, STEPS)]
    np.testing.assert_allclose(found * GRANULES, expected, atol=1e-6)


def test_labels_of_two_intervals_by_hand() -> None:
    one, starts = tenant("a", 0), np.array([0, STEPS * PHASE])
    found = cutting.labels(one, starts, STEPS, GRANULES, Reading())
    np.testing.assert_array_equal(found, LABELS)
    from_off = cutting.labels(one, starts, STEPS, GRANULES, Reading(from_off=True))
    np.testing.assert_array_equal(from_off, [[0.25, 0.5], [0.75, 1.0]])


def test_a_replay_ends_with_its_last_request() -> None:
    found = replay()
    assert cutting.span(found) == STEPS * INTERVALS
    for one in found.tenants:
        one.requests[-5:] = 0
    found.tenants[1].requests[-4] = 1
    assert cutting.span(found) == STEPS * INTERVALS - 3


def test_windows_end_where_their_labelled_interval_begins() -> None:
    features = np.arange(40, dtype=np.float32).reshape(10, 4)
    found = cutting.inputs(features, np.array([3, 10]), 3)
    np.testing.assert_array_equal(found[0], features[0:3])
    np.testing.assert_array_equal(found[1], features[7:10])


def test_pooling_takes_means_of_twelve_parts_as_the_partitioner_does() -> None:
    window = np.zeros((1, 13, 4), dtype=np.float32)
    window[0, :, 0] = np.arange(13)
    found = cutting.pooled(window)
    assert found[0, ::4].tolist() == [*range(11), 11.5]
    assert cutting.pooled_names()[:5] == [
        "intensity.0",
        "write_ratio.0",
        "request_bytes.0",
        "unique_ratio.0",
        "intensity.1",
    ]
    with pytest.raises(cachewright.SpecError, match="found 11 steps, expected at least 12"):
        cutting.pooled(window[:, :11])


@given(
    steps=st.integers(1, 20),
    window=st.integers(1, 40),
    stride=st.integers(1, 9),
    share=st.floats(0.1, 0.9),
    total=st.integers(1, 2000),
)
def test_no_window_spans_two_parts(
    steps: int, window: int, stride: int, share: float, total: int
) -> None:
    try:
        split = Cutting(steps, window, stride, share).split(total)
    except cachewright.SpecError:
        return
    ends = [0, split.learned_steps, int(total * share), total]
    parts = (split.train, split.validation, split.test)
    for first, last, starts in zip(ends[:-1], ends[1:], parts, strict=True):
        assert len(starts) >= 4
        assert starts.min() - window >= first
        assert starts.max() + steps <= last


def test_a_replay_that_is_too_short_is_refused() -> None:
    with pytest.raises(cachewright.SpecError, match=r"found 0 windows for training in 4\.0 interv"):
        Cutting(STEPS, STEPS, 3, 0.6).split(4 * STEPS)


@given(st.lists(st.lists(st.integers(0, 6), min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_best_division_is_that_of_trying_all(gains: list[list[int]]) -> None:
    hits = np.cumsum([[0, *row] for row in gains], axis=1)
    tenants = len(gains)

    def worth(division: tuple[int, ...]) -> tuple[int, int]:
        won = sum(int(hits[index, size]) for index, size in enumerate(division))
        return won, -sum(size * size for size in division)

    all_of = itertools.product(range(5), repeat=tenants)
    best = max(worth(division) for division in all_of if sum(division) == 4)
    found = best_division(hits)
    assert sum(found) == 4
    assert worth(tuple(found)) == best


def test_hits_of_writes_follow_from_their_distances() -> None:
    # Nine bins over 32,768 pages: a cache of as many pages in nine granules has a bin for each.
    reuse = np.array([[[4, 2, 0, 0, 0, 0, 0, 0, 3, 50]]], dtype=np.uint32)
    assert write_hits(reuse, 9, 32_768)[0, :, 0].tolist() == [0, 4, 6, 6, 6, 6, 6, 6, 6, 9]
    # Half the pages, thus half a bin for each: 2 of the first four distances, and so on.
    assert write_hits(reuse, 9, 16_384)[0, :4, 0].tolist() == [0, 2, 4, 5]
    # What is beyond the window misses, however large the cache.
    assert write_hits(reuse, 2, 131_072)[0, :, 0].tolist() == [0, 9, 9]
    with pytest.raises(SpecError, match="`hits`: found `reads`, expected one of `all`, `writes`"):
        MLCacheTraining(hits="reads").check()


def test_histograms_are_normalised_together() -> None:
    reuse = np.zeros((2, 3, 10), dtype=np.uint32)
    reuse[0, 0, 9], reuse[1, 0, 0], reuse[1, 1, 4] = 30, 70, 5
    found = joint(reuse)
    assert (found[0, 9], found[0, 10]) == (np.float32(0.3), np.float32(0.7))
    assert found[1].tolist() == [0.0] * 14 + [1.0] + [0.0] * 5
    assert found[2].tolist() == [0.0] * 20


@pytest.mark.usefixtures("needs_jax")
def test_an_lstm_learns_what_repeats_and_is_small_in_int8(folder: Path) -> None:
    trained = train_icache(replay(), folder / "models", HOW)
    for one, place in zip(trained.report.tenants, ("a", "b-c"), strict=True):
        (model,) = one.models
        assert model.file == f"{place}.safetensors"
        content = (folder / "models" / model.file).read_bytes()
        assert content == trained.files[model.file]
        assert model.bytes == len(content) < 100_000
        assert model.int8
        assert one.windows.test == len(HOW.cutting().split(STEPS * INTERVALS).test)
        assert model.test.mse < 0.5 * one.naive.mean_label.mse
        assert abs(model.test.mse - model.test_f32.mse) < 0.01
        about = described(content)
        assert about.heads == (("points", 2),)
        assert list(about.features) == list(cutting.FEATURES)
        assert about.notes["granules"] == str(GRANULES)
        assert about.notes["window_steps"] == str(STEPS)
    report = json.loads((folder / "models" / "training.json").read_text())
    assert report == trained.document
    assert load(PartitionerReport, report) == trained.report
    tables = cachewright.stack.load(folder / "models" / "models.toml").text
    assert tables.count("[[tenant]]") == 2
    assert 'name = "b/c"' in tables


@pytest.mark.usefixtures("needs_jax")
def test_training_is_the_same_every_time_and_differs_by_seed(folder: Path) -> None:
    how = ICacheTraining(**{**HOW.__dict__, "epochs": 1, "seeds": 2})
    first, second = train_icache(replay(), folder, how), train_icache(replay(), None, how)
    assert first.files == second.files
    assert sorted(first.files) == sorted(
        f"seed{seed}/{name}{end}"
        for seed in (1, 2)
        for name in ("a", "b-c")
        for end in (".safetensors", ".f32.safetensors")
    )
    assert first.files["seed1/a.safetensors"] != first.files["seed2/a.safetensors"]
    # The same two epochs in two parts are two trainings: weights go on, Adam's memory does not.
    again = train_icache(replay(), None, how, begin=folder)
    weights = [
        _native.Model(one.files["seed1/a.f32.safetensors"]).weights() for one in (first, again)
    ]
    apart = np.abs(weights[0]["points.weight"] - weights[1]["points.weight"]).max()
    assert 0 < apart < 0.1
    other = ICacheTraining(**{**how.__dict__, "window": 24})
    with pytest.raises(cachewright.SpecError, match=r"note `window_steps` 12, expected 24"):
        train_icache(replay(), None, other, begin=folder)
    with pytest.raises(cachewright.SpecError, match=r"a\.f32\.safetensors: no such file"):
        train_icache(replay(), None, how, begin=folder / "nowhere")


@pytest.mark.usefixtures("needs_jax")
def test_a_feature_that_is_switched_off_changes_nothing() -> None:
    for kind, name in (("lstm", "weight_ih_l0"), ("mlp", "hidden.0.weight")):
        how = ICacheTraining(**{**HOW.__dict__, "epochs": 1, "features": "1011", "model": kind})
        trained = train_icache(replay(), None, how)
        content = trained.files["a.f32.safetensors"]
        assert described(content).notes["switched_off"] == "write_ratio"
        model = _native.Model(content)
        columns = model.weights()[name][:, 1::4]
        assert not columns.any()
        assert model.weights()[name][:, 0::4].all()


@pytest.mark.usefixtures("needs_jax")
def test_an_mlp_sees_windows_pooled() -> None:
    how = ICacheTraining(**{**HOW.__dict__, "model": "mlp", "epochs": 20})
    trained = train_icache(replay(), None, how)
    one = trained.report.tenants[0]
    about = described(trained.files["a.safetensors"])
    assert (about.kind, about.hidden) == ("mlp", (128, 64))
    assert list(about.features) == cutting.pooled_names()
    assert one.models[0].test.mse < 0.5 * one.naive.mean_label.mse


def test_a_forest_says_what_scikit_learn_does() -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn (pip install 'cachewright[train]')")
    from sklearn.ensemble import RandomForestRegressor

    how = ICacheTraining(**{**HOW.__dict__, "model": "forest"})
    found = replay()
    trained = train_icache(found, None, how)
    one = trained.report.tenants[0]
    assert one.models[0].test.mse < 0.5 * one.naive.mean_label.mse
    split = how.cutting().split(STEPS * INTERVALS)

    def rows(starts: NDArray[np.int64]) -> NDArray[np.float32]:
        return cutting.pooled(cutting.inputs(found.tenants[0].features, starts, STEPS))

    labels = cutting.labels(found.tenants[0], split.train, STEPS, GRANULES, how.reading())
    grown = RandomForestRegressor(n_estimators=100, min_samples_leaf=8, random_state=1)
    grown.fit(rows(split.train), labels)
    model = _native.Model(trained.files["a.safetensors"])
    test = rows(split.test)
    np.testing.assert_allclose(model.outputs(test[:, None]), grown.predict(test), atol=1e-5)


def test_settings_that_cannot_be_are_refused_before_a_replay() -> None:
    for change, message in (
        ({"model": "gru"}, "`model`: found `gru`, expected lstm, mlp, forest"),
        ({"gain_of": "first"}, "`gain_of`: found `first`, expected before, largest, whole"),
        ({"retrain_every": -1}, "`retrain_every`: found -1, expected 0 or more"),
        ({"least_gain": 1.0}, "`least_gain`: found 1.0, expected 0 to below 1"),
        ({"features": "111"}, "`features`: found `111`, expected four of 0 and 1"),
        ({"features": "0000"}, "expected at least one feature"),
        ({"share": 1.0}, "`share`: found 1.0, expected more than 0 and less than 1"),
        ({"epochs": 0}, "`epochs`: found 0, expected at least 1"),
        ({"stride": 0}, "`stride`: found 0, expected at least 1"),
    ):
        settings: dict[str, Any] = {**HOW.__dict__, **change}
        with pytest.raises(cachewright.SpecError, match=message):
            train_icache("nowhere.toml", None, ICacheTraining(**settings))
    with pytest.raises(cachewright.SpecError, match=r"expected a file that ends with \.safe"):
        train_mlcache("nowhere.toml", "model.bin")


@pytest.mark.usefixtures("needs_jax")
def test_mlcache_learns_shares_of_all_tenants(folder: Path) -> None:
    how = MLCacheTraining(granules=GRANULES, epochs=30, rate=1e-3)
    trained = train_mlcache(replay(1), folder / "ml.safetensors", how)
    (one,) = trained.report.tenants
    (model,) = one.models
    content = (folder / "ml.safetensors").read_bytes()
    about = described(content)
    assert (about.kind, about.hidden) == ("mlp", (256, 256))
    assert about.heads == (("shares", 2),)
    assert about.features[9:11] == ("reuse.0.9", "reuse.1.0")
    assert about.notes["tenants"] == "a,b/c"
    assert model.test.mse < one.naive.mean_label.mse
    assert one.naive.equal is not None
    assert (one.naive.equal.hits or 0.0) <= (model.test.hits or 0.0) <= 1.0
    assert json.loads((folder / "ml.training.json").read_text()) == trained.document


@pytest.fixture
def timed(traces: Path) -> Path:
    """Return a timed open-loop stack of two tenants, 80 intervals long."""
    path = traces / "stack.toml"
    path.write_text(
        f"""
name = "two"
[cache]
capacity = "512KiB"
{FIXED_DEVICES}[replay]
interval = "50ms"
[[tenant]]
name = "a"
trace = "a.csv"
[[tenant]]
name = "b"
trace = "b.csv"
"""
    )
    return path


@pytest.mark.usefixtures("needs_jax")
def test_the_command_replays_a_stack_and_shows_a_row_per_model(
    timed: Path, folder: Path, command: Command
) -> None:
    arguments = ["--granules", "2", "--steps", "12", "--window", "12", "--stride", "6"]
    answer = command(
        "train", "icache", timed, "--out", "models", "--epochs", "1", "--model", "mlp", *arguments
    )
    assert answer.status == 0, answer.err
    assert "of last label" in answer.out
    names = [line.split()[0] for line in answer.out.splitlines() if line[:2] in ("a ", "b ")]
    assert names == ["a", "b"]
    assert (folder / "models" / "a.safetensors").exists()
    written = json.loads((folder / "models" / "training.json").read_text())
    assert load(PartitionerReport, written).interval_ns == 50_000_000
    wrong = command("train", "icache", timed, "--out", "m", "--share", "lots")
    assert wrong.status == 2
    assert "--share: found `lots`" in wrong.err
    closed = command("train", "icache", timed, "--out", "m", "--set", "replay.loop=closed")
    assert closed.status == 2
    assert "`replay.loop`: found `closed`" in closed.err


def updates_run_and_are_refused_by_name(timed: Path, folder: Path, how: ICacheTraining) -> None:
    train_icache(timed, folder / "models", replace(how, retrain_every=1))
    text = timed.read_text()

    def updated(files: str) -> None:
        model = 'model = "models/a.safetensors"\n'
        timed.write_text(text.replace(model, f"{model}model_updates = {files}\n"))

    updated('["models/a.update1.safetensors"]')
    assert cachewright.run(timed).answer.cases
    for files, message in (
        (
            '"models/a.update1.safetensors"',
            "model_updates`: found .*, expected a list, each entry text",
        ),
        ('["models/a.safetensors"]', "update 1: found no note `from_interval`"),
        ('["models/none.safetensors"]', r"`tenant\[1\].model_updates`: found no file"),
    ):
        updated(files)
        with pytest.raises(cachewright.SpecError, match=message):
            cachewright.run(timed)
    timed.write_text(text)


@pytest.mark.usefixtures("needs_jax")
def test_models_that_were_trained_run_in_the_stack_they_came_from(
    timed: Path, folder: Path, command: Command
) -> None:
    how = ICacheTraining(granules=2, steps=12, window=12, stride=6, epochs=1)
    train_icache(timed, folder / "models", how)
    text = timed.read_text()
    for name in ("a", "b"):
        place = f'name = "{name}"\n'
        text = text.replace(place, f'{place}model = "models/{name}.safetensors"\n')
    partition = '{ name = "icache", granules = 2, steps_per_interval = 12, window_steps = 12 }'
    text = text.replace('capacity = "512KiB"', f'capacity = "512KiB"\npartition = {partition}')
    timed.write_text(text)
    assert cachewright.run(timed).answer.cases
    updates_run_and_are_refused_by_name(timed, folder, how)
    answer = command(
        "train", "mlcache", timed, "--out", "ml.safetensors", "--epochs", "2", "--granules", "2"
    )
    assert answer.status == 0, answer.err
    assert "hits" in answer.out
    joint_model = {"cache.partition": "mlcache", "cache.model": "ml.safetensors"}
    assert cachewright.run(timed, settings=joint_model).answer.cases
