"""Running a stack whose text is at hand, for an answer as a record.

For: `api.run` and `api.compare`, and the command line, which starts without the rest of the
package. Must never know: how anything is simulated, which settings exist.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cachewright import _native
from cachewright.answers import RunAnswer
from cachewright.documents import load
from cachewright.policies import Finder
from cachewright.stack_file import Settings, Stack, pairs, vary_pairs

if TYPE_CHECKING:
    from cachewright.types import PathLike, Progress


def run_stack(
    stack: Stack,
    vary: Mapping[str, Sequence[Any]],
    *,
    settings: Settings | None,
    out: PathLike | None,
    threads: int,
    fresh: bool,
    progress: Progress | None,
    finder: Finder | None = None,
) -> RunAnswer:
    """Run a stack as it is, or all combinations of `vary`; `api.run` says the rest.

    `finder` knows the policies written in Python that were given by name.
    """
    finder = finder or Finder()
    text = _native.run(
        stack.text,
        stack.origin,
        pairs({**finder.of_file(stack), **finder.settings(settings)}),
        vary_pairs(finder.vary(vary)),
        threads=natural("threads", threads),
        out=None if out is None else os.fspath(out),
        fresh=fresh,
        load=finder.load,
        progress=progress,
    )
    return load(RunAnswer, json.loads(text))


def natural(name: str, number: int) -> int:
    """Return a number of 0 or more. Errors: `SpecError`, which names the option."""
    if number < 0:
        raise _native.SpecError(f"`{name}`: found {number}, expected 0 or more")
    return number
