"""What runs on a trace over time: `characterize`.

For: the call behind the command, and the models that come with the package. Must never know: any
characterizer. Times are nanoseconds since the trace's first request.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

from cachewright import _native, documents, targets, words
from cachewright._native import SpecError
from cachewright.answers import CharacterizeAnswer
from cachewright.documents import load
from cachewright.traces import TraceLike, opened
from cachewright.types import PathLike

if TYPE_CHECKING:
    from cachewright.types import Progress

EVERY = "auto"
CHARACTER_FILE = "characterize.json"


def characterize(
    trace: TraceLike,
    *,
    every: str = EVERY,
    model: PathLike | bytes | None = None,
    out: PathLike | None = None,
    progress: Progress | None = None,
) -> CharacterizeAnswer:
    """Return what ran in each period of a trace.

    `trace` is a path, a frame, or a `Trace`. `every` is a duration, a number of reads and writes,
    or `auto`: a round duration that cuts the trace into some tens of periods, for which it is read
    twice; `every` of the answer is the one used. Each period has counts, `read_share`,
    `mean_bytes`, `working_set_bytes`, the shares of requests and of bytes that are sequential,
    overlapped, strided and random (`classes`, `class_bytes`), and with a `model` (`train kinds`
    writes them) what its volumes' last 1,000 requests were judged to be (`judged`). With `out` a
    folder with `characterize.json` is written; that of another trace there is refused. Errors:
    `SpecError`, `TraceError`, `OSError`.
    """
    found = opened(trace)
    if out is not None:
        _check_owner(Path(out) / CHARACTER_FILE, found.name)
    text = _native.characterize(
        found.path,
        found.how.format,
        found.how.on_bad_record,
        dict(found.how.options),
        volume=found.how.volume,
        every=every,
        model=None if model is None else _content(model),
        progress=progress,
    )
    document = json.loads(text)
    document["path"] = found.name
    if out is not None:
        written = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        targets.write_whole(Path(out) / CHARACTER_FILE, written)
    return load(CharacterizeAnswer, document)


def _check_owner(file: Path, name: str) -> None:
    """Refuse a file of another trace. Errors: `SpecError`."""
    if not file.exists():
        return
    known = documents.read(CharacterizeAnswer, file, "a result of `characterize`")
    if known.path != name:
        raise SpecError(f"{file}: found a result of {known.path}, expected another folder")


def encoded(model: PathLike | bytes) -> str:
    """Return a model file's content in base 64. Errors: `SpecError` when it is no model."""
    return base64.b64encode(_content(model)).decode()


def _content(model: PathLike | bytes) -> bytes:
    if isinstance(model, bytes):
        return model
    try:
        content = Path(model).read_bytes()
        _native.Model(content)
    except OSError as error:
        raise SpecError(
            f"{model}: {words.reason(error)}; expected a model of `train kinds`"
        ) from None
    except SpecError as error:
        raise SpecError(f"{model}: {error}") from None
    return content
