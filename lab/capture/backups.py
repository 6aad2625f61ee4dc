"""Backups: Borg's repositories, with clients that change between their archives.

For: one application. Must never know: how a trace is recorded. The volume holds repositories and
Borg's caches; the clients' files lie in the scratch folder. Units: KiB in settings.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from application import Application

FOLDERS = 16


@dataclass
class Backups(Application):
    """Repositories side by side: archives, restores, pruning, compaction, checks."""

    name = "backups"
    repositories: int = 2
    clients: int = 4
    files: int = 700
    mean_kb: float = 48.0
    changed: float = 0.06
    kept: int = 4
    restored: float = 0.3
    checked: float = 0.05

    def borg(self, *arguments: str, folder: Path | None = None) -> None:
        """Run Borg with its own files on the volume."""
        own = {
            "BORG_BASE_DIR": str(self.data / "base"),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }
        subprocess.run(["borg", *arguments], check=True, env=os.environ | own, cwd=folder)

    def client(self, repository: int, number: int) -> Path:
        """Return the folder of a client."""
        return self.place.scratch / "clients" / f"{repository}-{number}"

    def body(self, rng: random.Random) -> bytes:
        """Return the content of a file: half of it is compressible."""
        mean = math.log(self.mean_kb * 1024) - 0.72
        length = max(400, min(4 << 20, int(rng.lognormvariate(mean, 1.2))))
        return rng.randbytes(length // 2) + b"line of text\n" * (length // 26)

    def write(self, folder: Path, number: int, rng: random.Random) -> None:
        """Write a file of a client."""
        path = folder / f"d{number % FOLDERS:02d}" / f"f{number:05d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.body(rng))

    def prepare(self) -> None:
        """Make the clients' files and a first archive of each."""
        rng = random.Random(self.place.seed)
        for repository in range(self.repositories):
            self.borg("init", "-e", "none", str(self.data / f"repository{repository}"))
            for number in range(self.clients):
                for file in range(self.files):
                    self.write(self.client(repository, number), file, rng)
                self.archive(repository, number, 0)

    def archive(self, repository: int, number: int, serial: int) -> None:
        """Make an archive of a client."""
        place = f"{self.data / f'repository{repository}'}::c{number}-{serial:04d}"
        self.borg("create", "-C", "lz4", place, ".", folder=self.client(repository, number))

    def run(self) -> None:
        """Let one process per repository work."""
        self.fork(self.repositories, self.work)

    def work(self, repository: int, rng: random.Random) -> None:
        """Archive one client after another; restore, prune and check now and then."""
        place, serials = str(self.data / f"repository{repository}"), [0] * self.clients
        while self.left() > 0:
            number = rng.randrange(self.clients)
            for _ in range(int(self.changed * self.files)):
                file = rng.randrange(int(self.files * 1.05))
                self.write(self.client(repository, number), file, rng)
            serials[number] += 1
            self.archive(repository, number, serials[number])
            if serials[number] % self.kept == 0:
                keep = ["--keep-last", str(self.kept), "--glob-archives", f"c{number}-*"]
                self.borg("prune", *keep, place)
                self.borg("compact", place)
            if self.left() > 0 and rng.random() < self.restored:
                self.restore(place, f"c{number}-{serials[number]:04d}")
            if self.left() > 0 and rng.random() < self.checked:
                self.borg("check", "--repository-only", place)

    def restore(self, place: str, archive: str) -> None:
        """Restore an archive beside the clients and throw it away."""
        folder = Path(f"{self.place.scratch / 'restored'}-{os.getpid()}")
        folder.mkdir()
        self.borg("extract", f"{place}::{archive}", folder=folder)
        shutil.rmtree(folder)
