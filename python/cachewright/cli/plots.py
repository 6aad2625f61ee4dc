"""Small plots of one line each, drawn with block characters.

For: `trace info` and `mrc`. Must never know: what is plotted. Where the terminal cannot encode
block characters, `#` and digits stand in.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

BAR_WIDTH = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"


def _unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "ascii").lower().startswith("utf")


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """Return a bar as long as `share` (0..1) of `width` characters."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if not _unicode():
        return "#" * round(eighths / 8)
    rest = _EIGHTHS[eighths % 8].strip()
    return "█" * (eighths // 8) + rest


def spark(values: Sequence[float]) -> str:
    """Return one character per value, as high as its share of the largest."""
    top = max(values, default=0)
    if top <= 0:
        return ""
    steps = [0 if v <= 0 else max(1, round(v / top * 8)) for v in values]
    return "".join(_LEVELS[s] if _unicode() else "0123456789"[s] for s in steps)
