"""LRU, one access at a time.

For: the shortest policy that can be written. Must never know: traces. Source: Mattson et al., IBM
Systems Journal 9(2), 1970. Unit: blocks.

    run = cachewright.simulate_python(Lru, "trace.csv.zst", "64MiB")
    print(run.hit_ratio)
"""

from __future__ import annotations

from collections import OrderedDict


class Lru:
    """The block not used for the longest time leaves."""

    def __init__(self, capacity_blocks: int) -> None:
        self.capacity = capacity_blocks
        self.resident: OrderedDict[int, None] = OrderedDict()

    def access(self, block: int, write: bool) -> bool:
        """Use `block` and return whether it was resident."""
        if block in self.resident:
            self.resident.move_to_end(block)
            return True
        if self.capacity > 0:
            if len(self.resident) == self.capacity:
                self.resident.popitem(last=False)
            self.resident[block] = None
        return False
