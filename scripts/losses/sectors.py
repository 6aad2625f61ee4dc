"""What each sector of a volume may hold, by what was written, answered and flushed.

A sector says of which volume, place and write its content is. A `Volume` is told of each request
when it is sent and when it is answered, of restarts and of losses of power, and judges all that is
read. Of two changes one is before the other only if it had ended when the other one was sent.

- Content is durable when a flush was sent after its write was answered, and was answered itself; or
  when a write with FUA was. Nothing older may be read from then on.
- While the server lives, nothing older may be read than what it has answered in this life.
- After a restart each sector holds durable content or later content. What is read first counts from
  then on: later content that was not there does not come back. After a loss of power, and after an
  end in order, it is durable.
- A trimmed sector may hold anything that it ever held, or zeroes, until it is written again.

Places and counts are sectors of 512 bytes, times are turns of a counter.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable
from dataclasses import dataclass

SECTOR = 512
MAGIC = b"asector\n"
HEAD = struct.Struct("<8sQQQ")
COPIES = SECTOR // HEAD.size
ZEROES = bytes(SECTOR)
NEVER = 1 << 62
# Changes and lives that a report of a problem shows at most.
SHOWN = 12


@dataclass(slots=True, eq=False)
class Change:
    """A write, zeroes or a trim of some sectors, or what was found in one."""

    # "write", "zero", "trim" or "found".
    kind: str
    # Of the data; 0 for zeroes.
    version: int
    first: int
    count: int
    life: int
    sent: int
    # When it can no longer take effect: it was answered, or the server was gone.
    ended: int = NEVER
    is_answered: bool = False
    is_fua: bool = False

    def describe(self) -> str:
        """Say what it was, and when."""
        end = f"{'answered at' if self.is_answered else 'no answer until'} {self.ended}"
        return (
            f"life {self.life}: {self.kind} {self.version}{' with FUA' if self.is_fua else ''}, "
            f"{self.count} sectors at {self.first}, sent at {self.sent}, "
            f"{'under way' if self.ended == NEVER else end}"
        )


@dataclass
class Life:
    """The time from one start of the server to its end."""

    number: int
    begin: int
    # Whether all that it finds is durable.
    finds_durable: bool
    # When the last flush was sent that was answered.
    flushed: int = 0


@dataclass(frozen=True)
class Problem:
    """A sector that holds what it may not, and what it had seen before."""

    volume: str
    sector: int
    found: str
    expected: str
    story: tuple[str, ...]

    def __str__(self) -> str:
        """Return lines for people."""
        place = f"volume {self.volume}, sector {self.sector}"
        head = f"{place}: found {self.found}, expected {self.expected}"
        return "\n".join([head, *(f"    {line}" for line in self.story)])


class Volume:
    """What the sectors of one volume may hold."""

    def __init__(self, name: str, number: int, sectors: int) -> None:
        """Make one that holds zeroes, durably."""
        self.name, self.number, self.sectors = name, number, sectors
        self.problems: list[Problem] = []
        self._turns = itertools.count(1)
        self._life = Life(0, 0, finds_durable=True)
        self._blank = Change("found", 0, 0, sectors, 0, 0, ended=0, is_answered=True)
        # Of sectors that were changed: all that each may hold.
        self._held: dict[int, list[Change]] = {}
        # Those of them that may hold several things.
        self._open: set[int] = set()
        self._changes: list[Change] = []
        self._writes: dict[int, Change] = {}
        self._under_way: set[Change] = set()
        # When reads that are under way were sent, and what was dropped since, with the turn.
        self._reads: list[int] = []
        self._dropped: dict[int, list[tuple[int, Change]]] = {}
        self._events: list[str] = []

    def now(self) -> int:
        """Return the turn of what happens now."""
        return next(self._turns)

    def send(self, kind: str, first: int, count: int, *, fua: bool = False) -> Change:
        """Note that a `write`, `zero` or `trim` is sent."""
        sent = self.now()
        version = sent if kind == "write" else 0
        change = Change(kind, version, first, count, self._life.number, sent, is_fua=fua)
        self._changes.append(change)
        self._under_way.add(change)
        if version:
            self._writes[version] = change
        for sector in range(first, first + count):
            self._held.setdefault(sector, [self._blank]).append(change)
            self._open.add(sector)
        return change

    def data(self, change: Change) -> bytes:
        """Return what a write sends."""
        sectors = range(change.first, change.first + change.count)
        return b"".join(self._content(sector, change.version) for sector in sectors)

    def answer(self, change: Change) -> None:
        """Note that a change is answered."""
        change.ended, change.is_answered = self.now(), True
        self._under_way.discard(change)
        if change.is_fua:
            for sector in range(change.first, change.first + change.count):
                self._drop_before(sector, change.sent)

    def flush(self, sent: int) -> None:
        """Note that a flush that was sent at this turn is answered."""
        life = self._life
        life.flushed = max(life.flushed, sent)
        self._note(f"flush sent at {sent}, answered at {self.now()}")
        self._make_durable(sent)

    def _make_durable(self, sent: int) -> None:
        """Drop what is before content that this life has answered before a turn."""
        for sector in list(self._open):
            durable = self._certain(self._held[sector], sent)
            if durable is not None:
                self._drop_before(sector, durable)

    def _certain(self, held: Iterable[Change], sent: int) -> int | None:
        """When the last change was sent that this life had answered before a turn."""
        life = self._life.number
        answered = (one for one in held if one.life == life and one.is_answered)
        return max((one.sent for one in answered if one.ended < sent), default=None)

    def _drop_before(self, sector: int, sent: int) -> None:
        """Drop what had ended before a durable change was sent."""
        held = self._held[sector]
        kept = [one for one in held if one.ended >= sent]
        if self._reads and len(kept) < len(held):
            # A read that was sent before may still find it.
            turn, oldest = self.now(), min(self._reads)
            recent = [pair for pair in self._dropped.get(sector, []) if pair[0] > oldest]
            recent += [(turn, one) for one in held if one.ended < sent]
            self._dropped[sector] = recent
        self._hold(sector, kept)

    def _hold(self, sector: int, held: list[Change]) -> None:
        self._held[sector] = held
        if len(held) == 1:
            self._open.discard(sector)
        else:
            self._open.add(sector)

    def restart(self, *, lost: bool, in_order: bool = False) -> None:
        """Note that the server is gone, with a loss of power or without, perhaps in order."""
        turn = self.now()
        if in_order:
            self._make_durable(turn)
        for change in self._under_way:
            change.ended = turn
        self._under_way.clear()
        self._reads.clear()
        self._dropped.clear()
        self._life = Life(self._life.number + 1, self.now(), finds_durable=lost or in_order)
        how = "loss of power" if lost else "end in order" if in_order else "kill"
        self._note(f"begins at {self._life.begin} behind a {how}")

    def send_read(self) -> int:
        """Note that a read is sent; `judge` takes the turn that this returns."""
        sent = self.now()
        self._reads.append(sent)
        return sent

    def judge(self, sent: int, first: int, data: bytes) -> None:
        """Judge what a read found that was sent at this turn."""
        if sent in self._reads:
            self._reads.remove(sent)
        for at in range(0, len(data), SECTOR):
            sector, part = first + at // SECTOR, data[at : at + SECTOR]
            held = self._held.get(sector)
            if held is None:
                if part != ZEROES:
                    self._report(sector, part, [self._blank])
            elif len(held) > 1 or part != self._content(sector, held[0].version):
                self._judge_open(sent, sector, part)

    def _judge_open(self, sent: int, sector: int, part: bytes) -> None:
        held, life = self._held[sector], self._life
        dropped = [one for turn, one in self._dropped.get(sector, []) if turn > sent]
        certain = self._certain([*held, *dropped], sent)
        readable = [one for one in [*held, *dropped] if certain is None or one.ended >= certain]
        matching = [one for one in readable if self._may_be(one, sector, part)]
        if not matching:
            self._report(sector, part, readable)
        elif all(one.life < life.number and one.kind != "trim" for one in held):
            self._find(sector, matching)

    def _find(self, sector: int, matching: list[Change]) -> None:
        """Note what a sector has held since this life began, which is read for the first time."""
        life = self._life
        version = matching[0].version
        found = Change("found", version, sector, 1, life.number, life.begin, life.begin, True)
        if life.finds_durable or life.flushed > life.begin:
            self._hold(sector, [found])
            return
        # What is later than all that it may be is gone for ever.
        latest = max(one.ended for one in matching)
        others = (one for one in self._held[sector] if one.version != version)
        self._hold(sector, [*(one for one in others if one.sent <= latest), found])

    def _may_be(self, change: Change, sector: int, part: bytes) -> bool:
        """Whether a change may be why a sector holds this."""
        if change.kind != "trim":
            return part == self._content(sector, change.version)
        _, _, _, version = HEAD.unpack_from(part)
        write = self._writes.get(version)
        if part == ZEROES or write is None:
            return part == ZEROES
        is_here = write.first <= sector < write.first + write.count
        return is_here and part == self._content(sector, version)

    def _content(self, sector: int, version: int) -> bytes:
        if not version:
            return ZEROES
        return HEAD.pack(MAGIC, self.number, sector, version) * COPIES

    @staticmethod
    def _text(change: Change) -> str:
        if change.kind == "trim":
            return "anything before a trim"
        return f"version {change.version}" if change.version else "zeroes"

    def _note(self, event: str) -> None:
        self._events.append(f"life {self._life.number}: {event}")

    def _report(self, sector: int, part: bytes, allowed: list[Change]) -> None:
        magic, volume, place, version = HEAD.unpack_from(part)
        kind = "found"
        if part == ZEROES:
            found = "zeroes"
        elif magic != MAGIC or part != part[: HEAD.size] * COPIES:
            found, kind = f"garbage ({part[: HEAD.size].hex()}...)", "trim"
        elif (volume, place) != (self.number, sector):
            found, kind = f"version {version} of volume {volume}, sector {place}", "trim"
        else:
            found = f"version {version}"
        texts = {self._text(one) for one in allowed}
        seen = [one for one in self._changes if one.first <= sector < one.first + one.count]
        seen = seen[-SHOWN:] + [one for one in allowed if one.kind == "found"]
        story = [one.describe() for one in seen] + self._events[-SHOWN:]
        expected = " or ".join(sorted(texts))
        self.problems.append(Problem(self.name, sector, found, expected, tuple(story)))
        # It counts from now on, so that it is reported once; foreign content like a trim.
        now, life = self.now(), self._life.number
        own = 0 if kind == "trim" else version
        self._hold(sector, [Change(kind, own, sector, 1, life, now, now, is_answered=True)])
