"""A small client of the network block device protocol that sees nothing of the server's code.

A connection may have several requests under way; answers come in any order. Offsets and lengths are
bytes. Fixed newstyle negotiation, simple replies.
"""

from __future__ import annotations

import asyncio
import struct
from enum import IntEnum
from pathlib import Path

OPTION_MAGIC, OPTION_REPLY_MAGIC = b"IHAVEOPT", 0x3E889045565A9
REQUEST_MAGIC, REPLY_MAGIC = 0x25609513, 0x67446698
OPTION_GO, REPLY_ACK, REPLY_INFO, INFO_EXPORT = 7, 1, 3, 0
CAN_FLUSH, CAN_FUA, CAN_TRIM, CAN_ZERO, CAN_MULTI_CONN = 1 << 2, 1 << 3, 1 << 5, 1 << 6, 1 << 8
NEEDED = CAN_FLUSH | CAN_FUA | CAN_TRIM | CAN_ZERO | CAN_MULTI_CONN
FUA, NO_HOLE = 1 << 0, 1 << 1
# Seconds after which a server counts as hung.
PATIENCE = 60


class Command(IntEnum):
    """Commands of the protocol."""

    READ = 0
    WRITE = 1
    DISCONNECT = 2
    FLUSH = 3
    TRIM = 4
    ZERO = 6


class RequestError(Exception):
    """A request was answered with an error, whose number is `error`."""

    def __init__(self, error: int) -> None:
        """Keep the number."""
        super().__init__(f"error {error}")
        self.error = error


class HungError(Exception):
    """A request was not answered in `PATIENCE` seconds."""


class Connection:
    """A connection to one export."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a stream; `open` negotiates on it."""
        self.size = 0
        self._reader, self._writer = reader, writer
        self._cookie = 0
        self._lengths: dict[int, int] = {}
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._receiver: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: Path, export: str) -> Connection:
        """Connect to a socket and open an export. Errors: `ConnectionError`."""
        reader, writer = await asyncio.open_unix_connection(str(path))
        connection = cls(reader, writer)
        try:
            await asyncio.wait_for(connection._negotiate(export), PATIENCE)
        except (asyncio.IncompleteReadError, OSError) as error:
            writer.close()
            raise ConnectionError(str(error)) from error
        connection._receiver = asyncio.create_task(connection._receive())
        return connection

    async def _negotiate(self, export: str) -> None:
        greeting, magic, _ = struct.unpack(">8s8sH", await self._reader.readexactly(18))
        if greeting != b"NBDMAGIC" or magic != OPTION_MAGIC:
            raise RuntimeError(f"found the greeting {greeting!r} {magic!r}")
        name = export.encode()
        asked = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        option = struct.pack(">8sII", OPTION_MAGIC, OPTION_GO, len(asked)) + asked
        self._writer.write(struct.pack(">I", 3) + option)
        while True:
            header = await self._reader.readexactly(20)
            magic_number, _, kind, length = struct.unpack(">QIII", header)
            told = await self._reader.readexactly(length)
            if magic_number != OPTION_REPLY_MAGIC or kind not in (REPLY_ACK, REPLY_INFO):
                raise RuntimeError(f"export `{export}` was refused: {kind:#x} {told!r}")
            if kind == REPLY_ACK:
                return
            if struct.unpack(">H", told[:2])[0] == INFO_EXPORT:
                self.size, flags = struct.unpack(">QH", told[2:12])
                if flags & NEEDED != NEEDED:
                    raise RuntimeError(f"export `{export}` has the flags {flags:#x}")

    async def request(
        self,
        command: Command,
        offset: int = 0,
        length: int = 0,
        *,
        flags: int = 0,
        data: bytes = b"",
    ) -> bytes:
        """Send a request; return the data that was read.

        Errors: `RequestError` where the server answers one, `ConnectionError` where it ends first,
        `HungError` where no answer comes.
        """
        self._cookie += 1
        cookie = self._cookie
        if self._receiver is None or self._receiver.done():
            raise ConnectionError("the connection has ended")
        self._lengths[cookie] = length if command == Command.READ else 0
        answer = asyncio.get_running_loop().create_future()
        self._waiting[cookie] = answer
        header = (REQUEST_MAGIC, flags, command, cookie, offset, length)
        self._writer.write(struct.pack(">IHHQQI", *header) + data)
        try:
            return await asyncio.wait_for(answer, PATIENCE)
        except TimeoutError:
            raise HungError(f"{command.name} of {length} bytes at {offset}: no answer") from None

    async def _receive(self) -> None:
        try:
            while True:
                header = await self._reader.readexactly(16)
                magic, error, cookie = struct.unpack(">IIQ", header)
                if magic != REPLY_MAGIC or cookie not in self._waiting:
                    raise RuntimeError(f"found a reply {magic:#x} to {cookie}")
                data = b"" if error else await self._reader.readexactly(self._lengths[cookie])
                answer = self._waiting.pop(cookie)
                del self._lengths[cookie]
                if answer.done():
                    continue
                if error:
                    answer.set_exception(RequestError(error))
                else:
                    answer.set_result(data)
        except (asyncio.IncompleteReadError, OSError) as error:
            self._end(ConnectionError(str(error)))
        except RuntimeError as error:
            self._end(error)

    def _end(self, error: Exception) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(error)
        self._waiting.clear()

    async def close(self) -> None:
        """End the connection, in order where it is still there."""
        if self._receiver is not None and not self._receiver.done():
            disconnect = (REQUEST_MAGIC, 0, Command.DISCONNECT, 0, 0, 0)
            self._writer.write(struct.pack(">IHHQQI", *disconnect))
            self._receiver.cancel()
        self._end(ConnectionError("the connection was closed"))
        self._writer.close()
