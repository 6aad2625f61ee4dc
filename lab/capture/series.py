"""A store of time series: RRDtool's round-robin files, filled by collectors and read for graphs.

For: one application. Must never know: how a trace is recorded. Collectors write every series once
per step of their own clock, which runs as fast as they get along. Units: seconds of that clock.
"""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from application import Application, Zipf

BEGIN = 1_600_000_000
STEP = 60
# Seconds that graphs show: two hours, a day, a week, two months.
SPANS = (7200, 86_400, 604_800, 5_000_000)


class Tool:
    """`rrdtool -`, which takes commands line by line. Errors: `OSError` with its own words."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            ["rrdtool", "-"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, line: str) -> None:
        """Run a command; again while another process has locked the file."""
        while (found := self.answer(line)) is not None:
            if "lock" not in found:
                raise OSError(f"rrdtool: {found}")
            time.sleep(0.002)

    def answer(self, line: str) -> str | None:
        """Run a command once; return its error, if there is one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        for answer in self.process.stdout:
            if answer.startswith("OK "):
                return None
            if answer.startswith("ERROR"):
                return answer.strip()
        return "rrdtool ended"

    def close(self) -> None:
        """End the program."""
        self.process.communicate("quit\n")


@dataclass
class Series(Application):
    """Collectors with a share of the series each, and readers of graphs."""

    name = "series"
    series: int = 900
    sources: int = 3
    rows: int = 3000
    collectors: int = 2
    readers: int = 3
    alpha: float = 0.9

    def path(self, number: int) -> Path:
        """Return the file of a series."""
        return self.data / "rrd" / f"host{number % 50:02d}" / f"{number:05d}.rrd"

    def prepare(self) -> None:
        """Make the files: four archives of two functions, from steps to two-hour means."""
        names = [f"DS:s{one}:GAUGE:{2 * STEP}:0:U" for one in range(self.sources)]
        kinds = (("AVERAGE", 1), ("AVERAGE", 15), ("AVERAGE", 120), ("MAX", 15))
        archives = [f"RRA:{kind}:0.5:{steps}:{self.rows}" for kind, steps in kinds]
        shape = " ".join(names + archives)
        tool = Tool()
        for number in range(self.series):
            path = self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            tool.ask(f"create {path} --start {BEGIN - STEP} --step {STEP} {shape}")
        tool.close()

    def run(self) -> None:
        """Let collectors and readers work."""
        self.fork(self.collectors + self.readers, self.work)

    def work(self, number: int, rng: random.Random) -> None:
        """Collect or read until the time is up."""
        tool = Tool()
        if number < self.collectors:
            self.collect(tool, number, rng)
        else:
            self.read(tool, rng)
        tool.close()

    def collect(self, tool: Tool, number: int, rng: random.Random) -> None:
        """Write a value of each source of every series, step by step."""
        moment = BEGIN
        while self.left() > 0:
            for one in range(number, self.series, self.collectors):
                if self.left() <= 0:
                    return
                values = ":".join(f"{rng.gauss(50.0, 9.0):.2f}" for _ in range(self.sources))
                tool.ask(f"update {self.path(one)} {moment}:{values.replace('-', '')}")
            moment += STEP

    def read(self, tool: Tool, rng: random.Random) -> None:
        """Read what graphs show: popular series more often, short spans more often."""
        popular = Zipf(self.series, self.alpha, self.place.seed)
        while self.left() > 0:
            path, span = self.path(popular.draw(rng)), rng.choices(SPANS, (8, 5, 2, 1))[0]
            end = BEGIN + rng.randrange(STEP * self.rows)
            kind = rng.choice(("AVERAGE", "AVERAGE", "MAX"))
            tool.ask(f"fetch {path} {kind} -s {end - span} -e {end}")
