"""Peak memory and time of commands on one long trace, each in a process of its own.

For: benches/fleet.md. Must never know: how a command works. `fleet_memory.py FOLDER --requests N`
writes a trace as text (`--format parquet` for native Parquet) into the folder unless it is there,
and runs each command on it: alone, and with `--engine local`, where the peak is that of the worker.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SPEC = """[synth]
seed = 7
[[tenant]]
name = "v"
count = {requests}
arrival = {{ kind = "poisson", rate = "2000/s" }}
read_share = 0.6
size = "4KiB"
pattern = {{ kind = "zipf", span = "{span}", alpha = 0.9 }}
"""
COMMANDS = {
    "study": ["fleet", "study", "SET", "--policy", "lru,sieve", "--sizes", "1%wss,10%wss"],
    "mrc": ["mrc", "TRACE", "--policy", "lru"],
    "mrc sampled": ["mrc", "TRACE", "--policy", "lru,sieve", "--rate", "0.01"],
    "compare": ["compare", "TRACE", "--policy", "lru,sieve", "--capacity", "10%wss"],
    "wa": ["wa", "TRACE", "--separation", "none,sepbit"],
    "characterize": ["characterize", "TRACE"],
}
CHILD = """
import json, resource, sys, time
from cachewright import cli
began = time.monotonic()
status = cli.status_of(sys.argv[1:])
peak = max(resource.getrusage(who).ru_maxrss for who in
           (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({"status": status, "kib": peak, "seconds": time.monotonic() - began}),
      file=sys.stderr)
"""


def make(folder: Path, requests: int, span: str, suffix: str) -> Path:
    """Return a trace of so many requests, written unless it is there."""
    target = folder / f"long-{requests}.{suffix}"
    if not target.exists():
        spec = folder / "long.toml"
        spec.write_text(SPEC.format(requests=requests, span=span))
        words = [sys.executable, "-m", "cachewright", "trace", "synth", str(spec), str(target)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        spec.unlink()
    return target


def measure(words: list[str]) -> dict[str, float]:
    """Run a command line; return its status, peak and seconds."""
    command = [sys.executable, "-c", CHILD, *words, "-q"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in found.stderr.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(found.stderr)
    measured: dict[str, float] = json.loads(lines[-1])
    return measured


def forms_of(name: str, trace: Path, folder: Path, engine: bool) -> Iterator[tuple[str, list[str]]]:
    """Give the command lines of a command, each with how it runs; a study is always a task."""
    base = [str(trace) if word in ("TRACE", "SET") else word for word in COMMANDS[name]]
    out = ["--out", str(folder / "out" / name.replace(" ", "-")), "--workers", "1"]
    if name == "study":
        yield " as a task", [*base, *out]
        return
    yield "", base
    if engine:
        yield " as a task", [*base, *out, "--engine", "local"]


def main() -> None:
    """Measure what the command line asks for."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--requests", type=int, default=50_000_000)
    options.add_argument("--span", default="2GiB")
    options.add_argument("--format", choices=("csv", "parquet"), default="csv")
    options.add_argument("--only", help="commands with commas")
    options.add_argument("--engine", action="store_true", help="as a task of `--engine local`, too")
    args = options.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    trace = make(args.folder, args.requests, args.span, args.format)
    gib = trace.stat().st_size / (1 << 30)
    print(f"{trace.name}: {gib:.2f} GiB, {time.monotonic() - began:.0f} s, load {os.getloadavg()}")
    wanted = args.only.split(",") if args.only else list(COMMANDS)
    for name in wanted:
        for form, words in forms_of(name, trace, args.folder, args.engine):
            found = measure(words)
            status = "" if found["status"] == 0 else f" status {found['status']}"
            peak, seconds = f"{found['kib'] / 1024:.0f} MiB", f"{found['seconds']:.0f} s"
            print(f"{name}{form}: {peak}, {seconds}{status}", flush=True)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"this process: {own:.0f} MiB")


if __name__ == "__main__":
    main()
