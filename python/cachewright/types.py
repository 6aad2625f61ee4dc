"""Types that the compiled module and the package share.

For: type checkers and readers. Must never know: anything else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PathLike: TypeAlias = str | os.PathLike[str]

Progress: TypeAlias = Callable[[str, int, int | None], bool | None]
"""Gets stage, units done and units in all (None when not known); cancels by returning False."""

Handed: TypeAlias = tuple[str, Callable[..., bytes]]
"""A trainer's name and the function that is called with a window's parts (`train.window`)."""

Columns: TypeAlias = (
    "tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint8], "
    "NDArray[np.uint32]]"
)
"""`time_ns`, `offset_bytes`, `length_bytes`, `op` (0 read, 1 write, 2 trim, 3 flush), `volume`."""
