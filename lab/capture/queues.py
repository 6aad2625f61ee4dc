"""A queue of jobs: beanstalkd with its log, large payloads in a spool beside it.

For: one application. Must never know: how a trace is recorded. Workers produce and consume in
equal parts, so that the backlog stays; a job reads its payload and one of many shared templates,
writes a result, and is now and then released for a second try. Units: KiB in settings, bytes.
"""

from __future__ import annotations

import math
import os
import random
import socket
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from application import Application, Zipf, read_whole

LOG_BYTES = 4 << 20
TIME_TO_RUN = 60


class Client:
    """A connection to beanstalkd. Errors: `OSError` with the server's answer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.answers = self.socket.makefile("rb")

    def ask(self, line: str, body: bytes | None = None) -> list[str]:
        """Send a command; return the words of the answer."""
        data = b"" if body is None else body + b"\r\n"
        self.socket.sendall(line.encode() + b"\r\n" + data)
        return self.answers.readline().decode().split()

    def put(self, body: bytes, *, priority: int) -> None:
        """Put a job."""
        found = self.ask(f"put {priority} 0 {TIME_TO_RUN} {len(body)}", body)
        if found[0] != "INSERTED":
            raise OSError(f"beanstalkd: put: {' '.join(found)}")

    def reserve(self) -> tuple[str, bytes] | None:
        """Return number and body of the next job, if there is one."""
        found = self.ask("reserve-with-timeout 0")
        if found[0] != "RESERVED":
            return None
        body = self.answers.read(int(found[2]) + 2)
        return found[1], body[:-2]


@dataclass
class Queue(Application):
    """Producers and consumers of jobs; the sync interval of the log is in milliseconds."""

    name = "queue"
    jobs: int = 5000
    mean_kb: float = 28.0
    templates: int = 1500
    template_kb: float = 40.0
    alpha: float = 0.8
    workers: int = 6
    urgent: float = 0.3
    retried: float = 0.12
    kept: int = 300
    sync_ms: int = 20
    own: deque[Path] = field(init=False, default_factory=deque)

    def body(self, rng: random.Random, mean_kb: float) -> bytes:
        """Return a payload."""
        mean = math.log(mean_kb * 1024) - 0.5
        return rng.randbytes(max(600, min(1 << 20, int(rng.lognormvariate(mean, 1.0)))))

    @contextmanager
    def server(self) -> Iterator[int]:
        """Run beanstalkd; yield its port."""
        port = 20_000 + os.getpid() % 5000
        (self.data / "log").mkdir(exist_ok=True)
        places = ["-l", "127.0.0.1", "-p", str(port), "-b", str(self.data / "log")]
        sizes = ["-f", str(self.sync_ms), "-s", str(LOG_BYTES)]
        server = subprocess.Popen(["beanstalkd", *places, *sizes])
        try:
            until = time.monotonic() + 20
            while server.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.1)
            yield port
        finally:
            server.terminate()
            server.wait(20)

    def prepare(self) -> None:
        """Write the templates and the backlog."""
        rng = random.Random(self.place.seed)
        for folder in ("templates", "spool", "results"):
            (self.data / folder).mkdir()
        for number in range(self.templates):
            path = self.data / "templates" / str(number)
            path.write_bytes(self.body(rng, self.template_kb))
        with self.server() as port:
            client = Client(port)
            for number in range(self.jobs):
                self.produce(client, f"load-{number}", rng)

    def run(self) -> None:
        """Let the workers work."""
        with self.server() as port:
            self.fork(self.workers, lambda number, rng: self.work(port, number, rng))

    def work(self, port: int, number: int, rng: random.Random) -> None:
        """Produce and consume by turns drawn."""
        client = Client(port)
        popular = Zipf(self.templates, self.alpha, self.place.seed)
        serial = 0
        while self.left() > 0:
            if rng.random() < 0.5:
                serial += 1
                self.produce(client, f"{number}-{serial}", rng)
            else:
                self.consume(client, popular, rng)

    def produce(self, client: Client, name: str, rng: random.Random) -> None:
        """Spool a payload and put its job; urgent jobs overtake the backlog."""
        path = self.data / "spool" / name
        path.write_bytes(self.body(rng, self.mean_kb))
        head = rng.randbytes(rng.randrange(100, 1200)).hex()
        priority = 1 if rng.random() < self.urgent else 5
        client.put(f"{path.name} {head}".encode(), priority=priority)

    def consume(self, client: Client, popular: Zipf, rng: random.Random) -> None:
        """Do the next job, or release it for a second try."""
        job = client.reserve()
        if job is None:
            return
        number, body = job
        path = self.data / "spool" / body.split()[0].decode()
        length = read_whole(path)
        read_whole(self.data / "templates" / str(popular.draw(rng)))
        if rng.random() < self.retried:
            client.ask(f"release {number} 5 {rng.randrange(1, 4)}")
            return
        result = self.data / "results" / path.name
        result.write_bytes(rng.randbytes(length // 2))
        path.unlink()
        client.ask(f"delete {number}")
        self.own.append(result)
        if len(self.own) > self.kept:
            self.own.popleft().unlink()
