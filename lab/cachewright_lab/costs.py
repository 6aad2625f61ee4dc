"""What schemes cost: the tables of benches/policies.md, each made by a program of the workspace.

`python -m cachewright_lab.costs [--only policies|partitioners|separations]`. Names of schemes come
from the registries, through the programs. The text around the tables is written by hand. Units: in
the heads of the tables.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
from pathlib import Path

from cachewright_lab.study import ROOT, grid, write_blocks

PAGE = ROOT / "benches" / "policies.md"
BLOCKS = "100000"
# Kind, pages, drive writes, space, separations, reclaims of the example `wa_speed`.
STREAM = ["zipf1", "200000", "15", "share:0.15:1024", "all", "cost-benefit"]


def cargo(*words: str) -> str:
    """Run cargo at the root of the workspace; return what the program printed."""
    command, piped = ["cargo", *words], subprocess.PIPE
    return subprocess.run(command, cwd=ROOT, check=True, stdout=piped, text=True).stdout


def example(package: str, name: str, *words: str) -> str:
    """Run an example of a crate, built for release."""
    where = ["-q", "--release", "-p", f"cachewright-{package}", "--example", name]
    return cargo("run", *where, "--", *words)


def rows(text: str) -> list[list[str]]:
    """Return the cells of the lines that are rows of a table."""
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]


def policies() -> str:
    """Rates of every policy, with the memory of those that a live cache can run."""
    measured = cargo("bench", "-q", "-p", "cachewright-policy", "--bench", "policies")
    said = next(line for line in measured.splitlines() if " accesses, " in line)
    lines = example("cache", "live_cost", BLOCKS, "memory").splitlines()[1:]
    memory = {words[0]: [words[1], words[3]] for words in map(str.split, lines)}
    head, *body = rows(measured)
    body = [row + memory.get(row[0], ["-", "-"]) for row in body]
    return f"{said}.\n\n" + grid([*head, "bytes per block", "ids per block"], body)


def partitioners() -> str:
    """Microseconds of a division of 8 tenants."""
    head, *body = rows(example("partition", "division_speed", "8"))
    return "Eight tenants.\n\n" + grid(head, body)


def separations() -> str:
    """Pages that the host writes per second under each separation."""
    said, _, *lines = example("ftl", "wa_speed", *STREAM).splitlines()
    words = [line.split() for line in lines]
    body = [[row[0], row[5], row[2], row[6]] for row in words]
    head = ["separation", "M pages/s", "write amplification", "bytes per page"]
    return f"{said}.\n\n" + grid(head, body)


PARTS = {"policies": policies, "partitioners": partitioners, "separations": separations}


def measured_on() -> str:
    """Return the day, the commit, the processor and the load of the machine."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    processor = found[1] if found else "unknown processor"
    day, load = datetime.datetime.now(datetime.UTC).date(), os.getloadavg()[1]
    return f"{day}, commit {commit.strip()}, {processor}, load {load:.0f} on {os.cpu_count()} cores"


def main() -> None:
    """Write the tables asked for into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=[*PARTS], help="the table to write")
    for name in parser.parse_args().only or PARTS:
        write_blocks(PAGE, {name: f"{measured_on()}. {PARTS[name]()}"})


if __name__ == "__main__":
    main()
