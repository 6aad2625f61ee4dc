"""How long runs of figures take: noted by a run, kept in the digest, told before a run on volumes.

A run of one figure that finds nothing in its folder notes the time of processors that it took and
the requests of its traces (`took.json`). On given volumes that time is scaled by their requests.
Where a spec says how long is replayed, whatever the trace, it is taken as it is. Units: seconds of
one core.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cachewright import words
from cachewright._native import SpecError
from cachewright.documents import dump, load
from cachewright_lab.digest import Digest, Took
from cachewright_lab.report import reproduced
from cachewright_lab.reproduce import Study, parts, volumes
from cachewright_lab.reproduce.drive_mixes import DriveMixes
from cachewright_lab.reproduce.drive_specs import DriveFigure
from cachewright_lab.reproduce.specs import FigureSpec

FILE = "took.json"
# Studies that replay as long as their specs say, in closed loops over traces that are repeated.
OF_SPECS = ("isolation",)
SECOND_NS = 1e9


@dataclass
class Clock:
    """The processor time of what ran under it."""

    seconds: float = 0.0


@contextmanager
def measured() -> Iterator[Clock]:
    """Measure the processor time of all threads of this process."""
    clock, before = Clock(), time.process_time()
    yield clock
    clock.seconds = time.process_time() - before


def is_fresh(out: Path) -> bool:
    """Return whether a folder holds nothing that a run could take in place of working."""
    return not out.exists() or not any(out.iterdir())


def note(what: Study, clock: Clock, out: Path) -> None:
    """Note what the run of one figure took; of several together it is not known which took it."""
    found = list(_each(what))
    if len(found) != 1:
        return
    [(_, part, figure)] = found
    one = Took(seconds=round(clock.seconds, 1), requests=requests(part, figure))
    text = json.dumps({figure.name: dump(one)}, indent=1)
    # A figure that replays nothing has made no folder.
    out.mkdir(parents=True, exist_ok=True)
    (out / FILE).write_text(text + "\n", encoding="utf-8")


def read(out: Path) -> dict[str, Took]:
    """Return what was noted in a folder by figure; nothing where nothing was.

    Errors: `SpecError` for a file of something else.
    """
    path = out / FILE
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): load(Took, one) for name, one in document.items()}
    except (ValueError, AttributeError, SpecError) as error:
        raise SpecError(f"{path}: found no times ({error}), expected those of a run") from None


def told(what: Study, kept: Digest) -> str:
    """Return how long the figures of a study will take on its volumes, in a sentence."""
    known: dict[str, Took] = {}
    estimates: dict[str, float] = {}
    found = list(_each(what))
    for study, part, figure in found:
        one = _kept(kept, figure.name)
        if one is not None and (study in OF_SPECS or one.requests):
            known[figure.name] = one
            share = 1.0 if study in OF_SPECS else requests(part, figure) / one.requests
            estimates[figure.name] = one.seconds * share
    scaled = any(study not in OF_SPECS for study, *_ in found)
    return _sentence([figure.name for *_, figure in found], known, estimates, scaled=scaled)


def _sentence(
    figures: Sequence[str],
    known: Mapping[str, Took],
    estimates: Mapping[str, float],
    *,
    scaled: bool,
) -> str:
    if not known:
        if len(figures) > 1:
            return "how long these figures will take is not known: no run of theirs was timed"
        return f"how long {figures[0]} will take is not known: no run of it was timed"
    about = f"about {_time(sum(estimates.values()))} on one core"
    if len(figures) > 1:
        rest = len(figures) - len(known)
        left = f"; of {words.count(rest)} no run was timed" if rest else ""
        return f"{about} for {words.counted(len(known), 'figure')} on these volumes{left}"
    [(name, one)] = known.items()
    said = _time(one.seconds)
    said += f" for {words.short(one.requests)} requests" if scaled else ", as long on any"
    return f"{about} for {name} on these volumes (kept run: {said})"


def requests(part: Study, figure: FigureSpec) -> int:
    """Return the requests of the traces of a figure, up to where it stops, each trace once."""
    wanted = getattr(figure, "workloads", ())
    stop_ns = None
    if isinstance(part, DriveMixes) and isinstance(figure, DriveFigure):
        stop_ns = part.stop_ns(figure)
    found = 0
    for one in reproduced.workloads_of(part, figure):
        if not wanted or one.name in wanted:
            found += volumes.requests(one, stop_ns)
    return found


def _each(what: Study) -> Iterator[tuple[str, Study, FigureSpec]]:
    for name, part in parts(what):
        yield from ((name, part, figure) for figure in part.figures)


def _kept(kept: Digest, figure: str) -> Took | None:
    for one in (kept.own, kept.elsewhere):
        if figure in one.figures and one.figures[figure].took is not None:
            return one.figures[figure].took
    return None


def _time(seconds: float) -> str:
    return words.duration(seconds * SECOND_NS) if seconds >= 1 else "a second"
