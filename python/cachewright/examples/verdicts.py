"""LRU and FIFO for `run` and `compare`.

For: the shortest policies that take part in everything: trims, partitions, devices. Must never
know: traces. Sources: Mattson et al., IBM Systems Journal 9(2), 1970; Belady, IBM Systems Journal
5(2), 1966. Unit: blocks.

    result = cachewright.simulate("trace.csv.zst", LruCache, "10%wss")
    print(result.cases["hit_ratio"][0])
"""

from __future__ import annotations

from cachewright import Verdict


class FifoCache:
    """The block that came first leaves first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        # A dict keeps the order in which its keys came.
        self.blocks: dict[int, None] = {}

    def access(self, block: int, write: bool) -> Verdict:
        """Decide about one access."""
        if block in self.blocks:
            return Verdict.HIT
        self.blocks[block] = None
        if len(self.blocks) <= self.capacity:
            return Verdict.admit()
        return Verdict.admit(self._evict())

    def remove(self, block: int) -> None:
        """Forget a block, cached or not."""
        self.blocks.pop(block, None)

    def resize(self, capacity: int) -> list[int]:
        """Change the capacity and return the blocks that leave."""
        self.capacity = capacity
        return [self._evict() for _ in range(len(self.blocks) - capacity)]

    def _evict(self) -> int:
        block = next(iter(self.blocks))
        del self.blocks[block]
        return block


class LruCache(FifoCache):
    """The block not used for the longest time leaves."""

    def access(self, block: int, write: bool) -> Verdict:
        """Decide about one access."""
        if block in self.blocks:
            self.blocks[block] = self.blocks.pop(block)
            return Verdict.HIT
        return super().access(block, write)
