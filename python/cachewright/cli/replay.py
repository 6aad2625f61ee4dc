"""Replaying what `run` and `compare` were given, and showing what came out.

For: one way for options however they were read. Must never know: options, how cases are run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cachewright.cli import output
from cachewright.cli.progress import progress
from cachewright.stack import USUAL_POLICIES, is_stack_path, short

if TYPE_CHECKING:
    from cachewright.answers import RunAnswer
    from cachewright.stack import SpecLike

REPORT_FILE = "report.html"
RESULTS = Path("results")
# Keys of `[cache]` that `run` and `compare` have options for.
# Separations that are compared on a drive.
SEPARATIONS = "none,2r,sepbit"
CACHE_OPTIONS = ("policy", "capacity", "partition", "block")


class Job(NamedTuple):
    """A stack, what is set over it, the values to try, and what was chosen by default."""

    stack: SpecLike
    settings: dict[str, str]
    vary: dict[str, list[str]]
    notes: Sequence[str] = ()
    # The stack file or the traces, as they were named.
    sources: Sequence[Path] = ()


class Wanted(NamedTuple):
    """Where the result goes, what runs, and how the result is shown."""

    out: Path | None = None
    fresh: bool = False
    threads: int = 0
    report: bool = False
    figures: Sequence[str] = ()
    json: bool = False
    csv: bool = False
    rank_by: str | None = None

    @property
    def is_data(self) -> bool:
        """Whether standard output is for programs, so that no sentence may stand in it."""
        return self.json or self.csv


def replay(job: Job, wanted: Wanted) -> None:
    """Run a job and show its answer. Errors: as `api.run`."""
    from cachewright import api
    from cachewright.tables import ranking

    if wanted.rank_by is not None:
        ranking.check(wanted.rank_by, api.check(job.stack, settings=job.settings))
    wants_report = wanted.report or bool(wanted.figures)
    folder = wanted.out
    if folder is None and wants_report:
        folder = RESULTS / name_of(job)
    with progress() as on_progress:
        result = api.compare(
            job.stack,
            job.vary,
            settings=job.settings,
            out=folder,
            threads=wanted.threads,
            fresh=wanted.fresh,
            progress=on_progress,
        )
    for sentence in job.notes:
        output.note(sentence)
    if wanted.json:
        output.print_json(result.answer)
    elif wanted.csv:
        from cachewright.tables import summary

        output.print_csv(summary.records(result.answer))
    else:
        from cachewright.cli import compared

        compared.show(result.answer, wanted.rank_by)
    if folder is not None and not wanted.is_data:
        output.say(f"result: {folder}")
    if folder is not None and wants_report:
        path = result.report(folder / REPORT_FILE, wanted.figures, rank_by=wanted.rank_by)
        if not wanted.is_data:
            output.say(f"report: {path}")
    if not wanted.is_data:
        output.follow(_next_command(job, result.answer, wanted.rank_by))


def _next_command(job: Job, answer: RunAnswer, rank_by: str | None) -> str:
    """Return the command that follows from an answer; nothing where its sources have no name.

    After one case it is the comparison of the usual policies and sizes, or of separations on a
    drive; after a comparison the case that was advised, with its report.
    """
    from cachewright.tables import conclusion, ranking, summary

    if not job.sources:
        return ""
    words = [os.fspath(path) for path in job.sources]
    settings = dict(job.settings)
    if len(answer.cases) == 1:
        # What is compared is not set as well: of traces the usual sizes, too.
        is_stack = is_stack_path(job.sources[0])
        if key := _separation_key(answer.spec):
            words += _spelled({k: v for k, v in settings.items() if k != key})
            return conclusion.command("compare", *words, "--vary", f"{key}={SEPARATIONS}")
        varied = ("policy",) if is_stack else ("policy", "capacity")
        words += _spelled({k: v for k, v in settings.items() if short(k) not in varied})
        if is_stack:
            words += ["--policy", ",".join(USUAL_POLICIES)]
        return conclusion.command("compare", *words)
    rank = ranking.rank_of(answer, rank_by)
    best = summary.advised(answer, rank)
    if summary.is_worthless(best, rank):
        return ""
    settings |= {key: best.settings[key] for key in answer.varied}
    return conclusion.command("run", *words, *_spelled(settings), "--report")


def _separation_key(spec: Mapping[str, Any]) -> str:
    """Return the key of a drive's separation where the stack is a drive; nothing elsewhere."""
    system = (spec.get("machine") or {}).get("system")
    if system == "flash-store":
        return "flash.separation"
    if system != "ssd":
        return ""
    drives = (f"device.{name}" for name, one in spec["device"].items() if "separation" in one)
    return "".join(f"{name}.separation" for name in list(drives)[:1])


def _spelled(settings: Mapping[str, str]) -> list[str]:
    """Return settings as the options of `run` and `compare`."""
    found = []
    for key, value in settings.items():
        option = short(key)
        found += [f"--{option}", value] if option in CACHE_OPTIONS else ["--set", f"{key}={value}"]
    return found


def name_of(job: Job) -> str:
    """Return the name of a job's stack. Errors: `SpecError`."""
    from cachewright import api

    document = api.check(job.stack, settings=job.settings)
    return str(document.get("name") or "stack")
