"""Key-value stores: RocksDB under its own benchmark, SQLite overwritten in place.

For: two applications. Must never know: how a trace is recorded. Units: bytes, seconds; shares of
the volume from 0 to 1.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
from dataclasses import dataclass

import numpy as np

from application import Application, Zipf

# Four rows of about 900 bytes lie on a page of 4 KiB.
ROWS_PER_PAGE = 4
ROW_BYTES = 1030


@dataclass
class Kv(Application):
    """RocksDB: overwrites, then reads while writing, a mix, seeks; or overwrites alone."""

    name = "kv"
    num: int = 1_200_000
    value: int = 400
    buffer: int = 16 << 20
    cache: int = 8 << 20
    threads: int = 4
    exp_range: float = 10.0
    levels_base: int = 64 << 20
    only_overwrite: bool = False

    def bench(self, kind: str, *options: str) -> None:
        """Run one of RocksDB's benchmarks."""
        fixed = {
            "benchmarks": kind,
            "db": self.data / "db",
            "num": self.num,
            "value_size": self.value,
            "write_buffer_size": self.buffer,
            "cache_size": self.cache,
            "target_file_size_base": self.buffer // 2,
            "max_bytes_for_level_base": self.levels_base,
            "compression_type": "none",
            "bloom_bits": 10,
            "open_files": 200,
            "max_background_jobs": 3,
            "key_size": 20,
            "seed": self.place.seed,
        }
        arguments = [f"--{key}={value}" for key, value in fixed.items()]
        command = ["db_bench", *arguments, *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def prepare(self) -> None:
        """Load the database."""
        self.bench("fillrandom")

    def run(self) -> None:
        """Run the benchmarks one after the other, each for its share of the time."""
        seconds = self.place.seconds
        use = ["--use_existing_db=1", f"--read_random_exp_range={self.exp_range}"]

        def timed(kind: str, share: float, threads: int, *options: str) -> None:
            limits = [f"--duration={seconds * share:.0f}", f"--threads={threads}"]
            self.bench(kind, *limits, *options, *use)

        if self.only_overwrite:
            timed("overwrite", 1.0, 1)
            return
        timed("overwrite", 0.3, 1)
        limit = f"--benchmark_write_rate_limit={6 << 20}"
        timed("readwhilewriting", 0.4, self.threads, limit)
        timed("readrandomwriterandom", 0.2, 2, "--readwritepercent=70")
        timed("seekrandom", 0.1, 2, "--seek_nexts=50")


@dataclass
class Overwrite(Application):
    """SQLite with a write-ahead log, updated in place until the volume was written so often."""

    name = "overwrite"
    fill: float = 0.80
    alpha: float = 1.2
    batch: int = 64
    drive_writes: float = 10.5
    value: int = 900
    checkpoint_pages: int = 1000

    def database(self) -> sqlite3.Connection:
        """Open the database."""
        database = sqlite3.connect(self.data / "kv.db", isolation_level=None)
        settings = {
            "page_size": 4096,
            "journal_mode": "WAL",
            "synchronous": "NORMAL",
            "wal_autocheckpoint": self.checkpoint_pages,
            "cache_size": -8192,
        }
        for key, value in settings.items():
            database.execute(f"PRAGMA {key}={value}")
        return database

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return int(self.place.volume_bytes * self.fill / ROW_BYTES)

    def prepare(self) -> None:
        """Fill the table."""
        rng, database = random.Random(self.place.seed), self.database()
        database.execute("CREATE TABLE kv(id INTEGER PRIMARY KEY, v BLOB)")
        for first in range(0, self.rows, 2000):
            numbers = range(first, min(self.rows, first + 2000))
            rows = [(number, rng.randbytes(self.value)) for number in numbers]
            database.execute("BEGIN")
            database.executemany("INSERT INTO kv VALUES(?,?)", rows)
            database.execute("COMMIT")
        database.close()

    def run(self) -> None:
        """Update rows until the time or the drive writes are up."""
        seed, rng = self.place.seed, random.Random(self.place.seed)
        pages = Zipf(self.rows // ROWS_PER_PAGE, self.alpha, seed)
        numbers, database = np.random.default_rng(seed), self.database()
        goal = self.written_bytes() + self.drive_writes * self.place.volume_bytes
        while self.left() > 0 and self.written_bytes() < goal:
            drawn = pages.draws(numbers, self.batch * 50) * ROWS_PER_PAGE
            keys = (drawn + numbers.integers(0, ROWS_PER_PAGE, len(drawn))).tolist()
            for first in range(0, len(keys), self.batch):
                chosen = keys[first : first + self.batch]
                rows = [(rng.randbytes(self.value), key) for key in chosen]
                database.execute("BEGIN")
                database.executemany("UPDATE kv SET v=? WHERE id=?", rows)
                database.execute("COMMIT")
        database.close()
