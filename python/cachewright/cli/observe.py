"""The commands `observe` and `trace report`: what a volume's requests are like, as a page.

For: printing the answer, and writing page, document and stack into a folder. `observe` follows a
stream for as long as it goes on. Must never know: how a workload is counted or drawn.
"""

from __future__ import annotations

import json as json_text
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from cachewright import documents, targets, words
from cachewright._native import RunError, SpecError, TraceError, parse_duration
from cachewright.answers import WorkloadAnswer
from cachewright.cli import options, output, parsing
from cachewright.cli.progress import progress
from cachewright.live import observing
from cachewright.tables import workload as tables

STACK_FILE, REPORT_FILE = "stack.toml", "report.html"
NS_PER_S = 1e9
# How often the thread that waits looks for an interrupt, in seconds.
TICK = 0.2
SKIP = "--on-bad-record skip"

Report = Annotated[bool, Parameter(negative=(), show_default=False)]


def report(
    paths: options.Parts,
    /,
    *,
    block: str = observing.BLOCK,
    memory: str = observing.MEMORY,
    out: Path | None = None,
    force: options.Force = False,
    figures: options.Figures = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    trace: options.TraceArgs | None = None,
) -> None:
    """Write the page of a workload: time, offsets, sizes, re-use, and what a cache would do.

    Parameters
    ----------
    block
        Unit of the working set, of re-use and of the cache.
    memory
        Memory for the blocks that are followed; a sample of them where not all fit.
    out
        Folder for the page, its numbers (workload.json) and the recommended stack (stack.toml);
        `results/NAME-workload` by default.
    force
        Replace what another trace has left there.
    json
        Print all numbers as JSON, and write nothing without `--out`.

    """
    output.be_quiet(quiet)
    kinds = parsing.figure_kinds(figures)
    named = (trace or options.TraceArgs()).trace(options.whole(paths))
    keys = named.how().tenant_keys()
    folder = out if out is not None else _own_folder(paths[0])
    if not json or out is not None:
        _check(folder, paths, force)
    with progress() as on_progress:
        found = observing.workload(named, block=block, memory=memory, progress=on_progress)
    if json:
        output.print_json(found)
        if out is not None:
            write(found, folder, keys=keys)
        return
    page = write(found, folder, kinds, keys)
    show(found, folder, page)
    # A trace that needs options to be read needs them there, too.
    if trace is None or not trace.given():
        output.follow(tables.follows(found))


def observe(
    source: Path,
    /,
    *,
    out: Path = Path("observed"),
    every: str = "1min",
    last: Annotated[str | None, Parameter(name="--for")] = None,
    backing: str | None = None,
    block: str = observing.BLOCK,
    memory: str = observing.LIVE_MEMORY,
    force: options.Force = False,
    quiet: options.Quiet = False,
    trace: options.TraceArgs | None = None,
) -> None:
    """Watch a volume that has no cache yet, from a stream of its requests, and recommend one.

    `blktrace -d /dev/sda -o - | cachewright observe -` writes page, numbers and stack again and
    again, until the stream ends or Ctrl-C. Memory does not grow with time.

    Parameters
    ----------
    source
        A trace, or `-` for a stream such as that of `blktrace -d sda -o -`.
    out
        Folder for the page (report.html), its numbers (workload.json) and the recommended stack
        (stack.toml).
    every
        How often they are written.
    last
        End after this time (`1h`).
    backing
        The volume, for the recommended stack (`/dev/sda`).
    block
        Unit of the working set, of re-use and of the cache.
    memory
        Memory for the counts; blocks are sampled where not all fit.
    force
        Replace what another trace has left there.

    """
    output.be_quiet(quiet)
    if trace is not None and trace.by_volume:
        raise SpecError(
            "--by-volume: found a stream, whose requests are counted together; expected --volume, "
            "for one server volume each"
        )
    period = parse_duration(every) / NS_PER_S
    if period <= 0:
        raise SpecError(f"--every: found {every}, expected more than nothing")
    ends = None if last is None else time.monotonic() + parse_duration(last) / NS_PER_S
    _check(out, [source], force)
    named = (trace or options.TraceArgs()).trace(source)
    try:
        observer = observing.Observer(named, block=block, memory=memory)
    except KeyboardInterrupt:
        raise SpecError(f"{source}: found no request before the interrupt") from None
    observer.start()
    failed = _follow(observer, out, period, ends, backing)
    found = observer.end()
    if failed is not None and not found.requests:
        raise failed
    _keep(found, out, backing)
    _draw(out)
    show(found, out, out / REPORT_FILE)
    if failed is not None:
        # The page is of what was read before.
        raise type(failed)(f"{failed}; {SKIP} counts such records and reads on")
    if trace is None or not trace.given():
        output.follow(tables.follows(found))


def _follow(
    observer: observing.Observer, out: Path, period: float, ends: float | None, backing: str | None
) -> TraceError | None:
    """Write what is known every period, until the trace ends, the time is over, or Ctrl-C.

    Returns what reading the trace failed with.
    """
    due = time.monotonic() + period
    try:
        while not observer.wait(TICK):
            now = time.monotonic()
            if ends is not None and now >= ends:
                return None
            if now >= due and observer.requests:
                _keep(observer.answer(), out, backing)
                _draw(out)
                count = words.counted(observer.requests, "request")
                output.note(f"{count} so far: {out / REPORT_FILE}")
                due = now + period
    except KeyboardInterrupt:
        output.note("interrupted: what was read until now")
    except TraceError as error:
        return error
    return None


def show(found: WorkloadAnswer, folder: Path, page: Path) -> None:
    """Print facts, findings, the answer, and where page and stack are."""
    output.facts(list(tables.facts(found).rows))
    output.say()
    for one in tables.findings(found):
        output.say(f"- {one.sentence} ({one.evidence})")
    output.say()
    for note in found.notes:
        output.note(note)
    if found.skipped_bad:
        output.note(f"{words.counted(found.skipped_bad, 'malformed record')} skipped")
    output.conclude(tables.conclusion(found))
    output.say(f"report: {page}")
    if (folder / STACK_FILE).exists():
        output.say(f"stack: {folder / STACK_FILE}")


def write(
    found: WorkloadAnswer,
    folder: Path,
    kinds: Sequence[str] = (),
    keys: Mapping[str, Any] | None = None,
) -> Path:
    """Write the page, its numbers and the recommended stack; return the page's path."""
    from cachewright.report import workload

    _keep(found, folder, None, keys)
    return workload.write(found, folder / REPORT_FILE, kinds, keys)


def _keep(
    found: WorkloadAnswer,
    folder: Path,
    backing: str | None,
    keys: Mapping[str, Any] | None = None,
) -> None:
    """Write the numbers and the recommended stack."""
    text = json_text.dumps(documents.dump(found), indent=2, ensure_ascii=False) + "\n"
    targets.write_whole(folder / tables.FILE, text)
    suggested = tables.stack(found, backing, keys)
    if suggested:
        targets.write_whole(folder / STACK_FILE, suggested)
    else:
        (folder / STACK_FILE).unlink(missing_ok=True)


def _draw(folder: Path) -> None:
    """Draw the page in a process of its own, whose memory (300 MiB) goes with it.

    Errors: `RunError` with what it said.
    """
    line = [sys.executable, "-m", "cachewright", "report", str(folder), "--quiet"]
    # Ctrl-C is for the process that reads; it has drawn the page when it ends.
    done = subprocess.run(line, check=False, capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        raise RunError(done.stderr.strip().removeprefix("error: "))


def page_of(paths: Sequence[Path], trace: options.TraceArgs | None, block: str) -> Path:
    """Write the page of a trace into its own folder, for a command whose question is another."""
    folder = _own_folder(paths[0])
    _check(folder, paths, False)
    named = (trace or options.TraceArgs()).trace(options.whole(paths))
    with progress() as on_progress:
        found = observing.workload(named, block=block, progress=on_progress)
    return write(found, folder, keys=named.how().tenant_keys())


def _own_folder(path: Path) -> Path:
    name = path.name.split(".")[0]
    return Path("results") / f"{name if name.strip('-') else 'stream'}-workload"


def _check(folder: Path, sources: Sequence[Path], force: bool) -> None:
    """Refuse a folder that holds what another trace has left. Errors: `SpecError`."""
    file = folder / tables.FILE
    for name in (tables.FILE, STACK_FILE, REPORT_FILE):
        if any(targets.is_same(folder / name, source) for source in sources):
            raise SpecError(f"{folder / name}: found a file that is read, expected another --out")
    if force:
        return
    if not file.exists():
        for name in (STACK_FILE, REPORT_FILE):
            targets.check(folder / name, how=targets.FORCE)
        return
    known = documents.read(WorkloadAnswer, file, "a result of `trace report`").path
    if known not in {str(source) for source in sources}:
        raise SpecError(
            f"{file}: found the workload of {known}, expected another --out or {targets.FORCE}"
        )
