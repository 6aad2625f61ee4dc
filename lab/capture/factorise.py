"""An out-of-core LU factorisation in blocks, right-looking, without pivots.

For: one application. Must never know: how a trace is recorded. Units: rows; bytes in files.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from application import Application

Key = tuple[int, int]
Block = NDArray[np.float64]
ITEM_BYTES = 8


class Buffers:
    """A few blocks of the matrix in memory, the one not used for longest replaced."""

    def __init__(self, descriptor: int, count: int, rows: int, across: int) -> None:
        self.descriptor, self.across = descriptor, across
        self.bytes = rows * rows * ITEM_BYTES
        # Page-aligned, as direct input and output needs it.
        pool = mmap.mmap(-1, count * self.bytes)
        self.view = memoryview(pool)
        self.blocks: list[Block] = [
            np.frombuffer(pool, np.float64, rows * rows, slot * self.bytes).reshape(rows, rows)
            for slot in range(count)
        ]
        self.free = list(range(count))
        self.held: dict[Key, int] = {}
        self.dirty: set[Key] = set()

    def _part(self, slot: int) -> memoryview:
        return self.view[slot * self.bytes : (slot + 1) * self.bytes]

    def _offset(self, key: Key) -> int:
        return (key[0] * self.across + key[1]) * self.bytes

    def evict(self, key: Key) -> None:
        """Write a block back if it was changed, and let it go."""
        slot = self.held.pop(key)
        if key in self.dirty:
            os.pwrite(self.descriptor, self._part(slot), self._offset(key))
            self.dirty.discard(key)
        self.free.append(slot)

    def get(self, key: Key, change: bool = False) -> Block:
        """Return a block, read if it is not held."""
        if key in self.held:
            self.held[key] = self.held.pop(key)
        else:
            if not self.free:
                self.evict(next(iter(self.held)))
            slot = self.free.pop()
            os.preadv(self.descriptor, [self._part(slot)], self._offset(key))
            self.held[key] = slot
        if change:
            self.dirty.add(key)
        return self.blocks[self.held[key]]

    def close(self) -> None:
        """Write back what was changed."""
        for key in list(self.held):
            self.evict(key)
        os.fsync(self.descriptor)


def factorise(block: Block) -> tuple[Block, Block]:
    """Factorise a diagonal block in place; return the inverses of its two factors."""
    for row in range(len(block)):
        block[row + 1 :, row] /= block[row, row]
        block[row + 1 :, row + 1 :] -= np.outer(block[row + 1 :, row], block[row, row + 1 :])
    lower: Block = np.asarray(np.linalg.inv(np.tril(block, -1) + np.eye(len(block))), np.float64)
    upper: Block = np.asarray(np.linalg.inv(np.triu(block)), np.float64)
    return lower, upper


@dataclass
class Lu(Application):
    """The factorisation of one matrix, diagonally dominant, of `rows` by `rows`."""

    name = "lu"
    rows: int = 8192
    block: int = 128
    buffers: int = 96
    direct: bool = True

    def prepare(self) -> None:
        """Write the matrix block by block."""
        across, block = self.rows // self.block, self.block
        rng = np.random.default_rng(self.place.seed)
        with (self.data / "matrix").open("wb") as file:
            for row in range(across):
                for column in range(across):
                    values = rng.random((block, block))
                    if row == column:
                        values += self.rows * np.eye(block)
                    file.write(values.tobytes())

    def run(self) -> None:
        """Factorise until done or the time is up."""
        across = self.rows // self.block
        flags = os.O_RDWR | (os.O_DIRECT if self.direct else 0)
        descriptor = os.open(self.data / "matrix", flags)
        buffers = Buffers(descriptor, self.buffers, self.block, across)
        done = 0
        while done < across and self.left() > 0 and self.step(buffers, done, across):
            done += 1
        buffers.close()
        os.close(descriptor)
        print(f"lu: {done} of {across} block columns")

    def step(self, buffers: Buffers, pivot: int, across: int) -> bool:
        """Factorise one block column and row, and update what is right of and below it.

        Return whether that was done when the time was up.
        """
        lower, upper = factorise(buffers.get((pivot, pivot), change=True))
        for other in range(pivot + 1, across):
            column = buffers.get((other, pivot), change=True)
            column[:] = column @ upper
            row = buffers.get((pivot, other), change=True)
            row[:] = lower @ row
        for down in range(pivot + 1, across):
            for right in range(pivot + 1, across):
                if self.left() <= 0:
                    return False
                left = buffers.get((down, pivot)).copy()
                target = buffers.get((down, right), change=True)
                target[:] -= left @ buffers.get((pivot, right))
        return True
