"""Models of a live server, trained on what the server recorded, and taken over by it.

For: `cachewright live train`, a process beside the server. Must never know: how a model is trained,
what a server does with it. Each file appears whole under its name; a server that refuses one goes
on by the models before, and the files before are put back.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachewright import _native, targets
from cachewright._native import RunError, SpecError
from cachewright.live import advising, lessons, watching
from cachewright.live.lessons import Recorded
from cachewright.stack import is_stack_path

if TYPE_CHECKING:
    from cachewright.live.lessons import How, Report
    from cachewright.types import PathLike, Progress


@dataclass(frozen=True)
class Retrained:
    """Models that were written, and whether a server has taken them over."""

    scheme: str
    paths: tuple[Path, ...]
    report: Report
    recordings: tuple[str, ...]
    taken_over: bool


def retrain(
    target: PathLike,
    how: How | Mapping[str, Any] | None = None,
    *,
    last: str = advising.LAST,
    scheme: str | None = None,
    tenant: str | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Retrained:
    """Train the models of a server's scheme on its last recordings; let it take them over.

    `target` and `last` are as in `advising.advise`. The scheme is the stack's policy `rc-rnn` or
    its partitioner `icache` or `mlcache`; `scheme` says which where it has two. `how` is the
    scheme's training (`RcRnnTraining`, ...), or settings of it by name. The models are the files
    of the stack: of `cache.workload` in `cache.models`, of each `tenant.model`, of `cache.model`.
    `rc-rnn` learns from one tenant's requests, those of `tenant` or of the only one; with a tenant
    `icache` trains that model alone. Without a server the files are written alone. Errors:
    `SpecError` for a stack without such a scheme, nothing recorded, or a model that the server
    refuses; `RunError` when the server does not answer.
    """
    target = os.fspath(target)
    with advising.loaded(target, _native.parse_duration(last)) as load:
        tables = tomllib.loads(load.stack.text)
        name = lessons.chosen(tables, scheme)
        recorded = Recorded(tables, load.stack, tenant, threads, progress)
        found = lessons.learned(name, recorded, how)
        taken_over = _put(found.files, target)
        return Retrained(name, tuple(found.files), found.report, load.recordings, taken_over)


def _put(files: Mapping[Path, bytes], target: str) -> bool:
    """Write models, and let the server at `target` take them over; return whether one did."""
    before = {path: path.read_bytes() for path in files if path.exists()}
    _write(files)
    try:
        watching.reload(target)
    except RunError:
        # A stack file alone: the next start takes the models.
        if is_stack_path(target):
            return False
        raise
    except SpecError as error:
        if is_stack_path(target) and "serve.monitor" in str(error):
            return False
        _write(before)
        raise
    return True


def _write(files: Mapping[Path, bytes]) -> None:
    for path, content in files.items():
        targets.write_whole(path, content)
