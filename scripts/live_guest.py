#!/usr/bin/env python3
"""Boots a guest whose disk is a volume of the live server, and kills both while it writes.

For: `scripts/live_guest.py [--kills N] [--server PATH] [--folder DIR]`. QEMU emulates a machine,
so that no `/dev/kvm` is needed. Its kernel is one of the system's, in `/boot`; the rest is busybox.
The guest mounts ext4 from a vhost-user disk and writes files, each followed by a sync that it
reports. The server gets SIGKILL N times and starts again while the guest runs, which must go on;
then the guest gets SIGKILL. Another guest mounts the file system, compares each file that was
reported with what it should hold, and runs `e2fsck -fn`. Needs Linux on x86-64 and the tools named
in `TOOLS`; without them it says `skipped`. Units: seconds, MiB.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("qemu-system-x86_64", "busybox", "modprobe", "mkfs.ext4", "e2fsck", "ldd")
MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
# A guest under emulation, on a machine that does other things as well.
PATIENCE = 150.0
STACK = """
[cache]
capacity = "24MiB"
policy = "s3-fifo"
write = "write-back"

[serve]
devices = ["cache.img"]
listen = ["vhost:disk.sock"]
segment = "1MiB"

[[tenant]]
name = "data"
backing = "data.img"
"""
INIT = """#!/bin/sh
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for module in $(cat /modules); do insmod /$module; done
while [ ! -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /mnt || echo "guest: no file system"
content() { i=0; while [ $i -lt 400 ]; do echo "$1 $i"; i=$((i + 1)); done; }
if grep -q task=write /proc/cmdline; then
    n=0
    while true; do
        n=$((n + 1))
        content $n > /mnt/file-$n && sync -f /mnt/file-$n && echo "guest: synced $n"
    done
fi
last=$(sed 's/.*last=\\([0-9]*\\).*/\\1/' /proc/cmdline)
n=0
while [ $n -lt $last ]; do
    n=$((n + 1))
    content $n | cmp -s - /mnt/file-$n || echo "guest: lost $n"
done
umount /mnt
e2fsck -fn /dev/vda && echo "guest: whole"
poweroff -f
"""


def missing() -> str | None:
    """Name what is needed and not here; nothing if all is."""
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return tool
    if kernel() is None:
        return "a kernel in /boot with its modules"
    return None


def kernel() -> tuple[Path, str] | None:
    """Find the newest kernel that has modules, and its version."""
    for image in sorted(Path("/boot").glob("vmlinuz-*"), reverse=True):
        version = image.name.removeprefix("vmlinuz-")
        if Path("/lib/modules", version).is_dir():
            return image, version
    return None


def call(*words: str | Path) -> str:
    """Run a program; ends this one with its output if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        shown = " ".join(str(word) for word in words)
        sys.exit(f"{shown}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def archive(entries: list[tuple[str, int, bytes]]) -> bytes:
    """Make the archive of a first file system: names, modes and contents (source: cpio, newc)."""
    out = bytearray()
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")]):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        out += b"070701" + "".join(f"{field:08x}" for field in fields).encode()
        out += name.encode() + b"\0"
        out += b"\0" * (-len(out) % 4) + content
        out += b"\0" * (-len(out) % 4)
    return gzip.compress(bytes(out), 1)


def first_files(version: str) -> bytes:
    """Make the guest's first file system: busybox, modules, a checker of file systems."""
    folders = ("bin", "sbin", "dev", "proc", "sys", "mnt", "lib", "lib64", "usr", "usr/lib", "m")
    entries: list[tuple[str, int, bytes]] = [(name, 0o040755, b"") for name in folders]
    busybox = Path(shutil.which("busybox") or "")
    entries.append(("bin/busybox", 0o100755, busybox.read_bytes()))
    applets = ("sh", "mount", "umount", "insmod", "cat", "grep", "sed", "sleep", "sync", "cmp")
    entries += [(f"bin/{name}", 0o120777, b"busybox") for name in (*applets, "poweroff")]
    checker = Path(shutil.which("e2fsck") or "")
    entries.append(("sbin/e2fsck", 0o100755, checker.read_bytes()))
    made = {name for name, _, _ in entries}
    for library in re.findall(r"(/\S+)", call("ldd", checker)):
        path = Path(library)
        for folder in reversed(path.relative_to("/").parents):
            if str(folder) not in ({"."} | made):
                entries.append((str(folder), 0o040755, b""))
                made.add(str(folder))
        entries.append((str(path.relative_to("/")), 0o100755, path.resolve().read_bytes()))
    listed: list[str] = []
    for module in MODULES:
        shown = call("modprobe", "--set-version", version, "--show-depends", module)
        for path in (Path(line.split()[1]) for line in shown.splitlines() if "insmod" in line):
            name = f"m/{path.name}"
            if name not in listed:
                listed.append(name)
                entries.append((name, 0o100644, path.read_bytes()))
    entries.append(("modules", 0o100644, "\n".join(listed).encode()))
    entries.append(("init", 0o100755, INIT.encode()))
    return archive(entries)


class Scene:
    """The server, and the guest whose disk it serves."""

    def __init__(self, folder: Path, server: Path) -> None:
        """Make the devices and the guest's first file system."""
        found = kernel()
        assert found is not None
        self.folder, self.server, (self.kernel, version) = folder, server, found
        for name, mib in (("cache.img", 96), ("data.img", 256)):
            with (folder / name).open("wb") as file:
                file.truncate(mib << 20)
        call("mkfs.ext4", "-q", folder / "data.img")
        (folder / "stack.toml").write_text(STACK)
        (folder / "first.gz").write_bytes(first_files(version))
        call(sys.executable, "-m", "cachewright", "live", "format", folder / "stack.toml")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def serve(self) -> None:
        """Start the server."""
        socket = self.folder / "disk.sock"
        socket.unlink(missing_ok=True)
        with (self.folder / "server.log").open("ab") as log:
            words = [str(self.server), "stack.toml"]
            started = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log)
        self.processes["server"] = started
        while not socket.exists():
            if started.poll() is not None:
                sys.exit(f"the server has ended: {(self.folder / 'server.log').read_text()}")
            time.sleep(0.02)

    def boot(self, task: str) -> None:
        """Start a guest that does this."""
        disk = "socket,id=disk,path=disk.sock,reconnect=1"
        words = ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-cpu", "max", "-m", "192"]
        words += ["-object", "memory-backend-memfd,id=memory,size=192M,share=on"]
        words += ["-numa", "node,memdev=memory", "-nographic", "-no-reboot", "-nodefaults"]
        words += ["-serial", "stdio", "-kernel", str(self.kernel), "-initrd", "first.gz"]
        words += ["-append", f"console=ttyS0 quiet panic=-1 {task}", "-chardev", disk]
        words += ["-device", "vhost-user-blk-pci,chardev=disk,num-queues=2"]
        with (self.folder / "guest.log").open("wb") as log:
            started = subprocess.Popen(
                words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.processes["guest"] = started

    def said(self) -> str:
        """Read what the guest has said."""
        return (self.folder / "guest.log").read_text(errors="replace")

    def synced(self) -> int:
        """Find the last file that the guest has synced."""
        numbers = re.findall(r"guest: synced (\d+)", self.said())
        return int(numbers[-1]) if numbers else 0

    def wait_for_sync(self, number: int) -> float:
        """Wait until the guest has synced so many files; returns how long that took."""
        began = time.monotonic()
        while self.synced() < number:
            if self.processes["guest"].poll() is not None or time.monotonic() > began + PATIENCE:
                log = (self.folder / "server.log").read_text()
                sys.exit(f"the guest hangs or has ended: {self.said()}\n{log}")
            time.sleep(0.05)
        return time.monotonic() - began

    def kill(self, name: str) -> None:
        """Kill the server or the guest."""
        process = self.processes.pop(name, None)
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def end(self) -> None:
        """Kill what is left."""
        for name in list(self.processes):
            self.kill(name)


def judge(scene: Scene, last: int) -> str | None:
    """Let another guest look at the file system; names what is wrong."""
    scene.boot(f"task=check last={last}")
    try:
        scene.processes["guest"].wait(PATIENCE)
    except subprocess.TimeoutExpired:
        return f"the guest hangs: {scene.said()}"
    said = scene.said()
    if "guest: lost" in said or "guest: whole" not in said:
        return said
    return None


def main() -> None:
    """Kill, start, and judge."""
    parser = argparse.ArgumentParser(description="Kill the live server under a guest's disk.")
    parser.add_argument("--kills", type=int, default=3, help="kills of the server")
    parser.add_argument("--server", type=Path, default=ROOT / "target/release/cachewrightd")
    parser.add_argument("--folder", type=Path, help="where the files go; kept if it is given")
    options = parser.parse_args()
    if (needed := missing()) is not None:
        print(f"skipped: needs {needed}")
        return
    folder = options.folder or Path(tempfile.mkdtemp(prefix="cachewright-guest-"))
    folder.mkdir(parents=True, exist_ok=True)
    scene = Scene(folder, options.server.resolve())
    try:
        scene.serve()
        scene.boot("task=write")
        booted = scene.wait_for_sync(3)
        print(f"a guest writes after {booted:.0f} s")
        for number in range(options.kills):
            scene.kill("server")
            before = scene.synced()
            time.sleep(0.5)
            scene.serve()
            took = scene.wait_for_sync(before + 5)
            print(f"kill {number + 1}: file {before} was synced; five more {took:.1f} s later")
        scene.kill("guest")
        last = scene.synced()
        scene.kill("server")
        scene.serve()
        wrong = judge(scene, last)
    finally:
        scene.end()
    if wrong is not None:
        sys.exit(wrong)
    print(f"{last} files synced, none lost; the file system is whole")
    if options.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
