"""Policies written in Python, to read and to start from.

For: showing every protocol. Must never know: traces. `verdicts` is for `run` and `compare`; of
`cachewright.policies`, `lru` is the short, slow way (one access at a time), `fifo` the fast one
(numpy batches).
"""

from cachewright.examples.fifo import Fifo
from cachewright.examples.lru import Lru
from cachewright.examples.verdicts import FifoCache, LruCache

__all__ = ["Fifo", "FifoCache", "Lru", "LruCache"]
