"""Cachewright designs, simulates and runs multi-tenant flash caches.

For: the public names of the package; each is imported when first used, so that starting is fast.
Must never know: how anything works. Everything raises `cachewright.Error` or one of its kinds:
`SpecError` (a stack, setting or argument is wrong), `TraceError` (a trace cannot be read),
`RunError` (a run failed or was cancelled), `PolicyError` (a Python policy broke the rules).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cachewright._native import (
    Error,
    PolicyError,
    RunError,
    SpecError,
    TraceError,
    Verdict,
    __version__,
)

if TYPE_CHECKING:
    from cachewright.api import (
        check,
        compare,
        info,
        mrc,
        plan,
        run,
        segments,
        simulate,
        wa,
    )
    from cachewright.characterized import characterize
    from cachewright.live.cache import Cache
    from cachewright.live.observing import workload
    from cachewright.policies import CachePolicy
    from cachewright.registries import list
    from cachewright.results import Amplification, Curves, Result
    from cachewright.traces import Trace, read_trace, scan_trace, write_trace
    from cachewright.train import Trained, train_shiro
    from cachewright.train.demand import Segments

__all__ = [
    "Amplification",
    "Cache",
    "CachePolicy",
    "Curves",
    "Error",
    "PolicyError",
    "Result",
    "RunError",
    "Segments",
    "SpecError",
    "Trace",
    "TraceError",
    "Trained",
    "Verdict",
    "__version__",
    "characterize",
    "check",
    "compare",
    "info",
    "list",
    "mrc",
    "plan",
    "read_trace",
    "run",
    "scan_trace",
    "segments",
    "simulate",
    "train_shiro",
    "wa",
    "workload",
    "write_trace",
]

_HOMES = {
    "Amplification": "results",
    "Cache": "live.cache",
    "CachePolicy": "policies",
    "Curves": "results",
    "Result": "results",
    "Segments": "train.demand",
    "Trace": "traces",
    "Trained": "train",
    "characterize": "characterized",
    "list": "registries",
    "read_trace": "traces",
    "scan_trace": "traces",
    "train_shiro": "train",
    "workload": "live.observing",
    "write_trace": "traces",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cachewright' has no attribute {name!r}")
    home = importlib.import_module(f"cachewright.{_HOMES.get(name, 'api')}")
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> Iterable[str]:
    return sorted(__all__)
