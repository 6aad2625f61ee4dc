"""PostgreSQL under transactions, under scans and joins, and under sequential scans alone.

For: three applications of one database server. Must never know: how a trace is recorded. Needs
PostgreSQL's programs and a `postgres` user; the server listens on a socket in the scratch folder.
Units: seconds, rows.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from application import Application

ROWS_PER_SCALE = 100_000
USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


@dataclass
class Postgres(Application):
    """A server of its own."""

    shared_buffers: str = "16MB"
    max_wal_size: str = "256MB"
    checkpoint_timeout: str = "30s"

    @property
    def sockets(self) -> Path:
        """The folder of the server's socket."""
        return self.place.scratch / "pgsock"

    def program(self, name: str) -> str:
        """Return the path of one of PostgreSQL's programs."""
        folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not folders:
            raise FileNotFoundError("/usr/lib/postgresql/*/bin: PostgreSQL is not installed")
        return str(folders[-1] / name)

    def call(self, name: str, *arguments: str, check: bool = True) -> None:
        """Run one of PostgreSQL's programs as its user."""
        environment = dict(os.environ, PGHOST=str(self.sockets), PGDATABASE="postgres", LC_ALL="C")
        subprocess.run(
            [*USER, self.program(name), *arguments],
            check=check,
            env=environment,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def up(self, *options: str) -> None:
        """Start the server."""
        self.sockets.mkdir(exist_ok=True)
        shutil.chown(self.sockets, "postgres", "postgres")
        settings = [
            f"shared_buffers={self.shared_buffers}",
            f"max_wal_size={self.max_wal_size}",
            "min_wal_size=80MB",
            f"checkpoint_timeout={self.checkpoint_timeout}",
            'listen_addresses=""',
            f"unix_socket_directories={self.sockets}",
            "random_page_cost=1.5",
            "max_connections=50",
            "logging_collector=off",
            *options,
        ]
        self.control(
            "start",
            "-l",
            str(self.sockets / "log"),
            "-o",
            " ".join(map("-c {}".format, settings)),
        )

    def control(self, verb: str, *arguments: str) -> None:
        """Start or stop the server and wait for it."""
        data = str(self.data / "pg")
        self.call("pg_ctl", "-D", data, "-w", "-t", "300", *arguments, verb)

    def down(self) -> None:
        """Stop the server."""
        self.control("stop", "-m", "fast")

    def initialise(self) -> None:
        """Make an empty database and start its server without syncs."""
        (self.data / "pg").mkdir()
        try:
            shutil.chown(self.data / "pg", "postgres", "postgres")
        except LookupError as error:
            raise FileNotFoundError(f"{error}, expected the user of package postgresql") from None
        self.call(
            "initdb",
            "-D",
            str(self.data / "pg"),
            "-E",
            "UTF8",
            "--locale=C",
            "--wal-segsize=16",
            "-N",
        )
        self.up("fsync=off", "full_page_writes=off", "maintenance_work_mem=128MB")

    def sql(self, text: str, check: bool = True) -> None:
        """Run statements."""
        self.call("psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-c", text, check=check)


@dataclass
class Oltp(Postgres):
    """Transactions in the manner of TPC-B, look-ups, ranges and batches; rows by Zipf's law.

    `per_second` bounds the transactions of all clients; 0 does not.
    """

    name = "oltp"
    scale: int = 80
    clients: int = 8
    per_second: float = 0.0
    alpha: float = 1.05
    update: int = 50
    lookup: int = 35
    range: int = 10
    batch: int = 5

    def prepare(self) -> None:
        """Make pgbench's tables."""
        self.initialise()
        self.call("pgbench", "-i", "-q", "-I", "dtgvp", "-s", str(self.scale))
        self.down()

    def scripts(self) -> list[str]:
        """Write the transactions; return pgbench's arguments for them."""
        rows = ROWS_PER_SCALE * self.scale
        pick = (
            f"\\set z random_zipfian(1, {rows}, {self.alpha})\n"
            f"\\set aid permute(:z - 1, {rows}, {self.place.seed}) + 1\n"
        )
        others = (
            f"\\set bid random(1, {self.scale})\n\\set tid random(1, {10 * self.scale})\n"
            "\\set delta random(-5000, 5000)\n"
        )
        bodies = {
            "update": f"{pick}{others}BEGIN;\n"
            "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
            "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
            "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
            "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n"
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) "
            "VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\nEND;\n",
            "lookup": f"{pick}SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
            "range": f"{pick}\\set hi :aid + 400\n"
            "SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :hi;\n",
            "batch": f"\\set lo random(1, {rows})\n\\set hi :lo + 100\n"
            "UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid BETWEEN :lo AND :hi;\n",
        }
        arguments = []
        for kind, body in bodies.items():
            weight = getattr(self, kind)
            if weight:
                path = self.sockets / f"{kind}.sql"
                path.write_text(body)
                arguments += ["-f", f"{path}@{weight}"]
        return arguments

    def run(self) -> None:
        """Let the clients work until the time is up."""
        self.up()
        try:
            seconds = str(int(max(self.left(), 5)))
            clients = [
                "-n",
                "-c",
                str(self.clients),
                "-j",
                "2",
                "-T",
                seconds,
                "-M",
                "prepared",
            ]
            if self.per_second > 0.0:
                clients += ["-R", str(self.per_second)]
            seed = f"--random-seed={self.place.seed * 1000 + self.place.phase}"
            self.call("pgbench", *clients, seed, *self.scripts())
        finally:
            self.down()


@dataclass
class Scan(Postgres):
    """One wide table, read from end to end by aggregates, one after the other."""

    name = "scan"
    rows: int = 2_600_000
    streams: int = 1
    passes: int = 0

    def prepare(self) -> None:
        """Make a table of about 420 bytes a row."""
        self.initialise()
        self.sql(
            f"SELECT setseed({self.place.seed / 1000.0}); "
            "CREATE TABLE wide AS SELECT g AS id, (random() * 50)::int AS qty, "
            "random() * 1000 AS price, repeat(md5(g::text), 11) AS remark "
            f"FROM generate_series(1, {self.rows}) g; ANALYZE wide;"
        )
        self.sql("VACUUM (FREEZE) wide")
        self.down()

    def run(self) -> None:
        """Scan until the time or the passes are up."""
        self.up("max_parallel_workers_per_gather=0", "jit=off", "synchronize_seqscans=off")

        def stream(_: int, rng: random.Random) -> None:
            done = 0
            while self.left() > 0 and (self.passes == 0 or done < self.passes):
                limit = f"SET statement_timeout='{max(self.left(), 1):.0f}s'"
                query = f"SELECT sum(price), count(*) FROM wide WHERE qty < {rng.randrange(50)}"
                self.sql(f"{limit}; {query}", check=False)
                done += 1

        try:
            self.fork(self.streams, stream)
        finally:
            self.down()
