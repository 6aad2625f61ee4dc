"""Models of lifetimes: `shiro` with one model, with one per kind, trained online, and rules.

For: lab/studies/one_model.py. Must never know: how a separation decides. A value is (F-U)/U over
ten drive writes of the capture that judges, with `death-rate` for all, at 7 % over-provisioning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median_low

import numpy as np

import cachewright
from cachewright import RunError, SpecError
from cachewright.train import JaxTrainer, Window, train_shiro
from judge_drives import DRIVE_WRITES, RECLAIM, SUPERBLOCK
from one_model_kinds import Kind, Outcome

# The settings for a model that is trained once (docs/training.md).
FROZEN = '{ name = "shiro", censored = "final", threshold_window = 1.0 }'
ONLINE = ("shiro", "shiro-x", "sepbit")
# What a window of a whole trace may hold, as in training before the run.
MOST_STEPS = 200_000
SEED = 1


def lesson(kind: Kind) -> Window | None:
    """Return what the first capture of a kind teaches; nothing where it has too few writes."""
    kept: list[Window] = []

    def keep(window: Window) -> bytes:
        kept.append(window)
        raise RunError("the window is kept, and no model made of it")

    try:
        train_shiro(str(kind.trains), share=0.99, separation=FROZEN, trainer=keep)
    except (RunError, SpecError) as error:
        if not kept:
            print(f"drives: {kind.name}: left out: {error}", file=sys.stderr)
    return kept[0] if kept else None


def joined(windows: Sequence[Window]) -> Window:
    """Return a window with an equal number of steps of each, drawn by series."""
    rng = np.random.default_rng(SEED)
    inputs, labels, bounds = [], [], [0]
    for window in windows:
        series, steps = list(window.series()), 0
        for index in rng.permutation(len(series)):
            if steps >= MOST_STEPS // len(windows):
                break
            rows, own = series[index]
            inputs.append(rows)
            labels.append(own)
            bounds.append(bounds[-1] + len(own))
            steps += len(own)
    return Window(
        case=0,
        number=0,
        first=True,
        threshold=median_low([window.threshold for window in windows]),
        seed=SEED,
        features=windows[0].features,
        inputs=np.concatenate(inputs),
        labels=np.concatenate(labels),
        bounds=np.array(bounds, dtype=np.int64),
    )


def extra(kind: Kind, separation: str, out: Path, model: Path | None = None) -> float:
    """Return (F-U)/U of a separation on the second capture of a kind."""
    load = kind.judges.with_name(kind.judges.name.replace(".csv.zst", ".load.csv.zst"))
    frozen = {"model": str(model)} if model else {}
    answer = cachewright.wa(
        str(kind.judges),
        [separation],
        reclaims=(RECLAIM,),
        op=("7%",),
        capacity="live",
        superblock=SUPERBLOCK,
        loop=True,
        drive_writes=DRIVE_WRITES,
        load=(str(load),) if load.is_file() else (),
        out=out,
        **frozen,  # type: ignore[arg-type]
    ).answer
    return answer.cases[0].extra_writes


def outcomes(kinds: Sequence[Kind], out: Path) -> Iterator[Outcome]:
    """Yield what every separation gave on every kind that a drive can replay."""
    found = {kind.name: lesson(kind) for kind in kinds}
    lessons = {name: window for name, window in found.items() if window}
    for kind in (one for one in kinds if one.name in lessons):
        own = lessons[kind.name]
        others = [one for name, one in lessons.items() if name != kind.name]
        courses = {"one model of the other kinds": others, "a model of this kind": [own]}
        values = []
        try:
            for name, windows in courses.items():
                folder = out / kind.name / name.replace(" ", "-")
                folder.mkdir(parents=True, exist_ok=True)
                file = folder / "shiro.safetensors"
                if not file.is_file():
                    file.write_bytes(JaxTrainer()(joined(windows)))
                value = extra(kind, FROZEN, folder / "run", file)
                values.append(Outcome(f"`shiro`, {name}", kind.name, value))
            for name in ONLINE:
                title = f"`{name}`" + (", trained online" if name == "shiro" else "")
                value = extra(kind, name, out / kind.name / name)
                values.append(Outcome(title, kind.name, value))
        except (RunError, SpecError) as error:
            print(f"drives: {kind.name}: left out: {error}", file=sys.stderr)
            continue
        print(f"drives: {kind.name}", file=sys.stderr)
        yield from values
