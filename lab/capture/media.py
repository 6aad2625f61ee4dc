"""A media server: paced viewers that read films from end to end, seek or stop; recorders.

For: one application. Must never know: how a trace is recorded. Units: MB, KiB, MB per second.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

from application import Application, Zipf

RECORDINGS_FROM = 10_000


@dataclass
class Video(Application):
    """Viewers of a library; `once` plays every film once in order instead (one viewer)."""

    name = "video"
    titles: int = 40
    mean_mb: float = 40.0
    viewers: int = 16
    rate_mb: float = 6.0
    alpha: float = 0.7
    chunk_kb: int = 256
    recorders: int = 1
    once: bool = False

    def path(self, number: int) -> Path:
        """Return the path of a film."""
        return self.data / "media" / f"{number:04d}.ts"

    @property
    def chunk(self) -> int:
        """Bytes of one request."""
        return self.chunk_kb << 10

    @property
    def pause(self) -> float:
        """Seconds between two requests of a viewer."""
        return self.chunk / (self.rate_mb * 1e6)

    def prepare(self) -> None:
        """Write the films."""
        rng = random.Random(self.place.seed)
        (self.data / "media").mkdir()
        noise = rng.randbytes(1 << 20)
        for title in range(self.titles):
            spread = 0.0 if self.once else self.mean_mb / 3
            with self.path(title).open("wb") as file:
                for _ in range(max(4, int(rng.gauss(self.mean_mb, spread)))):
                    file.write(noise)

    def record(self, number: int, rng: random.Random) -> None:
        """Write one recording after another."""
        noise, turn = rng.randbytes(self.chunk), 0
        while self.left() > 0:
            path = self.path(RECORDINGS_FROM + number * 10 + turn % 3)
            with path.open("wb") as file:
                while self.left() > 0 and file.tell() < self.mean_mb * 1e6:
                    file.write(noise)
                    time.sleep(self.pause * rng.uniform(0.8, 1.2))
            turn += 1

    def view(self, number: int, rng: random.Random) -> None:
        """View films until the time is up."""
        if self.once:
            for title in range(number, self.titles, self.viewers):
                self.play(self.path(title), rng, whole=True)
            return
        popular = Zipf(self.titles, self.alpha, self.place.seed)
        time.sleep(rng.uniform(0, 3))
        while self.left() > 0:
            self.play(self.path(popular.draw(rng)), rng, whole=False)

    def play(self, path: Path, rng: random.Random, whole: bool) -> None:
        """Read one film at its rate; at most a second is made up for."""
        with path.open("rb", buffering=0) as file:
            size = path.stat().st_size
            stop = size
            if not whole:
                if rng.random() < 0.3:
                    file.seek(rng.randrange(size) & ~4095)
                stop = file.tell() + int(size * rng.uniform(0.05, 1.2))
            clock = time.monotonic()
            while self.left() > 0 and file.tell() < stop and file.read(self.chunk):
                if not whole and rng.random() < 0.004:
                    file.seek(rng.randrange(size) & ~4095)
                clock = max(clock + self.pause, time.monotonic() - 1)
                time.sleep(max(0.0, clock - time.monotonic()))

    def run(self) -> None:
        """Let recorders and viewers work."""

        def work(number: int, rng: random.Random) -> None:
            if number < self.recorders:
                self.record(number, rng)
            else:
                self.view(number - self.recorders, rng)

        self.fork(self.viewers + self.recorders, work)
