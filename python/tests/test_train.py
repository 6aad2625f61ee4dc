"""Trainers at window borders, model files, and the command `train`.

For: `cachewright.train`, `wa(trainer=..., model=...)`. Must never know: how schemes use a model.
Tests of JAX's trainer need jax and optax; those that compare with PyTorch need torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command
from learned import loss, outputs, random_weights, read_model, write_trace

import cachewright
from cachewright.answers import AmplificationAnswer, TrainAnswer
from cachewright.documents import load
from cachewright.train import Trainer, Window, model_file
from cachewright.train.packing import BATCH_STEPS, batches

# Every window has a threshold, whatever its lifetimes are.
ANY = 'least_class = 0.0, threshold_floor = 0.0, censored = "long"'
SHIRO = f'{{ name = "shiro", window_share = 0.2, longest_window = 0.2, {ANY} }}'
SHIRO_NG = f'{{ name = "shiro-ng", window_share = 0.2, longest_window = 0.2, {ANY} }}'
WIDE = f'{{ name = "shiro", window_share = 4.0, longest_window = 4.0, {ANY} }}'
DRIVE: dict[str, Any] = {"op": ["100%"], "superblock": "128KiB"}
# What the losses of two trainers on one window may differ by, in nats; chance alone scores 0.69.
LOSS_MARGIN = 0.05


def by_hand(window: Window) -> bytes:
    """Return a model that learned nothing."""
    weights = random_weights(len(window.features))
    rows = window.inputs[:16]
    return model_file(weights, window.features, rows, outputs(weights, rows))


def recorded(trainer: Trainer) -> tuple[Trainer, list[tuple[Window, bytes]]]:
    """Return a trainer that also keeps what it was given and gave."""
    kept: list[tuple[Window, bytes]] = []

    def train(window: Window) -> bytes:
        model = trainer(window)
        kept.append((window, model))
        return model

    return train, kept


@pytest.fixture
def jax_trainer() -> Callable[[], Trainer]:
    reason = "needs jax and optax (pip install 'cachewright[train]')"
    pytest.importorskip("jax", reason=reason)
    pytest.importorskip("optax", reason=reason)
    from cachewright.train.shiro import JaxTrainer

    return JaxTrainer


def test_a_callable_gets_windows_and_its_models_are_used(folder: Path) -> None:
    train, kept = recorded(by_hand)
    trace = write_trace(folder, 2000)
    found = cachewright.wa(trace, [SHIRO, "none"], trainer=train, **DRIVE)
    training = found.answer.cases[0].training
    assert (training.models, training.failures) == (len(kept), 0)
    assert found.answer.trainer.endswith("train")
    window, _ = kept[3]
    assert (window.case, window.first, window.inputs.shape[1]) == (0, False, 24)
    assert (window.inputs.dtype, window.labels.dtype) == (np.float32, np.int8)
    assert window.bounds[-1] == len(window.labels) == len(window.inputs)
    assert set(window.labels.tolist()) <= {-1, 0, 1}
    assert [w.number for w, _ in kept] == sorted({w.number for w, _ in kept})
    assert kept[0][0].first
    assert all(len(rows) <= 20 for rows, _ in window.series())


def test_a_callable_that_raises_costs_its_windows_only(folder: Path) -> None:
    def moody(window: Window) -> bytes:
        if window.number in (9, 11):
            raise ValueError("no\nluck")
        return by_hand(window)

    trace = write_trace(folder, 2000)
    found = cachewright.wa(trace, [SHIRO, "none"], trainer=moody, **DRIVE)
    training = found.answer.cases[0].training
    assert training.failures == 2
    assert training.models > 10
    told = [warning for warning in found.warnings if "training failed" in warning]
    assert len(told) == 1
    assert "in 2 of " in told[0]
    assert "window 11: trainer: ValueError: no luck (test_train.py, line " in told[0]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda window: "text", "found str as its answer, expected the bytes of a model file"),
        (lambda window: b"nothing", "window "),
        (
            lambda window: by_hand(Window(**{**vars(window), "features": ["a"], "inputs": A_ROW})),
            "found 1 inputs, 32 + 0 bytes of state and 2 outputs, expected 24 inputs",
        ),
    ],
)
def test_an_answer_that_is_no_model_of_shiro_is_said(
    folder: Path, answer: Trainer, sentence: str
) -> None:
    found = cachewright.wa(write_trace(folder, 500), [SHIRO], trainer=answer, **DRIVE)
    training = found.answer.cases[0].training
    assert training.models == 0
    assert training.failures > 0
    assert any(sentence in warning for warning in found.warnings)


A_ROW = np.ones((1, 1), dtype=np.float32)


def test_names_of_trainers_are_checked_before_the_run(folder: Path) -> None:
    with pytest.raises(cachewright.SpecError, match=r"found `jaks`, expected native, jax or a"):
        cachewright.wa(folder / "none.csv", trainer="jaks")
    with pytest.raises(cachewright.SpecError, match=r"`trainer`: found no separation that learns"):
        cachewright.wa(folder / "none.csv", ["none"], trainer=by_hand)


def test_a_missing_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    answer = command("wa", "none.csv", "--separation", "shiro", "--trainer", "jax")
    assert answer.status == 2
    assert answer.err.startswith("error: --trainer: `jax` needs jax, which is not here; ")
    assert "pip install 'cachewright[train]'" in answer.err


def test_a_test_vector_that_is_not_reproduced_is_refused(folder: Path) -> None:
    weights, rows = random_weights(24), np.full((4, 24), 0.5, dtype=np.float32)
    right = outputs(weights, rows)
    names = read_model(kept_features(folder))[1]["features"]
    trace, file = write_trace(folder, 500), folder / "m.safetensors"
    file.write_bytes(model_file(weights, names, rows, right))
    found = cachewright.wa(trace, [SHIRO], model=file, **DRIVE)
    assert found.answer.cases[0].training.models == 1
    assert found.answer.model.file == str(file)
    file.write_bytes(model_file(weights, names, rows, right + np.float32(1e-3)))
    with pytest.raises(cachewright.SpecError, match=r"`model`: .*m\.safetensors: "):
        cachewright.wa(trace, [SHIRO], model=file, **DRIVE)


def kept_features(folder: Path) -> bytes:
    train, kept = recorded(by_hand)
    cachewright.wa(write_trace(folder, 500), [SHIRO], trainer=train, **DRIVE)
    return kept[0][1]


def test_weights_of_a_model_file_are_checked() -> None:
    weights, rows = random_weights(24), np.zeros((1, 24), dtype=np.float32)
    names = [f"x{index}" for index in range(24)]
    with pytest.raises(cachewright.SpecError, match=r"found `fc\.wait`, expected weight_ih_l0, "):
        model_file({**weights, "fc.wait": rows}, names, rows, rows)
    with pytest.raises(cachewright.SpecError, match=r"\[96, 24\] for `weight_ih_l0`, expected"):
        model_file(weights, names[:4], rows, rows)
    weights.pop("fc.bias")
    with pytest.raises(cachewright.SpecError, match=r"found no `fc\.bias`"):
        model_file(weights, names, rows, rows)


def test_packing_keeps_every_step_of_labelled_series_once() -> None:
    rng = np.random.default_rng(1)
    series = []
    for number in range(300):
        length = int(rng.integers(1, 21))
        labels = rng.integers(-1, 2, length).astype(np.int8)
        rows = np.full((length, 1), number, dtype=np.float32)
        rows[:, 0] += np.arange(length) / 32
        series.append((rows, labels))
    kept = [one for one in series if (one[1] >= 0).any()]
    found, after = [], 0
    for batch in batches(series):
        assert batch.rows.shape == (20, 32, 1)
        assert batch.labelled == (batch.labels >= 0).sum()
        after += batch.labelled < BATCH_STEPS
        for lane in range(batch.rows.shape[1]):
            starts = np.flatnonzero(batch.begins[:, lane]).tolist()
            for start in starts:
                number = int(batch.rows[start, lane, 0])
                rows, labels = series[number]
                end = start + len(labels)
                np.testing.assert_array_equal(batch.rows[start:end, lane], rows)
                np.testing.assert_array_equal(batch.labels[start:end, lane], labels)
                found.append(number)
    assert len(found) == len(set(found)) == len(kept)
    assert after <= 1


def test_jax_writes_models_that_rust_reproduces(
    folder: Path, jax_trainer: Callable[[], Trainer]
) -> None:
    train, kept = recorded(jax_trainer())
    trace = write_trace(folder, 2000)
    found = cachewright.wa(trace, [SHIRO], trainer=train, **DRIVE)
    training = found.answer.cases[0].training
    assert (training.models, training.failures) == (len(kept), 0)
    for window, model in (kept[0], kept[-1]):
        weights, description = read_model(model)
        vector = description["test_vector"]
        rows = np.array(vector["inputs"], dtype=np.float32)
        assert len(rows) == 16
        np.testing.assert_allclose(outputs(weights, rows), vector["outputs"], atol=1e-5)
        assert np.abs(vector["outputs"]).max() > 0.05
        assert description["notes"]["threshold"] == str(window.threshold)
        (folder / "m.safetensors").write_bytes(model)
        given = cachewright.wa(trace, [SHIRO], model=folder / "m.safetensors", **DRIVE)
        assert given.answer.cases[0].training.models == 1


def test_pytorch_gives_what_jax_gave(folder: Path, jax_trainer: Callable[[], Trainer]) -> None:
    torch = pytest.importorskip("torch", reason="needs torch (pip install torch)")
    train, kept = recorded(jax_trainer())
    cachewright.wa(write_trace(folder, 1000), [SHIRO], trainer=train, **DRIVE)
    weights, description = read_model(kept[-1][1])
    tensors = {name: torch.from_numpy(values.copy()) for name, values in weights.items()}
    head = torch.nn.Linear(32, 2)
    head.load_state_dict({key: tensors.pop(f"fc.{key}") for key in ("weight", "bias")})
    layer = torch.nn.GRU(24, 32)
    layer.load_state_dict(tensors)
    vector = description["test_vector"]
    with torch.no_grad():
        found = head(layer(torch.tensor(vector["inputs"], dtype=torch.float32))[0]).numpy()
    np.testing.assert_allclose(found, vector["outputs"], atol=1e-5)


def test_jax_and_the_trainer_in_rust_reach_similar_losses(
    folder: Path, jax_trainer: Callable[[], Trainer]
) -> None:
    # The part that trains holds one window: both learn from the very same series.
    trace = write_trace(folder, 4500)
    train, kept = recorded(jax_trainer())
    by_jax = cachewright.train_shiro(trace, separation=WIDE, share=0.5, trainer=train)
    by_rust = cachewright.train_shiro(trace, separation=WIDE, share=0.5)
    assert by_jax.answer.windows == by_rust.answer.windows == len(kept) == 1
    window = kept[0][0]
    losses = [loss(read_model(one.model)[0], window) for one in (by_jax, by_rust)]
    assert abs(losses[0] - losses[1]) < LOSS_MARGIN, losses
    short = float((window.labels == 1).sum() / (window.labels >= 0).sum())
    guess = -short * np.log(short) - (1 - short) * np.log(1 - short)
    assert max(losses) < 0.7 * guess, (losses, guess)


def test_jax_is_deterministic_and_never_looks_ahead(
    folder: Path, jax_trainer: Callable[[], Trainer]
) -> None:
    turn = 1500
    runs = []
    for seed, threads in ((1, 1), (1, 2), (2, 2)):
        train, kept = recorded(jax_trainer())
        trace = write_trace(folder, 3000, turn, seed)
        cachewright.wa(trace, [SHIRO, SHIRO_NG], trainer=train, threads=threads, **DRIVE)
        runs.append({(w.case, w.number): (w.inputs.tobytes(), model) for w, model in kept})
    assert runs[0] == runs[1]
    windows = len({number for _, number in runs[0]})
    # Windows of a hundred pages in case 0; those that end before the turn saw nothing of it.
    before = [key for key in runs[0] if key[0] == 0 and (key[1] + 1) * 100 <= 500 + turn]
    assert 10 < len(before) < windows
    assert all(runs[1][key] == runs[2][key] for key in before)
    assert any(runs[1][key] != runs[2][key] for key in runs[1])


def test_train_writes_a_model_that_wa_uses(folder: Path, command: Command) -> None:
    trace = write_trace(folder, 8000, 4000, 1)
    other = trace.rename(folder / "other.csv")
    write_trace(folder, 8000, 4000, 2)
    words = ["train", "shiro", "learn.csv", "--separation", WIDE, "--share", "50%"]
    answer = command(*words, "--out", "m.safetensors", "--judge", other)
    assert answer.status == 0, answer.err
    assert "learn, later part" in answer.out
    assert "precision" in answer.out
    assert "model: m.safetensors" in answer.out
    refused = command(*words, "--out", "m.safetensors")
    assert refused.status == 2
    assert "existing file" in refused.err
    printed = command(*words, "--out", "m.safetensors", "--force", "--json").out
    again = load(TrainAnswer, json.loads(printed))
    assert again.held_out is not None
    assert again.held_out.accuracy > again.held_out.majority + 0.1
    assert again.trained_pages == 4250
    answer = command(
        *("wa", other, "--op", "100%", "--superblock", "128KiB", "--model", "m.safetensors"),
        *("--separation", f"{WIDE},none", "--json"),
    )
    assert answer.status == 0, answer.err
    found = load(AmplificationAnswer, json.loads(answer.out))
    assert found.trainer == "none"
    assert found.model is not None
    assert found.model.notes["trainer"] == "native"
    assert found.cases[0].training is not None
    assert found.cases[0].training.models == 1
    answer = command(*words[:-1], "half", "--out", "half.safetensors")
    assert answer.status == 2
    assert "--share: found `half`, expected a part such as 70%" in answer.err
