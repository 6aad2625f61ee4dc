"""One model for many volumes, or one for each, or learning online: lab/one-model.md.

`python -m cachewright_lab.one_model --captures DIR --traces DIR --out DIR --write`. A kind has two
captures: what trains sees the first, the second judges. One model learns from the first captures of
all kinds but the one that it is judged on. Models of caching are `rc-rnn`, judged by hits per block
access over the whole second capture, without devices; those of lifetimes are `shiro`, judged by
(F-U)/U over ten drive writes, with `death-rate` for all, at 7 % over-provisioning. Finished models
and cases are kept in the folder of results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any

import numpy as np

import cachewright
from cachewright import RunError, SpecError
from cachewright.train import JaxTrainer, RcRnnTraining, Window, train_rc_rnn, train_shiro
from cachewright.train.labelled import Lessons, caching_lessons
from cachewright_lab.judgement import DRIVE_WRITES, RECLAIM, SUPERBLOCK
from cachewright_lab.judges import FOLDER, JUDGES, KINDS, fresh
from cachewright_lab.study import LAB, Programme, Row, Study, grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE = LAB / "one-model.md"

# Caching.
CAPACITY = "20%wss"
ONLINE = ("lru", "access-frequency", "cacheus", "duel-x")
BOUND = "benefit-oracle"
# On oltp a network of the published size does no better (docs/training.md).
HOW = RcRnnTraining(units=64, layers=1, epochs=20)
# A tenth more than the training asks for, of the fifth that says when to stop.
LEAST_REQUESTS = int(1.1 * 5 * HOW.window * HOW.batch)
TRAINS = 0.8

# Lifetimes.
# The settings for a model that is trained once (docs/training.md).
FROZEN = '{ name = "shiro", censored = "final", threshold_window = 1.0 }'
SEPARATIONS = ("shiro", "shiro-x", "sepbit")
# What a window of a whole trace may hold, as in training before the run.
MOST_STEPS = 200_000
SEED = 1


@dataclass(frozen=True)
class Kind:
    """A kind of workload: the capture that trains, and the one that judges."""

    name: str
    trains: Path
    judges: Path


def kinds(traces: Path, captures: Path) -> list[Kind]:
    """Return the kinds of which two captures are there; say which are not."""
    captured = traces / "captured"
    files = [(name, f"{name}.csv.zst") for name in JUDGES]
    pairs = [Kind(name, captured / file, FOLDER / file) for name, file in files]
    found = fresh(captures)
    for name in KINDS:
        seeds = [volume.path for volume in found if volume.name == name]
        if len(seeds) > 1:
            pairs.append(Kind(name, seeds[0], seeds[1]))
        else:
            print(f"one_model: left out, fewer than two captures: {name}", file=sys.stderr)
    missing = [kind.name for kind in pairs if not (kind.trains.is_file() and kind.judges.is_file())]
    if missing:
        print(f"one_model: left out, no file: {', '.join(missing)}", file=sys.stderr)
    return [kind for kind in pairs if kind.name not in missing]


def row(scheme: str, kind: Kind, value: float) -> Row:
    """Return what one scheme gave on the capture of a kind that judges."""
    return Row(kind.name, "", scheme, {"value": value})


def stack(path: Path, models: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the stack of a capture."""
    asked = {"policy": "rc-rnn", "models": models} if models else {"policy": "lru"}
    return {
        "name": "one",
        "cache": {"capacity": CAPACITY, **asked},
        "tenant": [{"name": "one", "trace": str(path)}],
    }


def joined_lessons(parts: Sequence[Lessons], judges: Lessons) -> Lessons:
    """Return lessons that begin with those of all parts, and end with those that judge.

    The first 80 % of every part come before the last 20 %, which say when to stop.
    """
    cuts = [(part, int(TRAINS * len(part.cached))) for part in parts]
    order = [part.part(0, cut) for part, cut in cuts]
    order += [part.part(cut, len(part.cached)) for part, cut in cuts]
    split = sum(len(one.cached) for one in order)

    def column(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(one, name) for one in (*order, judges)])

    columns: dict[str, Any] = {
        name: column(name) for name in ("rows", "cached", "duration", "time_ns")
    }
    return Lessons(judges.capacity_blocks, judges.names, split=split, **columns)


def lessons_of(kinds: Sequence[Kind]) -> dict[str, Lessons]:
    """Return the lessons of each kind's first capture that has enough requests."""
    found = {kind.name: caching_lessons(stack(kind.trains)) for kind in kinds}
    few = [name for name, one in found.items() if len(one.cached) < LEAST_REQUESTS]
    if few:
        print(f"caching: left out, too few requests: {', '.join(few)}", file=sys.stderr)
    return {name: one for name, one in found.items() if name not in few}


def hits(path: Path, policy: str, out: Path, models: dict[str, str] | None = None) -> float:
    """Return hits per access of a policy on a capture."""
    settings = {"cache.policy": policy}
    case = cachewright.run(stack(path, models), settings=settings, out=out).answer.cases[0]
    return case.total.hits / max(case.total.accesses, 1)


def of_caching(given: argparse.Namespace) -> Iterator[Row]:
    """Yield what every policy gave on every kind."""
    found, out = kinds(given.traces, given.captures), given.out / "caching"
    lessons = lessons_of(found)
    for kind in (one for one in found if one.name in lessons):
        own = lessons[kind.name]
        others = [one for name, one in lessons.items() if name != kind.name]
        courses = {"one model of the other kinds": others, "a model of this kind": [own]}
        for name, parts in courses.items():
            folder = out / kind.name / name.replace(" ", "-")
            file = folder / "any.safetensors"
            if not file.is_file():
                train_rc_rnn(joined_lessons(parts, own), "any", folder, HOW)
            value = hits(kind.judges, "rc-rnn", folder / "run", {"any": str(file)})
            yield row(f"`rc-rnn`, {name}", kind, value)
        for policy in (*ONLINE, BOUND):
            name = f"`{policy}`" + (" (bound)" if policy == BOUND else "")
            value = hits(kind.judges, policy, out / kind.name / policy)
            yield row(name, kind, value)
        print(f"caching: {kind.name}", file=sys.stderr)


def window_of(kind: Kind) -> Window | None:
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


def joined_windows(windows: Sequence[Window]) -> Window:
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


def of_drives(given: argparse.Namespace) -> Iterator[Row]:
    """Yield what every separation gave on every kind that a drive can replay."""
    found, out = kinds(given.traces, given.captures), given.out / "drives"
    taught = {kind.name: window_of(kind) for kind in found}
    lessons = {name: window for name, window in taught.items() if window}
    for kind in (one for one in found if one.name in lessons):
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
                    file.write_bytes(JaxTrainer()(joined_windows(windows)))
                value = extra(kind, FROZEN, folder / "run", file)
                values.append(row(f"`shiro`, {name}", kind, value))
            for name in SEPARATIONS:
                title = f"`{name}`" + (", trained online" if name == "shiro" else "")
                value = extra(kind, name, out / kind.name / name)
                values.append(row(title, kind, value))
        except (RunError, SpecError) as error:
            print(f"drives: {kind.name}: left out: {error}", file=sys.stderr)
            continue
        print(f"drives: {kind.name}", file=sys.stderr)
        yield from values


def table(rows: Sequence[Row]) -> str:
    """Return a row per scheme, a column per kind, and the mean over kinds."""
    names = list(dict.fromkeys(one.subject for one in rows))
    values = {(one.scheme, one.subject): one.values["value"] for one in rows}
    body = []
    for scheme in dict.fromkeys(one.scheme for one in rows):
        own = [values[scheme, name] for name in names]
        body.append([scheme, *(f"{value:.3f}" for value in (*own, sum(own) / len(own)))])
    return grid(["scheme", *names, "mean"], body)


def options(parser: argparse.ArgumentParser) -> None:
    """Add what is given beside the usual."""
    parser.add_argument("--captures", type=Path, required=True, help="folder of fresh captures")
    parser.add_argument("--traces", type=Path, required=True, help="folder with captured/")


STUDIES: Mapping[str, Study] = {
    "caching": Study(of_caching, lambda _, rows: {"caching": table(rows)}),
    "drives": Study(of_drives, lambda _, rows: {"drives": table(rows)}),
}
PROGRAMME = Programme(
    "One model for many volumes, or one for each, or learning online?", PAGE, STUDIES, options
)

if __name__ == "__main__":
    sys.exit(PROGRAMME.main())
