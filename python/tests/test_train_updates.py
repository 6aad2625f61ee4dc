"""Updates of models of icache: when they take over, and that they see nothing after that.

For: `train_icache` with `retrain_every`. Must never know: devices; replays are made up. Tests that
train need jax and optax.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_train_icache import HOW, STEPS, needs_jax, replay

from cachewright import RunError
from cachewright.train import ICacheTraining, train_icache
from cachewright.train.cutting import Cutting
from cachewright.train.demand import Segments, TenantSegments
from cachewright.train.model_file import described

__all__ = ["needs_jax"]


def before(found: Segments, intervals: int, seed: int) -> Segments:
    """Return a replay whose first intervals are kept; what comes after is another."""
    rng, steps = np.random.default_rng(seed), intervals * STEPS

    def other(rows: NDArray[Any], until: int) -> NDArray[Any]:
        rows = rows.copy()
        rng.shuffle(rows[..., until:], axis=-1)
        rows[..., until:] = rows[..., until:] * 3 + 1
        return rows

    def cut(one: TenantSegments) -> TenantSegments:
        return replace(
            one,
            features=other(one.features.T, steps).T,
            requests=other(one.requests, steps),
            response_ns=other(one.response_ns, steps),
        )

    return replace(found, tenants=[cut(one) for one in found.tenants])


def test_borders_of_updates_come_after_the_part_that_trains() -> None:
    cut = Cutting(STEPS, STEPS, 3, 0.6)
    assert cut.borders(10 * STEPS, 0) == []
    assert cut.borders(10 * STEPS, 2) == [8]
    assert cut.borders(10 * STEPS, 1) == [7, 8, 9]
    assert cut.borders(10 * STEPS - 1, 3) == [9], "a last interval that is cut short"
    assert cut.borders(10 * STEPS, 4) == [], "none at the end"


@pytest.mark.usefixtures("needs_jax")
def test_updates_go_on_from_the_weights_and_see_nothing_after_their_border(folder: Path) -> None:
    how = ICacheTraining(**{**HOW.__dict__, "epochs": 2, "retrain_every": 8, "from_off": False})
    found = replay()
    one = replace(found, tenants=found.tenants[:1])
    trained = train_icache(one, folder / "models", how)
    model = trained.report.tenants[0].models[0]
    updates = ("a.update1.safetensors", "a.update2.safetensors")
    assert model.updates == updates
    tables = (folder / "models" / "models.toml").read_text()
    assert all(name in tables for name in updates)
    files = [trained.files[name] for name in [model.file, *updates]]
    assert len(set(files)) == 3, "each learned something"
    about = [described(file) for file in files]
    assert [one.notes.get("from_interval") for one in about] == [None, "44", "52"]
    normal = [one.normalisation for one in about]
    assert normal[0] == normal[1] == normal[2], "carried on"
    # What comes after a border changes no update that takes over there, or before.
    for intervals, same in ((36, 1), (44, 2), (52, 3)):
        again = train_icache(before(one, intervals, 5), None, how).files
        other = [again[name] for name in [model.file, *updates]]
        assert other[:same] == files[:same]
        assert all(a != b for a, b in zip(other[same:], files[same:], strict=True))


@pytest.mark.usefixtures("needs_jax")
def test_updates_tell_their_progress_and_can_be_cancelled() -> None:
    how = ICacheTraining(**{**HOW.__dict__, "epochs": 1, "retrain_every": 8, "from_off": False})
    found = replay()
    one = replace(found, tenants=found.tenants[:1])
    told: list[str] = []
    train_icache(one, None, how, progress=lambda stage, *_: told.append(stage))
    first = "training a, seed 1"
    assert told == [first, f"{first}, update 1", f"{first}, update 2"]
    with pytest.raises(RunError, match="cancelled by the progress call-back"):
        train_icache(one, None, how, progress=lambda stage, *_: "update 2" not in stage)
