"""The process of a live server, proven to be it before it gets a signal.

For: `live reload`, `live train`, `advise`. Must never know: what a server does at a signal. A
monitor names a process, and any local user can answer at a port that is free. The process is the
server if the system says so: it listens at the monitor's address, and holds the lock of a device
of the stack. A pidfd stands for it from the first look to the signal, so that a number that the
system gives to another process meanwhile does no harm. Sources: proc(5), pidfd_open(2).
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from cachewright import words
from cachewright._native import RunError

PROC = Path("/proc")
# The state of a socket that listens, in the system's tables of sockets.
LISTENS = "0A"
WORD_BYTES = 4


class ServerProcess:
    """A process that is a server. It is to be closed, as a file is."""

    def __init__(self, number: int, stack: Path, address: tuple[str, int]) -> None:
        """Prove that a process serves `stack` and listens at `address`, by IP and port.

        Errors: `RunError` when it is not there, is another one, or may not be looked at.
        """
        self.number = number
        try:
            self._descriptor = os.pidfd_open(number)
        except (OSError, OverflowError) as error:
            expected = "expected a server in this machine's or this container's own processes"
            why = words.reason(error) if isinstance(error, OSError) else str(error)
            raise RunError(f"process {number}: {why}; {expected}") from error
        try:
            self._check(stack, address)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget the process."""
        os.close(self._descriptor)

    def send(self, number: signal.Signals) -> None:
        """Send a signal. Errors: `RunError` when the process has ended or is another user's."""
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except OSError as error:
            raise self._refused(error) from error

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def _check(self, stack: Path, address: tuple[str, int]) -> None:
        folder = PROC / str(self.number)
        if not stack.is_absolute():
            # As the server was told of it.
            stack = folder / "cwd" / stack
        try:
            names = os.listdir(folder / "fd")
            listens = _listens(folder, names, address)
            holds = listens and _holds_device(folder, names, stack)
        except OSError as error:
            raise self._refused(error) from error
        if not listens:
            place = f"{address[0]}:{address[1]}"
            raise RunError(
                f"{place}: found a monitor that names process {self.number}, which does not listen "
                "there, expected the server itself; nothing was signalled"
            )
        if not holds:
            raise RunError(
                f"process {self.number}: found none of the devices and volumes of the stack "
                f"locked by it, expected the server of `{stack}`; nothing was signalled"
            )

    def _refused(self, error: OSError) -> RunError:
        found = f"process {self.number}: {words.reason(error)}"
        return RunError(f"{found}; expected a server that this user may signal")


def _listens(folder: Path, names: list[str], address: tuple[str, int]) -> bool:
    """Return whether a process of these descriptors listens at exactly this address."""
    found = set(_listeners(address))
    return any(_link(folder / "fd" / name) in found for name in names)


def _listeners(address: tuple[str, int]) -> Iterator[str]:
    """Yield the sockets that listen at an address, as links of descriptors name them."""
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    packed = socket.inet_pton(family, host)
    # The system writes each word of an address as a number of this machine.
    parts = [packed[at : at + WORD_BYTES] for at in range(0, len(packed), WORD_BYTES)]
    numbers = [f"{int.from_bytes(part, sys.byteorder):08X}" for part in parts]
    local = f"{''.join(numbers)}:{port:04X}"
    table = PROC / "self" / "net" / ("tcp6" if family == socket.AF_INET6 else "tcp")
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == local and fields[3] == LISTENS:
            yield f"socket:[{fields[9]}]"


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except FileNotFoundError:
        # It was closed meanwhile.
        return ""


def _holds_device(folder: Path, names: list[str], stack: Path) -> bool:
    """Return whether a process has a device or volume of a stack open for writing and locked."""
    devices = list(_devices(stack))
    for name in names:
        try:
            found = os.stat(folder / "fd" / name)
            if not any(os.path.samestat(found, device) for device in devices):
                continue
            facts = (folder / "fdinfo" / name).read_text()
        except FileNotFoundError:
            continue
        if _is_writer(facts) and _is_locked(facts, folder.name):
            return True
    return False


def _devices(stack: Path) -> Iterator[os.stat_result]:
    """Yield the files of the cache's devices and of the volumes of a stack that are there."""
    try:
        tables = tomllib.loads(stack.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{stack}: {error}") from error
    serve, tenants = tables.get("serve"), tables.get("tenant")
    paths = serve.get("devices") if isinstance(serve, dict) else None
    paths = list(paths) if isinstance(paths, list) else []
    tenants = tenants if isinstance(tenants, list) else []
    paths += [one.get("backing") for one in tenants if isinstance(one, dict)]
    for path in paths:
        try:
            yield os.stat(stack.parent / str(path))
        except OSError:
            # A volume that is on its way, or that the server refuses.
            continue


def _is_writer(facts: str) -> bool:
    """Return whether a descriptor can write: a lock alone can be had by reading."""
    flags = [line for line in facts.splitlines() if line.startswith("flags:")]
    return any(int(line.split()[1], 8) & os.O_ACCMODE == os.O_RDWR for line in flags)


def _is_locked(facts: str, process: str) -> bool:
    """Return whether a descriptor holds a lock of a whole file, alone, that a process took."""
    locks = [line.split()[2:] for line in facts.splitlines() if line.startswith("lock:")]
    return any(one[:4] == ["FLOCK", "ADVISORY", "WRITE", process] for one in locks)
