"""Policies written in Python, to read and to start from.

For: showing both protocols of `cachewright.plugin`. Must never know: traces. `lru` is the short,
slow way (one access at a time), `fifo` the fast one (numpy batches).
"""

from cachewright.examples.fifo import Fifo
from cachewright.examples.lru import Lru

__all__ = ["Fifo", "Lru"]
