"""Files that the documents speak of as if they were there.

For: `test_documented_commands`. Must never know: any command. Bundled traces are cut to their first
requests, since a command must work here, not take its usual time.
"""

from __future__ import annotations

import random
import shutil
from functools import cache
from pathlib import Path

import polars as pl
from test_import import CONFIG, WORKLOAD

from cachewright import read_trace, write_trace

# Requests of a cut trace; drives and training need the whole mail server.
REQUESTS = 4_000
WHOLE = {"mail"}
BUNDLED = ("oltp", "mail", "web", "lu")
# Pages with a test of their own.
APART = {"docs/python.md"}
# Made-up traces: the bundled one that stands for them; whole where a drive is filled with it.
TRACES = {
    "mail.csv.zst": "mail",
    "web.csv.zst": "web",
    "oltp.csv.zst": "oltp",
    "oltp.csv": "oltp",
    "mail.csv": "mail",
    "a.csv": "web",
    "b.csv": "mail",
    "phases.csv.zst": "mail",
    "data.csv.zst": "oltp",
}
# A folder of traces, as datasets are.
FOLDER, IN_FOLDER = "traces", ("web", "oltp")
WHOLE_TRACES = ("monday.csv.gz", "tuesday.csv.gz")
# Traces of a volume large enough for a drive with 7 % of spare space.
VOLUMES = ("volume.csv.gz", "T.csv.zst", "T.load.csv.zst")
PAGES, RANDOM_WRITES = 90_000, 15_000
# Pages about the stack of the first of them, which shows it after the commands that use it.
SERVING = ("docs/serve.md", "docs/serve-guarantees.md", "docs/serve-reference.md")
STACK = """
[cache]
capacity = "32MiB"
policy = "lru"
partition = "hull"

[[tenant]]
name = "mail"
trace = "mail.csv.zst"
goal_hit_ratio = 0.05

[[tenant]]
name = "web"
trace = "web.csv.zst"
"""


def pages(root: Path) -> list[Path]:
    """Return the pages whose commands run."""
    found = [root / "README.md", *root.glob("docs/*.md")]
    return sorted(path for path in found if path.relative_to(root).as_posix() not in APART)


@cache
def _bundled(root: Path, name: str) -> pl.DataFrame:
    return read_trace(root / "data" / f"{name}.csv.zst")


def _volume() -> str:
    """Return a volume in Alibaba's columns: filled once, then written and read at random."""
    rng = random.Random(1)
    lines = [f"0,W,{page * 4096},65536,{page * 10}" for page in range(0, PAGES, 16)]
    for number in range(RANDOM_WRITES):
        page = int(PAGES * rng.random() ** 3)
        lines.append(f"0,{rng.choice('RWW')},{page * 4096},4096,{(PAGES + number) * 10}")
    return "\n".join(lines) + "\n"


def _foreign_parquet(path: Path) -> None:
    """Write a trace as another program does: its own names, microseconds and numbers for words."""
    columns = {
        "timestamp": [0, 10, 20],
        "op": [0, 1, 0],
        "offset": [0, 8192, 0],
        "size": [4096] * 3,
    }
    pl.DataFrame(columns).write_parquet(path)


def make_files(root: Path, folder: Path, page: str) -> None:
    """Make bundled traces (cut), specs, made-up files and a stack for a page in `folder`."""
    shutil.copytree(root / "specs", folder / "specs")
    shutil.copytree(root / "data", folder / "data")
    for name in BUNDLED:
        if name not in WHOLE:
            path = folder / "data" / f"{name}.csv.zst"
            write_trace(_bundled(root, name)[:REQUESTS], path, overwrite=True)
    for made, name in TRACES.items():
        write_trace(_bundled(root, name)[:REQUESTS], folder / made)
    for made in WHOLE_TRACES:
        write_trace(_bundled(root, "mail"), folder / made)
    (folder / FOLDER).mkdir()
    for name in IN_FOLDER:
        write_trace(_bundled(root, name)[:REQUESTS], folder / FOLDER / f"{name}.csv")
    (folder / "volume.csv").write_text(_volume())
    volume = read_trace(folder / "volume.csv")
    for made in VOLUMES:
        write_trace(volume, folder / made)
    _foreign_parquet(folder / "t.parquet")
    (folder / "stack.toml").write_text(STACK)
    (folder / "ssdconfig.xml").write_text(CONFIG)
    (folder / "workload.xml").write_text(WORKLOAD)
    if page in SERVING:
        text = (root / SERVING[0]).read_text(encoding="utf-8")
        (folder / "stack.toml").write_text(text.split("```toml\n")[1].split("```")[0])
