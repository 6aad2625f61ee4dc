"""The judge of `scripts/live_losses.py`: what a sector may hold, on histories made by hand."""

import random
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from losses.sectors import SECTOR, ZEROES, Change, Volume  # noqa: E402

ALL = 8


def written(volume: Volume, first: int = 0, count: int = 1, *, fua: bool = False) -> bytes:
    """Write, with an answer; the data."""
    change = volume.send("write", first, count, fua=fua)
    volume.answer(change)
    return volume.data(change)


def flushed(volume: Volume) -> None:
    """Flush, with an answer."""
    volume.flush(volume.now())


def is_right(volume: Volume, data: bytes, first: int = 0) -> bool:
    """Whether a read may find this."""
    before = len(volume.problems)
    volume.judge(volume.send_read(), first, data)
    return len(volume.problems) == before


def test_flushed_content_may_not_be_older_after_a_loss_of_power() -> None:
    for fua in (False, True):
        volume = Volume("a", 0, ALL)
        old = written(volume)
        written(volume, fua=fua)
        if not fua:
            flushed(volume)
        volume.restart(lost=True)
        assert not is_right(volume, old)
        assert "found version 1, expected version" in str(volume.problems[0])


def test_what_was_read_after_a_loss_of_power_stays() -> None:
    volume = Volume("a", 0, ALL)
    old, new = written(volume), written(volume)
    volume.restart(lost=True)
    assert is_right(volume, old)
    assert not is_right(volume, new)


def test_unflushed_content_is_old_or_new_but_from_its_own_place() -> None:
    for found in ("zeroes", "old", "new", "torn", "other"):
        volume = Volume("a", 0, ALL)
        old = written(volume, 0, 2)
        new = written(volume, 0, 2)
        volume.restart(lost=True)
        texts = {
            "zeroes": bytes(2 * SECTOR),
            "old": old,
            "new": new,
            "torn": new[:SECTOR] + old[SECTOR:],
            "other": new[SECTOR:] + new[:SECTOR],
        }
        assert is_right(volume, texts[found]) == (found != "other"), found
    volume = Volume("a", 0, ALL)
    assert not is_right(volume, b"x" * SECTOR)
    assert not is_right(volume, written(Volume("b", 1, ALL)))


def test_what_is_read_behind_a_kill_and_flushed_is_durable() -> None:
    for reads_first in (True, False):
        volume = Volume("a", 0, ALL)
        old = written(volume)
        flushed(volume)
        new = written(volume)
        volume.restart(lost=False)
        if not reads_first:
            flushed(volume)
        assert is_right(volume, new)
        if reads_first:
            flushed(volume)
        volume.restart(lost=True)
        assert not is_right(volume, old)


def test_what_is_read_behind_a_kill_without_a_flush_may_go_back_but_not_forth() -> None:
    for found, right in ((0, True), (1, True), (2, False)):
        volume = Volume("a", 0, ALL)
        texts = [written(volume)]
        flushed(volume)
        texts += [written(volume), written(volume)]
        volume.restart(lost=False)
        assert is_right(volume, texts[1])
        volume.restart(lost=True)
        assert is_right(volume, texts[found]) == right


def test_a_living_server_reads_what_it_has_answered_last() -> None:
    volume = Volume("a", 0, ALL)
    old, new = written(volume), written(volume)
    assert is_right(volume, new)
    assert not is_right(volume, old)


def test_a_read_that_was_under_way_may_find_what_was_there_before() -> None:
    volume = Volume("a", 0, ALL)
    old = written(volume)
    sent = volume.send_read()
    written(volume, fua=True)
    volume.judge(sent, 0, old)
    assert not volume.problems
    assert not is_right(volume, old)


def test_writes_at_one_time_have_no_order() -> None:
    for found in (0, 1):
        volume = Volume("a", 0, ALL)
        changes = [volume.send("write", 0, 1), volume.send("write", 0, 1)]
        for change in changes:
            volume.answer(change)
        flushed(volume)
        volume.restart(lost=True)
        assert is_right(volume, volume.data(changes[found]))


def test_a_trim_may_leave_anything_that_was_there_until_a_write_is_durable() -> None:
    volume = Volume("a", 0, ALL)
    old = written(volume)
    flushed(volume)
    volume.answer(volume.send("trim", 0, 1))
    flushed(volume)
    assert is_right(volume, old)
    assert is_right(volume, ZEROES)
    assert not is_right(volume, b"x" * SECTOR)
    volume = Volume("a", 0, ALL)
    old = written(volume)
    volume.answer(volume.send("trim", 0, 1))
    written(volume, fua=True)
    volume.restart(lost=True)
    assert not is_right(volume, old)
    assert is_right(volume, old), "a problem is reported once"


def test_all_that_was_answered_is_durable_behind_an_end_in_order() -> None:
    volume = Volume("a", 0, ALL)
    old = written(volume)
    written(volume)
    volume.restart(lost=True, in_order=True)
    assert not is_right(volume, old)


class Medium:
    """A device as it should be, with volatile writes that a loss of power keeps or loses."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        self.content = [ZEROES] * ALL
        self.durable = [ZEROES] * ALL

    def apply(self, volume: Volume, change: Change) -> None:
        data = volume.data(change) if change.kind == "write" else bytes(change.count * SECTOR)
        for place in range(change.count):
            part = data[place * SECTOR : (place + 1) * SECTOR]
            if change.kind != "trim" or self.random.random() < 0.5:
                self.content[change.first + place] = part
                if change.is_fua:
                    self.durable[change.first + place] = part
            if self.random.random() < 0.2:
                self.durable[change.first + place] = part

    def crash(self) -> None:
        self.content = list(self.durable)


def test_a_device_that_keeps_its_promises_is_always_right() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        volume, medium = Volume("a", 0, ALL), Medium(rng)
        waiting: list[Change] = []
        for _ in range(60):
            step = rng.choice(("send", "send", "send", "answer", "answer", "flush", "read", "end"))
            if step == "send":
                first = rng.randrange(ALL)
                kind = rng.choice(("write", "write", "zero", "trim"))
                count = rng.randint(1, ALL - first)
                waiting.append(volume.send(kind, first, count, fua=rng.random() < 0.2))
            elif step == "answer" and waiting:
                change = waiting.pop(rng.randrange(len(waiting)))
                medium.apply(volume, change)
                volume.answer(change)
            elif step == "flush":
                sent = volume.now()
                medium.durable = list(medium.content)
                volume.flush(sent)
            elif step == "read":
                volume.judge(volume.send_read(), 0, b"".join(medium.content))
            elif step == "end" and rng.random() < 0.4:
                lost = rng.random() < 0.5
                if waiting and rng.random() < 0.5:
                    medium.apply(volume, waiting[0])
                waiting.clear()
                if lost:
                    medium.crash()
                volume.restart(lost=lost)
            assert not volume.problems, f"seed {seed}: {volume.problems[0]}"
