"""The live server of a stack, and the tools for its devices.

For: `cachewright serve` and `cachewright live`, and the same from Python. Must never know: how
requests are carried out, or what the devices hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence

from cachewright import _native
from cachewright._native import SpecError
from cachewright.answers import (
    LiveCalibrateAnswer,
    LiveChangeAnswer,
    LiveCheckAnswer,
    LiveDumpAnswer,
    LiveFormatAnswer,
    LoadAnswer,
)
from cachewright.documents import load as load_answer
from cachewright.stack import Settings, SpecLike, pairs
from cachewright.stack import load as load_stack
from cachewright.types import PathLike

# All requests of a trace.
MAX_REQUESTS = (1 << 64) - 1
# Reads of a device that make its mean and its 99th percentile known well enough.
CALIBRATION_READS = 1000


def serve(
    spec: SpecLike,
    *,
    settings: Settings | None = None,
    say: Callable[[str], None] = print,
    record: PathLike | None = None,
    accept_changed: Sequence[str] = (),
    discard_dirty: bool = False,
) -> int:
    """Serve the volumes of a stack until `KeyboardInterrupt`; return the bytes left dirty.

    `spec` and `settings` are as in `check`. `say` gets each line for operators: what is served, and
    where. What is decided goes to the new file `record`, a trace that `simulate` replays.
    `accept_changed` names tenants that are served from backing devices that were changed while no
    server ran. With `discard_dirty` the server goes on without what only another set of cache
    devices has. Errors: `SpecError` before anything is written, `RunError` when a device fails.
    """
    stack = load_stack(spec)
    path = None if record is None else os.fspath(record)
    return _native.serve(
        stack.text, stack.origin, pairs(settings), say, path, list(accept_changed), discard_dirty
    )


def format_devices(
    spec: SpecLike,
    *,
    settings: Settings | None = None,
    discard_dirty: bool = False,
    force: bool = False,
) -> LiveFormatAnswer:
    """Make the devices of a stack an empty cache.

    Errors: `SpecError` when they hold dirty blocks, or the volumes were last served with other
    devices that may have some, unless `discard_dirty`; when they hold anything that is no cache,
    such as a file system, unless `force`.
    """
    return load_answer(LiveFormatAnswer, _document("format", spec, settings, discard_dirty, force))


def check_devices(spec: SpecLike, *, settings: Settings | None = None) -> LiveCheckAnswer:
    """Read all that the devices of a stack hold, and count what is there and what is damaged."""
    return load_answer(LiveCheckAnswer, _document("check", spec, settings))


def dump_devices(
    spec: SpecLike, *, settings: Settings | None = None, blocks: bool = False
) -> LiveDumpAnswer:
    """Return what the devices of a stack hold by volume; each block only if `blocks`."""
    return load_answer(LiveDumpAnswer, _document("dump", spec, settings, blocks))


def write_back(
    spec: SpecLike,
    *,
    settings: Settings | None = None,
    accept_changed: Sequence[str] = (),
    discard_dirty: bool = False,
) -> LiveChangeAnswer:
    """Write all dirty blocks to the backing devices.

    Those of tenants of `accept_changed` go over devices that were changed while no server ran, or
    are dropped if `discard_dirty`. Errors: `SpecError` when another device has changed.
    """
    return load_answer(
        LiveChangeAnswer,
        _document("writeback", spec, settings, discard_dirty, changed=accept_changed),
    )


def repair_devices(
    spec: SpecLike, *, settings: Settings | None = None, discard_dirty: bool = False
) -> LiveChangeAnswer:
    """Write damaged structures again and drop damaged clean blocks; dirty ones only on demand."""
    return load_answer(LiveChangeAnswer, _document("repair", spec, settings, discard_dirty))


def calibrate_devices(
    spec: SpecLike,
    *,
    settings: Settings | None = None,
    reads: int = CALIBRATION_READS,
    depth: int = 1,
) -> LiveCalibrateAnswer:
    """Time `reads` random reads of each device of a stack, one by one and `depth` at one time.

    The answer has `hit_time` and `miss_time` for `[replay]`. Nothing is written. Errors:
    `SpecError` for a wrong stack or a device that is in use, `RunError` when a read fails.
    """
    if reads < 1 or depth < 1:
        raise SpecError(f"found {min(reads, depth)} reads or depth, expected at least 1")
    stack = load_stack(spec)
    text = _native.live_calibrate(stack.text, stack.origin, pairs(settings), (reads, depth))
    document: dict[str, object] = json.loads(text)
    return load_answer(LiveCalibrateAnswer, document)


def send_load(
    spec: SpecLike,
    *,
    settings: Settings | None = None,
    depth: int = 16,
    requests: int | None = None,
    speed: float | None = None,
) -> LoadAnswer:
    """Send the traces of a stack's tenants to a server of the same stack; return its answers.

    Each tenant sends its first `requests` requests, at most `depth` at one time: as fast as answers
    come, or `speed` times as fast as recorded. Writes have no meaning: what the volumes held is
    lost. Errors: `SpecError` for a wrong stack, `RunError` when a trace or the server fails.
    """
    if depth < 1 or (requests is not None and requests < 1) or (speed is not None and speed <= 0):
        raise SpecError("found a depth, a number or a speed below the least, expected more than 0")
    stack = load_stack(spec)
    bounds = (depth, MAX_REQUESTS if requests is None else requests)
    text = _native.live_load(stack.text, stack.origin, pairs(settings), bounds, speed)
    document: dict[str, object] = json.loads(text)
    return load_answer(LoadAnswer, document)


def _document(
    tool: str,
    spec: SpecLike,
    settings: Settings | None,
    flag: bool = False,
    force: bool = False,
    changed: Sequence[str] = (),
) -> dict[str, object]:
    stack = load_stack(spec)
    text = _native.live(tool, stack.text, stack.origin, pairs(settings), flag, force, list(changed))
    document: dict[str, object] = json.loads(text)
    return document
