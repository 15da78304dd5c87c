"""A wire between a ledger and its server that breaks where a test says so."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

_EXECUTE = b"E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
_ROLLBACK = b"\x09\x00\x00\x00\x03ROLLBACK"


class AtCommit(Enum):
    """What becomes of a commit."""

    PASSED = "passed"
    LOST_BEFORE = "lost before the server has it"
    LOST_AFTER = "lost after the server did it"
    SWALLOWED = "never answered"
    DUPLICATE = "answered by MySQL's duplicate key, as TiDB does to optimistic transactions"


class Wire:
    """Forwards connections to a port of this machine."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener: socket.socket | None = None
        self._sockets: list[socket.socket] = []
        self.port = 0
        self.at_commit = AtCommit.PASSED
        self.times = 0
        """For how many more commits that holds."""
        self.then: Callable[[], None] = lambda: None
        """Runs when a commit met its fate."""
        self.commits = 0
        self.connect()

    def connect(self) -> None:
        """Take connections, on the same port as before."""
        listener = socket.create_server(("127.0.0.1", self.port), reuse_port=True)
        self._listener, self.port = listener, listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Break every connection and refuse new ones."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for one in self._sockets:
            _close(one)
        self._sockets.clear()

    def break_commits(
        self, how: AtCommit, times: int = 1, then: Callable[[], None] = lambda: None
    ) -> None:
        """Let the next commits meet this fate."""
        self.at_commit, self.times, self.then = how, times, then

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        watch, whole = _CommitWatch(), True
        with contextlib.suppress(OSError, ValueError):
            while whole:
                readable, _, _ = select.select([client, server], [], [])
                for one in readable:
                    data = one.recv(65_536)
                    whole = whole and bool(data)
                    if one is server:
                        client.sendall(data)
                    elif watch.commits(data) and self._breaks():
                        whole = whole and self._break(client, server, data)
                    else:
                        server.sendall(data)
        _close(client)
        _close(server)

    def _breaks(self) -> bool:
        self.commits += 1
        self.times -= 1
        return self.times >= 0

    def _break(self, client: socket.socket, server: socket.socket, data: bytes) -> bool:
        """Do to a commit what the test said; whether the connection goes on."""
        if self.at_commit is AtCommit.LOST_AFTER:
            server.sendall(data)
            server.recv(65_536)
        if self.at_commit is AtCommit.DUPLICATE:
            server.sendall(_ROLLBACK)
            server.recv(65_536)
        self.then()
        if self.at_commit is AtCommit.DUPLICATE:
            client.sendall(_duplicate_entry())
        if self.at_commit is AtCommit.SWALLOWED:
            client.recv(65_536)  # until its owner gives up
        return self.at_commit is AtCommit.DUPLICATE


class _CommitWatch:
    """Sees when a client's bytes make its server commit."""

    def __init__(self) -> None:
        self._parsed = False

    def commits(self, data: bytes) -> bool:
        """Say whether these bytes are a commit: MySQL's query, or the run of what was parsed."""
        if data[4:] == b"\x03COMMIT":
            return True
        if b"\x00commit\x00" in data:
            self._parsed = True
        elif data[:1] == b"P":
            self._parsed = False
        elif self._parsed and _EXECUTE in data:
            self._parsed = False
            return True
        return False


def _duplicate_entry() -> bytes:
    message = b"Duplicate entry 'n' for key 'mcp_confirm_nonce.PRIMARY'"
    body = b"\xff" + struct.pack("<H", 1062) + b"#23000" + message
    return struct.pack("<I", len(body))[:3] + b"\x01" + body


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def wire_to(port: int) -> Iterator[Wire]:
    """Give a wire to a server on this machine."""
    wire = Wire(port)
    try:
        yield wire
    finally:
        wire.cut()
