"""Caching models of rc-rnn: lessons, what they learn, and the command.

For: `train_rc_rnn`, `train.labelling`. Must never know: oracles but through the lessons of a small
stack. Tests that train need jax and optax.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Command
from numpy.typing import NDArray

import cachewright
from cachewright import _native
from cachewright.documents import load, table
from cachewright.train import RcRnnTraining, caching_lessons, labelling, train_rc_rnn
from cachewright.train.control import trees
from cachewright.train.labelled import Lessons
from cachewright.train.labelling import NO_DURATION, Steps
from cachewright.train.model_file import described
from cachewright.train.reports import CachingReport, Control, Epoch

NAMES = ["address", "size", "write", "previous_cached", "previous_duration"]
HOW = RcRnnTraining(
    units=12, layers=1, window=10, batch=8, epochs=20, patience=4, updates=20, rate=1e-2
)
STACK = (
    '[cache]\ncapacity = "20%wss"\npolicy = "rc-rnn"\n[replay]\nwindows = 0\n'
    '[[tenant]]\nname = "mail"\ntrace = "a.csv"\n'
)


@pytest.fixture
def needs_jax() -> None:
    reason = "needs jax and optax (pip install 'cachewright[train]')"
    pytest.importorskip("jax", reason=reason)
    pytest.importorskip("optax", reason=reason)


def made_up(seed: int, count: int = 4000) -> Lessons:
    """Return requests that are cached if short, and stay soon if read, late if written."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, 5), dtype=np.float32)
    rows[:, 0] = rng.random(count) * 4
    rows[:, 1] = rng.integers(3, 8, count)
    rows[:, 2] = rng.integers(0, 2, count)
    cached = (rows[:, 1] < 6).astype(np.uint8)
    duration = np.where(cached == 1, rows[:, 2] * 2, NO_DURATION).astype(np.uint8)
    rows[1:, 3] = cached[:-1]
    rows[1:, 4] = np.where(cached == 1, (duration + 1) / 3, 0)[:-1]
    return Lessons(100, NAMES, rows, cached, duration, np.arange(count, dtype=np.uint64))


def columns(found: Lessons) -> list[NDArray[np.generic]]:
    return [found.rows, found.cached, found.duration, found.time_ns]


def test_lanes_are_stretches_walked_side_by_side() -> None:
    number = np.arange(26, dtype=np.float32)
    label = np.arange(26, dtype=np.uint8)
    lanes = Steps(number[:, None], label, label).lanes(2, 4)
    assert lanes.windows() == 3
    inputs, cached, _ = lanes.at(1)
    assert inputs[:, :, 0].T.tolist() == [[4, 5, 6, 7], [16, 17, 18, 19]]
    assert cached.T.tolist() == [[4, 5, 6, 7], [16, 17, 18, 19]]


def test_rare_labels_count_more_by_the_power_asked_for() -> None:
    cached = np.array([1, 0, 0, 0], dtype=np.uint8)
    duration = np.array([0, 3, 3, 3], dtype=np.uint8)
    steps = Steps(np.zeros((4, 1), np.float32), cached, duration)
    alike, (rare, lasting) = (labelling.weights_of_classes(steps, power) for power in (0.0, 1.0))
    assert alike[0].tolist() == [1, 1]
    assert rare == pytest.approx([2 / 3, 2])
    assert lasting.tolist() == [1, 0, 0]


@pytest.mark.usefixtures("needs_jax")
def test_a_model_learns_what_it_can_see_and_is_stored_in_int8(folder: Path) -> None:
    found = train_rc_rnn(made_up(1), "made up", "models", HOW, judge={"other": made_up(2)})
    (model,) = found.report.models
    assert model.own.cached > 0.95 > found.report.majority.cached + 0.2
    assert model.own.duration > 0.9 > found.report.majority.duration + 0.2
    assert model.others["other"].own.cached > 0.95
    assert abs(model.own.cached - model.own_f32.cached) < 0.02
    assert sorted(path.name for path in Path("models").iterdir()) == [
        "made-up.f32.safetensors",
        "made-up.json",
        "made-up.safetensors",
    ]
    about = described(found.files["made-up.safetensors"])
    assert about.int8
    assert about.heads == (("cached", 2), ("duration", 3))
    assert list(about.features) == NAMES
    control = Control(cached=1.0, duration=1.0, says_cached=0.5, hits=None)
    assert found.with_control(control).document == {**found.document, "control": table(control)}
    # An address is spread over 0 to 1 by the file.
    assert about.normalisation.mean[0] == pytest.approx(0, abs=0.01)
    assert about.normalisation.deviation[0] == pytest.approx(4, abs=0.02)


@pytest.mark.usefixtures("needs_jax")
def test_training_is_the_same_every_time_and_differs_by_seed() -> None:
    short = replace(HOW, epochs=2, units=6, layers=2, own=0.5, balance=0.5, seeds=2)
    lessons = made_up(3)
    once, again = (train_rc_rnn(lessons, "kind", how=short).files for _ in range(2))
    assert once == again
    assert once["seed1/kind.safetensors"] != once["seed2/kind.safetensors"]


def test_what_cannot_be_is_refused() -> None:
    def refused(how: RcRnnTraining, expected: str) -> None:
        with pytest.raises(cachewright.SpecError, match=expected):
            train_rc_rnn(made_up(1), "kind", how=how)

    refused(replace(HOW, share=1.0), "`share`: found 1.0, expected more than 0 and less than 1")
    refused(replace(HOW, layers=4), "`layers`: found 4, expected 1 to 3")
    refused(replace(HOW, own=2.0), "`own`: found 2.0, expected 0 to 1")
    refused(replace(HOW, labels="all"), "`labels`: found `all`, expected remaining, residence")
    refused(replace(HOW, feedback="no"), "`feedback`: found `no`, expected labels, scheduled, none")
    refused(replace(HOW, batch=0), "`batch`: found 0, expected at least 1")
    refused(replace(HOW, window=100), "found 480 requests for validation, expected at least 800")


@pytest.mark.usefixtures("needs_jax")
def test_a_model_without_feedback_says_the_same_whatever_it_said_before() -> None:
    lessons = made_up(4)
    short = replace(HOW, epochs=2, feedback="none")
    file = train_rc_rnn(lessons, "kind", how=short).files["kind.safetensors"]
    forced, own = (_native.caching_labels(file, lessons.rows, one) for one in (False, True))
    assert (forced == own).all()


@pytest.mark.usefixtures("needs_jax")
def test_boosted_trees_see_what_the_network_sees_and_no_labels() -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn (pip install 'cachewright[train]')")
    found = trees(made_up(5), HOW)
    assert found.cached == found.duration == 1.0
    assert found.hits is None
    # The label of the request before says all, and they are not told it.
    told = made_up(6)
    told.rows[:, 1:3] = 0
    told.cached[1:] = told.cached[:-1]
    assert trees(told, HOW).cached < 0.7


@pytest.mark.usefixtures("needs_jax")
def test_the_epoch_with_the_least_loss_is_kept_and_hits_are_written_down(traces: Path) -> None:
    path = traces / "mail.toml"
    path.write_text(STACK.replace("rc-rnn", "lru"))
    found = train_rc_rnn(
        caching_lessons(path, share=0.6), "mail", how=replace(HOW, epochs=4, stop="loss")
    )
    (model,) = found.report.models
    losses = [one.loss for one in model.curve]
    assert losses[model.best_epoch - 1] == min(losses)
    assert all(one.score is not None and 0 < one.score < 1 for one in model.curve)


def test_the_epoch_that_a_schedule_keeps() -> None:
    schedule = labelling.Schedule(20, 5, 10, 1e-3, 0.0, 1.0, 1)
    found = Epoch(updates=10, loss=0.5, score=0.7)
    unscored = Epoch(updates=10, loss=0.5)
    kept = (labelling.LEAST_LOSS, labelling.BEST_SCORE, labelling.LAST)
    assert [replace(schedule, keep=one).judged(3, found) for one in kept] == [0.5, -0.7, -3]
    assert replace(schedule, keep=labelling.BEST_SCORE).judged(3, unscored) == 0.5


def test_a_schedule_goes_from_the_labels_to_the_model_s_own() -> None:
    schedule = labelling.Schedule(20, 5, 10, 1e-3, 0.0, 1.0, 1, ramp=4)
    assert [schedule.own_in(epoch) for epoch in (0, 1, 4, 9)] == [0, 0.25, 1, 1]
    assert replace(schedule, own=0.5, ramp=0).own_in(0) == 0.5


@pytest.mark.usefixtures("needs_jax")
def test_the_epoch_with_most_hits_is_kept(traces: Path) -> None:
    path = traces / "mail.toml"
    path.write_text(STACK.replace("rc-rnn", "lru"))
    lessons = caching_lessons(path, share=0.6)
    assert lessons.split == 2400
    found = train_rc_rnn(lessons, "mail", how=replace(HOW, epochs=4, stop="hits"))
    (model,) = found.report.models
    scores = [one.score or 0.0 for one in model.curve]
    assert len(scores) == model.epochs
    assert scores[model.best_epoch - 1] == max(scores) > 0
    # The same labels, replayed by the stack itself after as many requests.
    said = _native.caching_labels(found.files["mail.safetensors"], lessons.rows, True)
    Path("own.labels").write_bytes(_native.caching_table(said))
    warm = int(lessons.time_ns[lessons.split])
    models = 'models = { mail = "own.labels" }'
    text = STACK.replace('policy = "rc-rnn"', f'policy = "rc-rnn"\n{models}')
    path.write_text(text.replace("windows = 0", f'windows = 0\nwarmup = "{warm}ns"'))
    replayed = cachewright.run(path).answer.cases[0].total.hit_ratio
    assert model.hits.own.later == pytest.approx(replayed, abs=1e-9)


def test_perfect_labels_hit_nearly_what_their_oracle_does(traces: Path) -> None:
    path = traces / "mail.toml"
    path.write_text(STACK.replace("rc-rnn", "lru"))
    lessons = caching_lessons(path, share=0.6)
    accesses, hits = lessons.oracle
    found = lessons.hit_ratio(lessons.said(), lessons.split, len(lessons.cached), HOW.requeue_hits)
    assert found is not None
    assert 0.8 * hits / accesses < found <= hits / accesses + 0.05


def test_lessons_are_what_the_policy_sees(traces: Path) -> None:
    path = traces / "mail.toml"
    path.write_text(STACK.replace("rc-rnn", "lru"))
    found = caching_lessons(path)
    requests = (traces / "a.csv").read_text().splitlines()
    assert len(found.rows) == len(found.cached) == len(requests) == 4000
    named = dict(zip(found.names, found.rows.T, strict=True))
    for number, line in enumerate(requests[:500]):
        _, op, _, length, _ = line.split(",")
        assert named["write"][number] == (op == "W")
        assert np.floor(named["size"][number]) == np.floor(np.log2(int(length) / 512))
    assert named["previous_cached"][1:].tolist() == found.cached[:-1].tolist()
    assert set(named["distance"][:1]) == {32.0}
    first = caching_lessons(path, features="paper")
    assert list(first.names) == NAMES
    for one, other in zip(columns(found)[1:], columns(first)[1:], strict=True):
        assert (one == other).all()
    with pytest.raises(cachewright.SpecError, match="`features`: found `all`, expected paper"):
        caching_lessons(path, features="all")


@pytest.mark.usefixtures("needs_jax")
def test_the_command_trains_what_its_stack_runs(traces: Path, command: Command) -> None:
    path = traces / "mail.toml"
    path.write_text(STACK.replace("rc-rnn", "lru"))
    options = {"units": 8, "layers": 1, "window": 10, "batch": 8, "epochs": 2, "updates": 10}
    how = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    answer = command("train", "rc-rnn", path, "--out", "models", *how)
    assert answer.status == 0, answer.err
    assert "later part, seed 1" in answer.out
    report = load(CachingReport, json.loads(Path("models/mail.json").read_text()))
    assert (report.kind, report.control) == ("mail", None)
    models = 'models = { mail = "models/mail.safetensors" }'
    path.write_text(STACK.replace('policy = "rc-rnn"', f'policy = "rc-rnn"\n{models}'))
    result = cachewright.run(path)
    assert 0 < result.answer.cases[0].tenants[0].hit_ratio < 1
