"""A file server and a web server.

For: two applications. Must never know: how a trace is recorded. The web server is nginx, asked by
wrk. Units: KiB in settings, bytes in files; weights of the kinds of work have no unit.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from application import Application, Zipf, read_whole

FOLDERS = 97
KINDS = ("create", "read", "append", "delete", "stat")
LARGEST_PAGE = 4 << 20
NGINX = """user root; worker_processes 6; daemon off;
pid {scratch}/nginx.pid; error_log {scratch}/nginx.err;
events {{ worker_connections 256; }}
http {{ access_log {data}/logs/access.log; sendfile on; keepalive_requests 1000;
 client_body_temp_path {scratch}; proxy_temp_path {scratch}; fastcgi_temp_path {scratch};
 uwsgi_temp_path {scratch}; scgi_temp_path {scratch};
 server {{ listen 127.0.0.1:{port} reuseport; root {data}/www; }} }}
"""
WRK = """local n, sums, path, sum = 0, {{}}, {{}}, 0
function init(args)
  math.randomseed({seed})
  for line in io.lines("{scratch}/order") do
    n = n + 1; path[n] = line; sum = sum + 1 / n ^ {alpha}; sums[n] = sum
  end
end
function request()
  if math.random() < {drift} then -- popularity drifts
    local a, b = math.random(n), math.random(math.max(1, math.floor(n / 50)))
    path[a], path[b] = path[b], path[a]
  end
  local wanted, low, high = math.random() * sum, 1, n
  while low < high do
    local middle = math.floor((low + high) / 2)
    if sums[middle] < wanted then low = middle + 1 else high = middle end
  end
  return wrk.format("GET", path[low])
end
"""


@dataclass
class File(Application):
    """Whole files created and read, appends, deletes, stats; nothing is synced.

    `per_second` bounds the operations of all workers; 0 does not.
    """

    name = "file"
    files: int = 7000
    mean_kb: float = 100.0
    append_kb: float = 16.0
    alpha: float = 0.8
    workers: int = 8
    per_second: float = 0.0
    create: int = 20
    read: int = 45
    append: int = 15
    delete: int = 8
    stat: int = 12

    def path(self, number: int) -> Path:
        """Return the path of a file."""
        return self.data / "files" / f"d{number % FOLDERS:03d}" / f"f{number:06d}"

    def body(self, rng: random.Random, mean_kb: float) -> bytes:
        """Return the content of a file."""
        return rng.randbytes(max(512, int(rng.gammavariate(1.5, mean_kb * 1024 / 1.5))))

    def prepare(self) -> None:
        """Write all files."""
        rng = random.Random(self.place.seed)
        for number in range(self.files):
            path = self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.body(rng, self.mean_kb))

    def run(self) -> None:
        """Let the workers work."""
        self.fork(self.workers, self.work)

    def work(self, number: int, rng: random.Random) -> None:
        """Do one piece of work after another."""
        popular = Zipf(self.files, self.alpha, self.place.seed)
        weights = [getattr(self, kind) for kind in KINDS]
        while self.left() > 0:
            self.wait_turn(rng, self.per_second / self.workers)
            path = self.path(popular.draw(rng))
            kind = rng.choices(KINDS, weights)[0]
            try:
                self.do(kind, path, number, rng)
            except FileNotFoundError:
                path.write_bytes(self.body(rng, self.mean_kb))  # It comes back as a new file.

    def do(self, kind: str, path: Path, number: int, rng: random.Random) -> None:
        """Do one piece of work on a file."""
        if kind == "create":
            new = path.with_name(f"{path.name}.new{number}")
            new.write_bytes(self.body(rng, self.mean_kb))
            new.rename(path)
        elif kind == "read":
            read_whole(path)
        elif kind == "append":
            with path.open("ab") as file:
                file.write(self.body(rng, self.append_kb))
        elif kind == "delete":
            path.unlink()
        else:
            path.stat()


@dataclass
class Web(Application):
    """Pages by Zipf's law with drift, an access log, some pages published anew."""

    name = "web"
    files: int = 20_000
    mean_kb: float = 32.0
    alpha: float = 0.85
    connections: int = 12
    publish_per_s: float = 2.0
    drift: float = 0.02

    def page(self, number: int) -> str:
        """Return the address of a page."""
        return f"/p{number % 64:02d}/{number:05d}.html"

    def path(self, number: int) -> Path:
        """Return the path of a page."""
        return Path(f"{self.data}/www{self.page(number)}")

    def body(self, rng: random.Random) -> bytes:
        """Return the content of a page."""
        size = int(rng.lognormvariate(math.log(self.mean_kb * 1024) - 0.98, 1.4))
        return rng.randbytes(min(LARGEST_PAGE, max(400, size)))

    def prepare(self) -> None:
        """Write all pages."""
        rng = random.Random(self.place.seed)
        for number in range(self.files):
            path = self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.body(rng))

    def configure(self, port: int) -> None:
        """Write the server's and the client's files."""
        scratch = self.place.scratch
        (self.data / "logs").mkdir(exist_ok=True)
        fields = {"scratch": scratch, "data": self.data, "port": port}
        (scratch / "nginx.conf").write_text(NGINX.format(**fields))
        order = Zipf(self.files, self.alpha, self.place.seed).items
        (scratch / "order").write_text("".join(f"{self.page(int(one))}\n" for one in order))
        settings = {"seed": self.place.seed, "alpha": self.alpha, "drift": self.drift}
        (scratch / "zipf.lua").write_text(WRK.format(scratch=scratch, **settings))

    def run(self) -> None:
        """Ask for pages until the time is up, publishing some."""
        scratch, port = str(self.place.scratch), 18_000 + os.getpid() % 2000
        self.configure(port)
        server = subprocess.Popen(["nginx", "-c", f"{scratch}/nginx.conf", "-p", scratch])
        try:
            time.sleep(1)
            load = [
                "wrk",
                "-t",
                "2",
                "-c",
                str(self.connections),
                "-d",
                f"{self.left():.0f}s",
            ]
            script = [
                "--timeout",
                "20s",
                "-s",
                f"{scratch}/zipf.lua",
                f"http://127.0.0.1:{port}",
            ]
            client = subprocess.Popen([*load, *script], stdout=subprocess.DEVNULL)
            self.publish(client)
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait(20)
        if client.returncode:
            raise subprocess.CalledProcessError(client.returncode, load)

    def publish(self, client: subprocess.Popen[bytes]) -> None:
        """Write pages anew until the client ends."""
        rng = random.Random(self.place.seed + 5)
        while client.poll() is None:
            time.sleep(rng.expovariate(self.publish_per_s))
            path = self.path(rng.randrange(self.files))
            path.with_suffix(".new").write_bytes(self.body(rng))
            path.with_suffix(".new").rename(path)
