"""A mail server on maildir folders: delivery, reading, flagging, deletion, search.

For: one application. Must never know: how a trace is recorded. Every delivery is synced. Units:
KiB in settings, bytes in files; weights of the kinds of work have no unit.
"""

from __future__ import annotations

import math
import os
import random
from dataclasses import dataclass
from pathlib import Path

from application import Application, Zipf, read_whole

KINDS = ("deliver", "read", "append", "delete", "flag", "search")
LOADED_MOST_BYTES = 200_000
SEARCHED_MOST = 300


@dataclass
class Mail(Application):
    """Workers on mailboxes whose popularity follows Zipf's law.

    `per_second` bounds the operations of all workers; 0 does not.
    """

    name = "mail"
    boxes: int = 300
    messages: int = 40_000
    mean_kb: float = 14.0
    alpha: float = 0.9
    workers: int = 8
    per_second: float = 0.0
    deliver: int = 28
    read: int = 42
    append: int = 10
    delete: int = 14
    flag: int = 5
    search: int = 1

    def box(self, number: int) -> Path:
        """Return the folder of a mailbox."""
        return self.data / "mail" / f"{number % 64:02x}" / f"user{number:05d}"

    def message(self, rng: random.Random) -> bytes:
        """Return a message."""
        mean = math.log(self.mean_kb * 1024) - 0.72
        return rng.randbytes(max(300, int(rng.lognormvariate(mean, 1.2))))

    def prepare(self) -> None:
        """Fill the mailboxes."""
        rng = random.Random(self.place.seed)
        sizes = Zipf(self.boxes, 0.5, self.place.seed + 1)
        for number in range(self.boxes):
            for folder in ("tmp", "new", "cur"):
                (self.box(number) / folder).mkdir(parents=True)
        for number in range(self.messages):
            name = f"{number:09d}.{rng.randrange(10**6)}:2,S"
            path = self.box(sizes.draw(rng)) / "cur" / name
            path.write_bytes(self.message(rng)[:LOADED_MOST_BYTES])

    def run(self) -> None:
        """Let the workers work."""
        self.fork(self.workers, self.work)

    def work(self, number: int, rng: random.Random) -> None:
        """Do one piece of work after another."""
        popular = Zipf(self.boxes, self.alpha, self.place.seed)
        weights = [getattr(self, kind) for kind in KINDS]
        serial = 10**9 * (number + 1) + 10**7 * self.place.phase
        while self.left() > 0:
            self.wait_turn(rng, self.per_second / self.workers)
            box = self.box(popular.draw(rng))
            kind = rng.choices(KINDS, weights)[0]
            serial += 1
            try:
                self.do(kind, box, f"{serial}.{rng.randrange(10**6)}", rng)
            except FileNotFoundError:
                continue  # Another worker was first.

    def do(self, kind: str, box: Path, name: str, rng: random.Random) -> None:
        """Do one piece of work in a mailbox."""
        if kind == "deliver":
            synced(box / "tmp" / name, self.message(rng), os.O_EXCL)
            (box / "tmp" / name).rename(box / "new" / name)
            log(box, f"deliver {name}{' ' * 100}")
        elif kind == "append":
            synced(box / "archive.mbox", self.message(rng), os.O_APPEND)
        elif kind == "search":
            for one in os.listdir(box / "cur")[:SEARCHED_MOST]:
                read_whole(box / "cur" / one)
        else:
            self.touch(kind, box, rng)

    def touch(self, kind: str, box: Path, rng: random.Random) -> None:
        """Read, flag or delete a message, recent ones more often (deletes: old ones)."""
        folder, names = "new", sorted(os.listdir(box / "new"))
        if not names or kind != "read" or rng.random() >= 0.6:
            folder, names = "cur", sorted(os.listdir(box / "cur"))
        if not names:
            return
        age = min(int(rng.expovariate(6.0 / len(names))), len(names) - 1)
        name = names[age] if kind == "delete" else names[-1 - age]
        path = box / folder / name
        if kind == "delete":
            path.unlink()
            log(box, f"expunge {name}")
        elif kind == "flag":
            path.rename(path.with_name(name + rng.choice("RFT")))
            log(box, f"flag {name}")
        else:
            read_whole(path)
            if folder == "new":
                path.rename(box / "cur" / f"{name}:2,S")


def synced(path: Path, body: bytes, flags: int) -> None:
    """Write to a file and sync it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags)
    os.write(descriptor, body)
    os.fsync(descriptor)
    os.close(descriptor)


def log(box: Path, line: str) -> None:
    """Append a line to a mailbox's log and sync its data."""
    descriptor = os.open(box / "index.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, line.encode() + b"\n")
    os.fdatasync(descriptor)
    os.close(descriptor)
