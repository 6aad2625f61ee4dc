"""Virtual desktops: QEMU's block layer on overlays (qcow2) of one template.

For: one application. Must never know: how a trace is recorded. A guest reads the files of its boot
and of programs from the template, writes its profile and documents into its overlay, and takes in
an update now and then. What a guest has read stays in its memory until it is switched off. Units:
MiB and KiB in settings, bytes in images.
"""

from __future__ import annotations

import math
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from application import Application, Zipf

PAGE = 4096
PROMPT = b"qemu-io> "
MIB = 1 << 20
BOOT_FILES = 700
PROGRAM_FILES = 60
PROFILE_BYTES = 16 * MIB


class Disk:
    """A guest's disk: `qemu-io` on its overlay."""

    def __init__(self, overlay: Path) -> None:
        command = ["qemu-io", "-f", "qcow2", "-t", "writeback", str(overlay)]
        self.process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.wait()

    def do(self, *commands: str) -> None:
        """Run commands one after another: `qemu-io` takes a line when it has asked for it."""
        assert self.process.stdin is not None
        for command in commands:
            self.process.stdin.write(f"{command}\n".encode())
            self.wait()

    def wait(self) -> None:
        """Wait until the prompt stands. Errors: `OSError` with the program's own words."""
        assert self.process.stdout is not None
        found = b""
        while not found.endswith(PROMPT):
            part = self.process.stdout.read(PAGE)
            if not part:
                raise OSError(f"qemu-io: ended after {found.decode()!r}")
            found += part
        if said := found.removesuffix(PROMPT).strip():
            raise OSError(f"qemu-io: {said.decode()}")

    def close(self) -> None:
        """Switch off."""
        self.process.communicate(b"quit\n")


@dataclass
class Desktops(Application):
    """Desktops that boot together at the beginning, and each for itself later.

    `per_second` bounds the actions of one desktop between its boots; 0 does not.
    """

    name = "desktops"
    desktops: int = 6
    template_mib: int = 384
    spare_mib: int = 128
    mean_kb: float = 40.0
    programs: int = 40
    alpha: float = 0.8
    actions: int = 40
    per_second: float = 20.0
    update: float = 0.02

    def prepare(self) -> None:
        """Write the template and an empty overlay per desktop."""
        rng = random.Random(self.place.seed)
        template = self.data / "template.raw"
        with template.open("wb") as file:
            for _ in range(self.template_mib):
                file.write(rng.randbytes(MIB))
            file.truncate((self.template_mib + self.spare_mib) * MIB)
        for number in range(self.desktops):
            make = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(template)]
            subprocess.run([*make, str(self.overlay(number))], check=True)

    def overlay(self, number: int) -> Path:
        """Return the overlay of a desktop."""
        return self.data / f"desktop{number}.qcow2"

    def files(self) -> list[tuple[int, int]]:
        """Return offset and length of the template's files, the same for all desktops."""
        rng, at = random.Random(self.place.seed + 1), 0
        found: list[tuple[int, int]] = []
        mean = math.log(self.mean_kb * 1024) - 0.5
        while True:
            length = int(min(4 * MIB, rng.lognormvariate(mean, 1.0))) // PAGE * PAGE + PAGE
            if at + length > self.template_mib * MIB:
                return found
            found.append((at, length))
            at += length

    def run(self) -> None:
        """Let the desktops work."""
        self.fork(self.desktops, self.work)

    def work(self, number: int, rng: random.Random) -> None:
        """Boot, work and switch off until the time is up."""
        guest = Guest(self, number, rng)
        while self.left() > 0:
            guest.boot()
            for _ in range(1 + int(rng.expovariate(1.0 / self.actions))):
                if self.left() <= 0:
                    break
                self.wait_turn(rng, self.per_second)
                guest.act()
            guest.disk.close()


class Guest:
    """One desktop: what it has read since it was switched on, and where it writes."""

    def __init__(self, own: Desktops, number: int, rng: random.Random) -> None:
        self.own, self.rng = own, rng
        self.overlay = own.overlay(number)
        self.files = own.files()
        order = np.random.default_rng(own.place.seed).permutation(len(self.files)).tolist()
        self.boot_files, rest = order[:BOOT_FILES], order[BOOT_FILES:]
        starts = range(0, max(1, len(rest) - PROGRAM_FILES), PROGRAM_FILES)
        self.programs = [rest[at : at + PROGRAM_FILES] for at in starts][: own.programs]
        self.popular = Zipf(len(self.programs), own.alpha, own.place.seed)
        self.pages = Zipf(PROFILE_BYTES // PAGE, 0.9, own.place.seed + number)
        self.spare = own.template_mib * MIB
        self.updated = self.spare + PROFILE_BYTES
        self.read: set[int] = set()

    def boot(self) -> None:
        """Switch on and read the files of the boot."""
        self.disk, self.read = Disk(self.overlay), set()
        self.load(self.boot_files)

    def load(self, files: list[int]) -> None:
        """Read files that are not in the guest's memory."""
        for number in files:
            if number not in self.read and self.own.left() > 0:
                self.read.add(number)
                at, length = self.files[number]
                parts = range(at, at + length, 32 * PAGE)
                ends = [min(32 * PAGE, at + length - part) for part in parts]
                self.disk.do(*(f"read -q {a} {b}" for a, b in zip(parts, ends, strict=True)))

    def act(self) -> None:
        """Start a program, use its profile, write a document or take in an update."""
        kind = self.rng.random()
        if kind < self.own.update:
            self.update()
        elif kind < 0.3:
            self.load(self.programs[self.popular.draw(self.rng)])
        elif kind < 0.85:
            # A transaction of a browser's database: the journal, its pages, a flush.
            pages = [self.spare + PAGE * self.pages.draw(self.rng) for _ in range(4)]
            writes = [f"write -q {page} {PAGE}" for page in pages]
            journal = f"write -q {self.spare + PROFILE_BYTES - 8 * PAGE} {5 * PAGE}"
            self.disk.do(*(f"read -q {page} {PAGE}" for page in pages), journal, *writes, "flush")
        else:
            at, length = self.files[self.rng.choice(self.boot_files)]
            self.disk.do(f"write -q {at} {min(length, 32 * PAGE)}", "flush")

    def update(self) -> None:
        """Write a package and replace files of a program."""
        end = self.spare + self.own.spare_mib * MIB
        if self.updated + 4 * MIB > end:
            self.updated = self.spare + PROFILE_BYTES
        self.disk.do(f"write -q {self.updated} {4 * MIB}", "flush")
        self.updated += 4 * MIB
        for number in self.programs[self.popular.draw(self.rng)]:
            at, length = self.files[number]
            self.disk.do(f"write -q {at} {min(length, MIB)}")
        self.disk.do("flush")
