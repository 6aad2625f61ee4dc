"""Capture traces of real applications: `python3 lab/capture NAME ... [--out DIR]`.

For: one command per row of `volumes.toml`, or for all rows that a pattern (`fresh-*`) names. Must
never know: what an application does. A block capture makes `NAME.load.csv.zst` (file system and
data), `NAME.csv.zst` (the run, with a cold cache and a memory limit) and `NAME.json` (settings,
counts, versions and load of the machine); a system-call capture `NAME.csv.zst`,
`NAME.files.csv.zst` and `NAME.json`. Units: MiB in the table, bytes and microseconds in traces.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import block_log
import syscalls
from volume import MemoryLimit, NotPermittedError, Volume

HERE = Path(__file__).resolve().parent
TABLE = HERE / "volumes.toml"
MIB = 1 << 20
READ_AHEAD_KB = 128
# Says that this process has mounts of its own.
APART = "CAPTURE_HAS_OWN_MOUNTS"
Row = dict[str, Any]


def rows() -> dict[str, Row]:
    """Return the table; a row with `seeds` is one row per seed, NAME-SEED."""
    found: dict[str, Row] = {}
    for name, row in tomllib.loads(TABLE.read_text()).items():
        seeds = row.pop("seeds", None)
        own = (
            {name: row}
            if seeds is None
            else {f"{name}-{one}": row | {"seed": one} for one in seeds}
        )
        found |= own
    return found


def named(table: dict[str, Row], patterns: list[str]) -> list[str]:
    """Return the rows that patterns name, in the order of the table. Errors: `ValueError`."""
    for pattern in patterns:
        if not fnmatch.filter(table, pattern):
            raise ValueError(f"found no row {pattern!r}, expected one of {', '.join(table)}")
    return [name for name in table if any(fnmatch.fnmatchcase(name, one) for one in patterns)]


def command_of(row: Row, verb: str, place: dict[str, Any], own: Row | None = None) -> list[str]:
    """Return the command that prepares or runs an application; `own` are a phase's settings."""
    common = {"seed": row["seed"], "seconds": row["seconds"]}
    settings = row.get("settings", {}) | (own or {})
    text = json.dumps({"place": common | place, "settings": settings})
    program = str(HERE / "run_application.py")
    return [sys.executable, program, row["application"], verb, text]


def runs_of(row: Row, place: dict[str, Any]) -> list[list[str]]:
    """Return the commands of a run: one, or the row's phases in turn until its seconds are up."""
    if "phases" not in row:
        return [command_of(row, "run", place)]
    commands, left = [], float(row["seconds"])
    for number, phase in enumerate(itertools.cycle(row["phases"])):
        if left <= 0:
            break
        part = {"seconds": min(left, phase["seconds"]), "phase": number}
        commands.append(command_of(row, "run", place | part, phase.get("settings")))
        left -= phase["seconds"]
    return commands


def capture_block(row: Row, stem: Path, work: Path) -> dict[str, Any]:
    """Capture a volume; return what was counted."""
    size, limit = row["size_mib"] * MIB, MemoryLimit(row["memory_mib"] * MIB)
    volume: Volume | None = None
    try:
        begun = time.time()
        volume = Volume(work, size, READ_AHEAD_KB)
        place = {
            "data": str(volume.folder),
            "scratch": str(work),
            "volume_bytes": size,
            "statistics": volume.statistics,
        }
        subprocess.run(command_of(row, "prepare", place), check=True)
        # Nothing of the volume stays in the page cache.
        volume.unmount()
        volume.mount()
        time.sleep(0.2)
        run = time.time()
        for command in runs_of(row, place):
            subprocess.run(command, check=True, preexec_fn=limit.join)
        subprocess.run(["sync", "-f", str(volume.folder)], check=True)
        ended = time.time()
    finally:
        limit.close()
        if volume is not None:
            volume.close()
    log = block_log.read(volume.log)
    begun_us, run_us, ended_us = (int(moment * 1e6) for moment in (begun, run, ended))
    load = Path(f"{stem}.load.csv")
    device = int(row["seed"])
    return {
        "memory_limit": limit.kind,
        "load": block_log.write(load, log, device, begun_us, run_us),
        "run": block_log.write(Path(f"{stem}.csv"), log, device, run_us, ended_us),
    }


def capture_syscalls(row: Row, stem: Path, work: Path) -> dict[str, Any]:
    """Capture the file accesses of a run; return what was counted."""
    data = work / "data"
    data.mkdir()
    place = {"data": str(data), "scratch": str(work)}
    trace = syscalls.command(work / "trace")
    subprocess.run(command_of(row, "prepare", place), check=True)
    subprocess.run([*trace, *command_of(row, "run", place)], check=True)
    found = list(syscalls.accesses(work / "trace", data))
    if not found:
        raise NotPermittedError("strace: found no access, expected some; is tracing permitted?")
    return {"run": syscalls.write(stem, found, data)}


CAPTURES: dict[str, Callable[[Row, Path, Path], dict[str, Any]]] = {
    "block": capture_block,
    "syscall": capture_syscalls,
}


def capture(name: str, row: Row, out: Path, work: Path | None) -> None:
    """Capture one row of the table."""
    out.mkdir(parents=True, exist_ok=True)
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    # Applications run in other folders: the path is absolute.
    scratch = Path(tempfile.mkdtemp(prefix="capture-", dir=work)).resolve()
    scratch.chmod(0o755)
    before, date = (
        os.getloadavg()[0],
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    try:
        counts = CAPTURES[row["level"]](row, out / name, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    machine = {
        "cores": os.cpu_count(),
        "kernel": os.uname().release,
        "load_before": round(before, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }
    about = {"name": name, **row, "date": date, "machine": machine, **counts}
    (out / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")
    print(json.dumps({"name": name, **counts["run"]}))


def enter_namespace() -> None:
    """Begin anew with own mounts: no other process keeps a volume in use when it is unmounted."""
    if os.environ.get(APART) or shutil.which("unshare") is None or os.geteuid() != 0:
        return
    os.environ[APART] = "1"
    own = ["unshare", "--mount", sys.executable, str(HERE), *sys.argv[1:]]
    os.execvp(own[0], own)


def main() -> None:
    """Capture what the arguments name."""
    table = rows()
    parser = argparse.ArgumentParser(prog="capture", description="capture real applications")
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help=f"{', '.join(table)}; or a pattern"
    )
    parser.add_argument("--out", type=Path, default=Path("volumes"), help="where traces go")
    parser.add_argument("--work", type=Path, help="parent of the scratch folder")
    wanted = parser.parse_args()
    if importlib.util.find_spec("numpy") is None:
        sys.exit(f"capture: {sys.executable} has no numpy, expected a Python with it")
    try:
        names = named(table, wanted.names)
    except ValueError as error:
        sys.exit(f"capture: {error}")
    if any(table[name]["level"] == "block" for name in names):
        enter_namespace()
    for name in names:
        try:
            capture(name, table[name], wanted.out.resolve(), wanted.work)
        except (NotPermittedError, OSError, RuntimeError, ValueError) as error:
            sys.exit(f"capture {name}: {error}")
        except subprocess.CalledProcessError as error:
            # The application itself said why; its command is long.
            sys.exit(f"capture {name}: {Path(error.cmd[0]).name} ended with {error.returncode}")


if __name__ == "__main__":
    main()
