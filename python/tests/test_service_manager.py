"""A live server under a service manager: words to it, sockets from it, and its unit.

For: what systemd relies on. Must never know: how requests are carried out.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command
from test_serve import MIB, STACK, opened

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
# Makes a descriptor number 3, tells the process of it, and becomes the command that follows.
PASS = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""
# systemd's own scale, in tenths: 0 is safest, 100 is a service without any bound.
MOST_EXPOSED = 25


@pytest.fixture
def stack(tmp_path: Path, command: Command) -> Path:
    """Give a stack whose devices are formatted."""
    for name, mib in (("cache.img", 32), ("data.img", 8)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(mib * MIB)
    path = tmp_path / "stack.toml"
    path.write_text(STACK)
    assert command("live", "format", path).status == 0
    return path


def words_of(manager: socket.socket) -> set[str]:
    """Wait for the next message to the manager."""
    return set(manager.recv(4096).decode().split("\n"))


def test_the_manager_is_told_of_start_life_and_end(stack: Path) -> None:
    path = stack.parent / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        env = os.environ | {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "100000"}
        words = [sys.executable, "-m", "cachewright", "serve", str(stack)]
        with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL) as process:
            assert words_of(manager) >= {"READY=1", "STATUS=serving data"}
            opened(stack.parent / "live.sock").close()
            for _ in range(3):
                assert "WATCHDOG=1" in words_of(manager)
            process.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in words_of(manager):
                pass
            assert process.wait() == 0


def activated(stack: Path, listener: socket.socket) -> subprocess.Popen[bytes]:
    """Start a server that gets a socket as its descriptor 3, as systemd passes it."""
    server = [sys.executable, "-m", "cachewright", "serve", str(stack)]
    number = listener.fileno()
    words = [sys.executable, "-c", PASS, str(number), *server, "--set", 'serve.listen=["systemd"]']
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, pass_fds=(number,))


def test_clients_wait_at_a_passed_socket_while_the_server_is_started_again(stack: Path) -> None:
    path = stack.parent / "passed.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        for round_ in range(2):
            # The client connects before there is a server that could answer.
            early = socket.socket(socket.AF_UNIX)
            early.connect(str(path))
            with activated(stack, listener) as process, early:
                assert early.recv(18, socket.MSG_WAITALL)[:8] == b"NBDMAGIC"
                client = opened(path)
                content = bytes([round_ + 1]) * 4096
                client.sendall(struct.pack(">IHHQQI", 0x25609513, 1, 1, 1, 0, 4096) + content)
                assert client.recv(16, socket.MSG_WAITALL)[4:8] == bytes(4)
                client.close()
                process.send_signal(signal.SIGTERM)
                assert process.wait() == 0
            assert path.exists(), "the socket is the manager's"


def test_a_stack_for_a_manager_that_passes_nothing_is_refused(
    stack: Path, command: Command
) -> None:
    refused = command("serve", stack, "--set", 'serve.listen=["systemd"]')
    assert refused.status == 2
    assert "no socket that it has passed; expected a socket unit" in refused.err


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `systemd-analyze`; skips the test where it is not installed."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze to judge the unit")
    words = ["systemd-analyze", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_unit_is_sound_and_may_do_little(tmp_path: Path) -> None:
    for name in ("cachewrightd@.service", "cachewrightd@.socket"):
        text = (PACKAGING / name).read_text()
        # The binary is not installed here; the name of an instance takes the place of `%i`.
        text = text.replace("/usr/bin/cachewrightd", sys.executable)
        (tmp_path / name.replace("@", "@main")).write_text(text)
    units = sorted(str(path) for path in tmp_path.iterdir())
    found = analyze("verify", "--man=no", *units)
    assert (found.returncode, found.stderr) == (0, "")
    service = str(PACKAGING / "cachewrightd@.service")
    judged = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", service)
    assert judged.returncode == 0, judged.stdout.splitlines()[-1]
