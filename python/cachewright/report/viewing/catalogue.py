"""The results below a folder: where they are, and which command wrote them.

For: the list of `view`. What a result holds is said by `gist`, of the first results only, so that
the list of thousands of volumes appears at once. Links to folders are not followed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from cachewright import characterized
from cachewright import results as result
from cachewright.fleet import over, study
from cachewright.fleet.placement import host_files
from cachewright.report.viewing import gist
from cachewright.report.viewing.gist import Gist
from cachewright.tables import measures, workload
from cachewright.tables.side_by_side import PLAN_FILE

# By file name: the command, and whether the result has curves.
KINDS = {
    result.RESULT_FILE: ("run", True),
    result.CURVES_FILE: ("mrc", True),
    result.AMPLIFICATION_FILE: ("wa", False),
    PLAN_FILE: ("plan", False),
    study.STUDY: ("fleet study", False),
    host_files.DOCUMENT: ("plan --fleet", False),
    characterized.CHARACTER_FILE: ("characterize", False),
    workload.FILE: ("trace report", False),
    over.ANSWERS: ("volumes", False),
    measures.FILE: ("reproduce", False),
}
# Folders of parts of a result, which are no results.
PARTS = frozenset({"cases", "figures"})


@dataclass(frozen=True)
class Entry:
    """A folder with results: its path below the root, commands, gists, and the latest change."""

    name: str
    folder: Path
    commands: tuple[str, ...]
    curves: bool
    changed_s: float
    gists: tuple[Gist, ...] = ()


def described(entry: Entry) -> Entry:
    """Return an entry with what its results hold, and the commands that they tell."""
    gists = tuple(gist.of(entry.folder / name) for name in KINDS if (entry.folder / name).exists())
    named = zip(entry.commands, gists, strict=False)
    commands = tuple(found.command or command for command, found in named)
    return replace(entry, gists=gists, commands=commands or entry.commands)


def scan(root: Path) -> dict[str, Entry]:
    """Return the folders with results below `root` (itself too) by name, sorted."""
    found: dict[str, Entry] = {}
    for path, folders, files in os.walk(root):
        held = [name for name in KINDS if name in files]
        if held:
            entry = _entry(root, Path(path), held)
            found[entry.name] = entry
            folders[:] = [name for name in folders if name not in PARTS]
        folders[:] = sorted(name for name in folders if not name.startswith("."))
    return dict(sorted(found.items()))


def _entry(root: Path, folder: Path, files: list[str]) -> Entry:
    changed = 0.0
    for name in files:
        try:
            changed = max(changed, (folder / name).stat().st_mtime)
        except OSError:
            continue
    return Entry(
        name=folder.relative_to(root).as_posix(),
        folder=folder,
        commands=tuple(KINDS[name][0] for name in files),
        curves=any(KINDS[name][1] for name in files),
        changed_s=changed,
    )
