#!/usr/bin/env python3
"""Kills the live server under a database on a file system, again and again.

For: `scripts/live_kills.py [--rounds N] [--seed S] [--server PATH] [--folder DIR]`. PostgreSQL with
checksums lies on ext4 on an export: nbdfuse makes the export a file, a loop device mounts it. Each
round the server gets SIGKILL while clients commit. It starts again from what it left; then the
journal of ext4 is replayed, `e2fsck -fn`, `pg_amcheck` and `pg_checksums` must find nothing, and
every commit that was answered must be there. Needs root, FUSE, loop devices and the tools named in
`TOOLS`; without them it says `skipped`. Must never know: how the server keeps its promises. Units:
seconds, MiB.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
POSTGRES = Path("/usr/lib/postgresql/15/bin")
TOOLS = ("nbdfuse", "losetup", "mkfs.ext4", "e2fsck", "runuser", "umount", "pkill")
PROGRAMS = ("initdb", "pg_ctl", "psql", "pgbench", "pg_amcheck", "pg_checksums")
STACK = """
[cache]
capacity = "48MiB"
policy = "s3-fifo"
write = "write-back"

[serve]
devices = ["cache.img"]
listen = ["unix:s.sock"]
segment = "1MiB"

[[tenant]]
name = "data"
backing = "data.img"
"""


def missing() -> str | None:
    """Name what is needed and not here; nothing if all is."""
    if os.geteuid() != 0:
        return "root"
    for path in ("/dev/fuse", "/dev/loop-control"):
        if not Path(path).exists():
            return path
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return tool
    for program in PROGRAMS:
        if not (POSTGRES / program).exists():
            return f"{program} of PostgreSQL 15"
    if subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode:
        return "a free loop device"
    return None


def call(*words: str | Path, check: bool = True) -> str:
    """Run a program; ends this one with its output if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and done.returncode:
        shown = " ".join(str(word) for word in words)
        sys.exit(f"{shown}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def until(done: Callable[[], object]) -> None:
    """Wait until something is so."""
    while not done():
        time.sleep(0.02)


class Machine:
    """The server, the file system on its export, and the database on that."""

    def __init__(self, folder: Path, server: Path) -> None:
        """Make the devices of the server."""
        self.folder, self.server = folder, server
        self.mount, self.fuse = folder / "mount", folder / "fuse.img"
        self.database, self.sockets = folder / "mount" / "database", folder / "sockets"
        self.loop = ""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for name, mib in (("cache.img", 160), ("data.img", 1024)):
            with (folder / name).open("wb") as file:
                file.truncate(mib << 20)
        (folder / "stack.toml").write_text(STACK)
        self.fuse.touch()
        for path in (self.mount, self.sockets):
            path.mkdir()
        shutil.chown(self.sockets, "postgres")
        folder.chmod(0o755)
        stack = folder / "stack.toml"
        call(sys.executable, "-m", "cachewright", "live", "format", stack)

    def connect(self) -> None:
        """Start the server; its export becomes a loop device."""
        socket = self.folder / "s.sock"
        socket.unlink(missing_ok=True)
        log = (self.folder / "server.log").open("ab")
        words = [str(self.server), "stack.toml"]
        self.processes["server"] = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        until(lambda: socket.exists() or self.has_ended("server"))
        url = f"nbd+unix:///data?socket={socket}"
        self.processes["nbdfuse"] = subprocess.Popen(["nbdfuse", str(self.fuse), url])
        until(lambda: self.fuse.stat().st_size > 0)
        self.loop = call("losetup", "-f", "--show", "--direct-io=on", self.fuse).strip()

    def has_ended(self, name: str) -> bool:
        """Whether a process has ended; that of the server ends this program."""
        if self.processes[name].poll() is None:
            return False
        sys.exit(f"{name} has ended: {(self.folder / 'server.log').read_text()}")

    def start_database(self) -> None:
        """Mount the file system and start the database on it."""
        call("mount", self.loop, self.mount)
        settings = f"-k {self.sockets} -h '' -c fsync=on -c full_page_writes=on"
        log = self.sockets / "log"
        self.postgres("pg_ctl", "-w", "-D", self.database, "-o", settings, "-l", log, "start")

    def postgres(self, program: str, *arguments: str | Path) -> str:
        """Run a program of PostgreSQL as its user."""
        return call("runuser", "-u", "postgres", "--", POSTGRES / program, *arguments)

    def client(self, program: str, *arguments: str) -> list[str]:
        """Give the words of a client of the database."""
        words = ["runuser", "-u", "postgres", "--", str(POSTGRES / program)]
        return [*words, "-h", str(self.sockets), *arguments]

    def query(self, text: str) -> str:
        """Ask the database one thing."""
        return call(*self.client("psql", "-qtA", "-c", text, "postgres")).strip()

    def stop_database(self) -> None:
        """End the database in order, and unmount."""
        self.postgres("pg_ctl", "-w", "-D", self.database, "-m", "fast", "stop")
        call("umount", self.mount)

    def kill(self) -> None:
        """Kill the server, and clear away what stood on it."""
        self.processes["server"].send_signal(signal.SIGKILL)
        self.processes.pop("server").wait()
        call("pkill", "-KILL", "-u", "postgres", "-x", "postgres", check=False)
        until(lambda: not call("pgrep", "-u", "postgres", "-x", "postgres", check=False))
        call("umount", self.mount)
        self.disconnect()

    def disconnect(self) -> None:
        """Take the loop device and its file away."""
        call("losetup", "-d", self.loop)
        until(lambda: self.loop not in call("losetup", "-a"))
        call("umount", self.fuse)
        self.processes.pop("nbdfuse").wait()

    def end(self) -> None:
        """End everything that still runs."""
        call("pkill", "-KILL", "-u", "postgres", "-x", "postgres", check=False)
        call("umount", self.mount, check=False)
        if self.loop:
            call("losetup", "-d", self.loop, check=False)
        call("umount", self.fuse, check=False)
        for process in self.processes.values():
            process.kill()
            process.wait()


def commits(machine: Machine, rng: random.Random, load: float) -> list[int]:
    """Commit rows one by one beside a load, until the server is killed; the rows answered."""
    pgbench = machine.client("pgbench", "-c", "4", "-T", "600", "postgres")
    quiet = subprocess.DEVNULL
    other = subprocess.Popen(pgbench, stdout=quiet, stderr=quiet)
    words = machine.client("psql", "-qtA", "postgres")
    pipe = subprocess.PIPE
    ledger = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=quiet, text=True)
    assert ledger.stdin is not None
    assert ledger.stdout is not None
    answered: list[int] = []
    end = time.monotonic() + load * (0.5 + rng.random())
    while time.monotonic() < end:
        text = "insert into ledger (text) values (repeat('x', 500)) returning id;\n"
        ledger.stdin.write(text)
        ledger.stdin.flush()
        line = ledger.stdout.readline()
        if not line:
            sys.exit("the database has closed the connection")
        answered.append(int(line))
    machine.kill()
    for process in (ledger, other):
        process.kill()
        process.wait()
    return answered


def one_round(machine: Machine, rng: random.Random, load: float, known: set[int]) -> None:
    """Kill the server under load, and check what is left."""
    known.update(commits(machine, rng, load))
    machine.connect()
    call("mount", machine.loop, machine.mount)
    call("umount", machine.mount)
    call("e2fsck", "-fn", machine.loop)
    machine.start_database()
    found = {int(line) for line in machine.query("select id from ledger").split()}
    lost = known - found
    if lost:
        sys.exit(f"{len(lost)} commits that were answered are gone: {sorted(lost)[:10]}")
    call(*machine.client("pg_amcheck", "--install-missing", "--heapallindexed", "postgres"))
    machine.stop_database()
    call("mount", machine.loop, machine.mount)
    machine.postgres("pg_checksums", "--check", "-D", machine.database)
    call("umount", machine.mount)
    machine.start_database()


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--load", type=float, default=4, help="seconds of load, at the mean")
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; a new one if left out")
    options = parser.parse_args()
    lacking = missing()
    if lacking is not None:
        print(f"skipped: needs {lacking}")
        return
    if not options.server.exists():
        sys.exit(f"found no {options.server}; expected a build of cachewrightd")
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        machine = Machine(Path(folder), options.server.resolve())
        known: set[int] = set()
        try:
            machine.connect()
            call("mkfs.ext4", "-q", machine.loop)
            call("mount", machine.loop, machine.mount)
            machine.database.mkdir()
            shutil.chown(machine.database, "postgres")
            machine.postgres("initdb", "-k", "-D", machine.database)
            call("umount", machine.mount)
            machine.start_database()
            machine.query("create table ledger (id serial primary key, text text)")
            call(*machine.client("pgbench", "-q", "-i", "-s", "5", "postgres"))
            for number in range(options.rounds):
                one_round(machine, rng, options.load, known)
                print(f"round {number + 1}: {len(known)} commits, all there", flush=True)
            machine.stop_database()
            machine.disconnect()
        finally:
            machine.end()
    print(f"{options.rounds} kills: {len(known)} commits that were answered, none lost")


if __name__ == "__main__":
    main()
