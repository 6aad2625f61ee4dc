"""A synthetic fleet from traces to report: time and memory per volume; and two workers by one.

For: docs/fleet.md. Must never know: how a volume is measured. Volumes differ in pattern, span, mix
and seed. With `--ratio` the same study is run by one and by two workers in turn, and the ratio of
the middle times is printed beside the machine's load. Results are compared byte by byte.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import time
from pathlib import Path

from cachewright import traces
from cachewright.fleet import study
from cachewright.fleet.datasets import manifest
from cachewright.fleet.datasets.files import MANIFEST
from cachewright.fleet.job import How
from cachewright.report import fleet

SPEC = """[synth]
seed = {seed}
[[tenant]]
name = "v{number}"
count = {requests}
arrival = {{ kind = "poisson", rate = "{rate}/s" }}
read_share = {reads}
size = "{size}"
pattern = {pattern}
"""
PATTERNS = (
    '{{ kind = "zipf", span = "{span}MiB", alpha = {alpha} }}',
    '{{ kind = "hot-cold", span = "{span}MiB", hot_space = 0.1, hot_access = 0.{hot} }}',
    '{{ kind = "sequential", span = "{span}MiB", run = "1MiB" }}',
    '{{ kind = "loop", span = "{span}MiB" }}',
    '{{ kind = "uniform", span = "{span}MiB" }}',
)


def volume(folder: Path, number: int, requests: int) -> None:
    """Write one volume as native Parquet."""
    draw = random.Random(number)
    pattern = draw.choice(PATTERNS).format(
        span=draw.choice((64, 128, 256, 512)),
        alpha=round(draw.uniform(0.6, 1.2), 2),
        hot=draw.randint(6, 9),
    )
    text = SPEC.format(
        seed=number,
        number=number,
        requests=requests,
        rate=draw.choice((100, 500, 2000)),
        reads=draw.choice((0.05, 0.3, 0.5, 0.7, 0.95)),
        size=draw.choice(("4KiB", "8KiB", "16KiB")),
        pattern=pattern,
    )
    spec = folder / f".v{number}.toml"
    spec.write_text(text)
    traces.copy(traces.synthetic(spec), folder / f"v{number:06d}.parquet", overwrite=True)
    spec.unlink()


def load() -> str:
    """Return the load of the machine over the last minute."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def whole(folder: Path, out: Path, how: How, volumes: int, requests: int) -> None:
    """Measure manifest, study and report, once and from nothing."""
    shutil.rmtree(out, ignore_errors=True)
    for earlier in folder.glob(f"{MANIFEST}*"):  # An index goes on from the journal beside it.
        earlier.unlink()
    began = time.monotonic()
    found = manifest.index(str(folder), how=how)
    indexed = time.monotonic()
    studied = study.study(str(folder), out, how=how)
    done = time.monotonic()
    fleet.write(studied, out / "report.html")
    reported = time.monotonic()
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rates = studied.rates
    print(
        f"{volumes} volumes of {requests} requests, {how.workers} workers ({how.engine}), {load()}"
    )
    for name, seconds in (
        ("manifest", indexed - began),
        ("study", done - indexed),
        ("report", reported - done),
    ):
        print(f"{name}: {seconds:.1f} s, {1000 * seconds / volumes:.1f} ms per volume")
    print(f"worker: {1000 * found.rates.seconds / volumes:.1f} ms per volume for the manifest")
    print(f"worker: {1000 * rates.seconds / volumes:.1f} ms per volume for the study")
    print(f"worker: at most {rates.peak_bytes / (1 << 20):.0f} MiB; this process {own:.0f} MiB")


def timed(folder: Path, out: Path, how: How) -> tuple[float, float]:
    """Return the seconds of a study that begins anew, and those per volume once workers run.

    The latter begin with the first answer: workers, and Ray itself, take seconds to start.
    """
    shutil.rmtree(out, ignore_errors=True)
    ends: list[float] = []

    def note(stage: str, done: int, total: int | None) -> None:
        if stage == "volumes" and done > 0:
            ends.append(time.monotonic())

    began = time.monotonic()
    study.study(str(folder), out, how=how, progress=note)
    return time.monotonic() - began, (ends[-1] - ends[0]) / (len(ends) - 1)


def ratio(folder: Path, out: Path, engine: str, rounds: int) -> None:
    """Measure one worker and two in turn; compare what they wrote."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    written: set[bytes] = set()
    for _ in range(rounds):
        for workers, found in seconds.items():
            spent, each = timed(folder, out, How(engine, workers))
            found.append(each)
            written.add((out / study.STUDY).read_bytes() + (out / study.HITS).read_bytes())
            per_volume = f"{1000 * each:.0f} ms a volume"
            print(f"{engine}, {workers} workers: {spent:.1f} s, {per_volume}, {load()}")
    one, two = (statistics.median(found) for found in seconds.values())
    print(f"{engine}: two workers {one / two:.2f} times one; {len(written)} different results")


def main() -> None:
    """Make the fleet where it is missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--volumes", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--engine", default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ratio", type=int, default=0, help="rounds of one worker and two")
    given = parser.parse_args()
    folder = given.folder / f"{given.volumes}x{given.requests}"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(given.volumes):
        if not (folder / f"v{number:06d}.parquet").exists():
            volume(folder, number, given.requests)
    out = given.folder / f"study-{given.volumes}x{given.requests}-{given.engine}"
    if given.ratio:
        manifest.index(str(folder), how=How(workers=2))
        ratio(folder, out, given.engine, given.ratio)
        return
    whole(folder, out, How(given.engine, given.workers), given.volumes, given.requests)


if __name__ == "__main__":
    main()
