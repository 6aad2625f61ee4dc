"""What every captured application shares: where it works, its deadline, random draws, workers.

For: the base class of the applications. Must never know: how a trace is recorded. Everything
random comes from the seed. Units: seconds, bytes.
"""

from __future__ import annotations

import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

SECTOR = 512


class Zipf:
    """Ranks drawn with P(rank) ~ 1 / (rank + 1) ** alpha, given to items in random order."""

    def __init__(self, count: int, alpha: float, seed: int) -> None:
        weights = 1.0 / np.arange(1, count + 1) ** alpha
        self.cumulative = np.cumsum(weights / weights.sum())
        self.items: NDArray[np.int64] = np.random.default_rng(seed).permutation(count)

    def draw(self, rng: random.Random) -> int:
        """Return one item."""
        rank = int(np.searchsorted(self.cumulative, rng.random()))
        return int(self.items[min(rank, len(self.items) - 1)])

    def draws(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Return `count` items."""
        ranks = np.searchsorted(self.cumulative, rng.random(count))
        return self.items[np.minimum(ranks, len(self.items) - 1)]


def read_whole(path: Path) -> int:
    """Read a file from end to end; return its length."""
    total = 0
    with path.open("rb", buffering=0) as file:
        while part := file.read(1 << 17):
            total += len(part)
    return total


@dataclass(frozen=True)
class Place:
    """Where an application works, for how long, and its seed; `phase` counts its runs before."""

    data: Path
    scratch: Path
    seed: int
    seconds: float
    volume_bytes: int = 0
    statistics: str = ""
    phase: int = 0


@dataclass
class Application:
    """One application: `prepare` makes its data, `run` is what is captured.

    The fields of a subclass are its settings.
    """

    name: ClassVar[str]
    place: Place
    deadline: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.place.seconds

    @property
    def data(self) -> Path:
        """The folder that is captured."""
        return self.place.data

    def left(self) -> float:
        """Return the seconds left."""
        return self.deadline - time.monotonic()

    def prepare(self) -> None:
        """Make the data."""
        raise NotImplementedError

    def run(self) -> None:
        """Do the work that is captured."""
        raise NotImplementedError

    def wait_turn(self, rng: random.Random, per_second: float) -> None:
        """Wait for the next operation of a worker; 0 per second does not wait."""
        if per_second > 0.0:
            time.sleep(max(0.0, min(rng.expovariate(per_second), self.left())))

    def written_bytes(self) -> int:
        """Return the bytes written to the volume so far, by the loop device's count."""
        return int(Path(self.place.statistics).read_text().split()[6]) * SECTOR

    def fork(self, count: int, work: Callable[[int, random.Random], None]) -> None:
        """Run `work(number, rng)` in `count` processes until all return."""
        children = [self._child(number, work) for number in range(count)]
        statuses = [os.waitpid(child, 0)[1] for child in children]
        if any(statuses):
            sys.exit(f"{self.name}: a worker failed")

    def _child(self, number: int, work: Callable[[int, random.Random], None]) -> int:
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            seed = self.place.seed * 1000 + self.place.phase * 100 + number
            work(number, random.Random(seed))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)


def settled(kind: type[Application], place: Place, settings: dict[str, Any]) -> Application:
    """Return an application with its settings. Errors: `ValueError` naming the setting."""
    known = {one.name: one.default for one in fields(kind) if one.init and one.name != "place"}
    for key, value in settings.items():
        if key not in known:
            expected = ", ".join(known)
            raise ValueError(f"{kind.name}: no setting {key!r}, expected one of {expected}")
        if type(value) is not type(known[key]):
            expected = type(known[key]).__name__
            raise ValueError(f"{kind.name}: setting {key!r} is {value!r}, expected {expected}")
    return kind(place, **settings)
