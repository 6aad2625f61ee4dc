"""Runs every bad input in one process and prints what became of it, a line of JSON each.

For: `test_hostile`, which gives it a folder. The process has a limit of memory, so that an input
that asks for more ends in an error and not in a machine that swaps. Must never know: what is right.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
from pathlib import Path

from cachewright import cli
from hostile import corpus
from hostile.case import Case

# Threads reserve more addresses than they use.
ADDRESSES = 8 << 30


def answer(case: Case, folder: Path) -> tuple[int, str, str]:
    """Return the exit status of a case's command and what it printed."""
    folder.mkdir(parents=True)
    for name in case.folders:
        (folder / name).mkdir()
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    os.chdir(folder)
    first = next(iter(case.files), "")
    words = [word.replace("{}", first) for word in case.command]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.status_of(words)
        except SystemExit as done:
            status = int(done.code or 0)
    return status, out.getvalue(), err.getvalue()


def main(root: Path) -> None:
    """Run every case in a folder of its own below `root`."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    for number, case in enumerate(corpus.cases()):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            status, out, err = answer(case, root / str(number))
        except BaseException as error:
            status, out, err = -1, "", f"{type(error).__name__}: {error}"
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = {"name": case.name, "status": status, "err": err, "out": out[-500:]}
        found |= {"grown_kib": after - before, "peak_kib": after}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
