"""A proxy before the engine that fails on purpose; the product itself has no such switch.

with FaultProxy(engine.address.url) as proxy:
    proxy.inject(RunThenClose(), match="INSERT INTO events")
    store = open_store(proxy.through(dsn))
"""

from __future__ import annotations

import http.client
import re
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import parse_qs, urlsplit, urlunsplit

import pytest

from approvaltrail.local.engine.compression import decompress
from approvaltrail.local.engine.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from approvaltrail.local.engine import EngineProcess

_BODY_LIMIT_BYTES = 512 << 20
_LOG_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """Answer ClickHouse's error code; nothing runs."""

    code: int
    text: str = "injected"
    status: int = 500


@dataclass(frozen=True, slots=True)
class Status:
    """Answer a bare HTTP status, 503 say, as a load balancer does; nothing runs."""

    status: int = 503


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer this, whatever it is, as if all were well; nothing runs. `cut` ends it too early."""

    body: bytes
    status: int = 200
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection before anything runs; `reset` by RST, else by FIN."""

    reset: bool = True


@dataclass(frozen=True, slots=True)
class RunThenClose:
    """Run the statement, then close without an answer: to the client the outcome is unknown."""

    reset: bool = True


@dataclass(frozen=True, slots=True)
class Delay:
    """Answer late by so many seconds; the statement has run by then."""

    seconds: float


Fault = ErrorCode | Status | Answer | Close | RunThenClose | Delay


@dataclass(slots=True)
class _Rule:
    fault: Fault
    match: re.Pattern[str]
    skip: int
    times: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that passed, and the fault it met."""

    sql: str
    fault: Fault | None


class FaultProxy:
    """An HTTP proxy on a free port before `upstream`."""

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.seen: deque[Seen] = deque(maxlen=_LOG_LIMIT)
        self._rules: list[_Rule] = []
        self._guard = threading.Lock()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def through(self, dsn: str) -> str:
        """Return the DSN with this proxy's address in the engine's place."""
        parts = urlsplit(dsn)
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}{urlsplit(self.url).netloc}"))

    def inject(self, fault: Fault, *, match: str = ".", skip: int = 0, times: int = 1) -> None:
        """Let the next `times` statements that match (a regex, after `skip` of them) meet it."""
        with self._guard:
            self._rules.append(_Rule(fault, re.compile(match, re.DOTALL), skip, times))

    def clear(self) -> None:
        """Forget all faults that have not happened yet."""
        with self._guard:
            self._rules.clear()

    def fault_for(self, sql: str) -> Fault | None:
        """Return what this statement meets, and note it."""
        with self._guard:
            fault = next(
                (self._use(rule) for rule in self._rules if self._applies(rule, sql)), None
            )
        self.seen.append(Seen(sql, fault))
        return fault

    @staticmethod
    def _applies(rule: _Rule, sql: str) -> bool:
        if rule.times <= 0 or not rule.match.search(sql):
            return False
        if rule.skip > 0:
            rule.skip -= 1
            return False
        return True

    @staticmethod
    def _use(rule: _Rule) -> Fault:
        rule.times -= 1
        return rule.fault

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet: broken connections are what this server is for."""


class _Handler(BaseHTTPRequestHandler):
    proxy: ClassVar[FaultProxy]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Write nothing."""

    def _handle(self) -> None:
        body = self._read_body()
        fault = self.proxy.fault_for(self._sql(body))
        match fault:
            case ErrorCode(code, text, status):
                message = f"Code: {code}. DB::Exception: {text}. (INJECTED)\n".encode()
                self._answer(status, {"X-ClickHouse-Exception-Code": str(code)}, message)
            case Status(status):
                self._answer(status, {}, b"injected\n")
            case Answer(answered, status, cut):
                self._answer(status, {}, answered, missing=100 if cut else 0)
                if cut:
                    self._close(reset=False)
            case Close(reset):
                self._close(reset=reset)
            case RunThenClose(reset):
                self._forward(body)
                self._close(reset=reset)
            case Delay(seconds):
                answer = self._forward(body)
                time.sleep(seconds)
                self._answer(*answer)
            case None:
                self._answer(*self._forward(body))

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _sql(self, body: bytes) -> str:
        query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
        try:
            encoding = self.headers.get("Content-Encoding", "")
            plain = decompress(body, encoding, limit_bytes=_BODY_LIMIT_BYTES)
        except QueryError:
            plain = body
        return f"{query}\n{plain[:2000].decode('latin-1')}".strip()

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        dropped = {"host", "content-length", "transfer-encoding", "connection"}
        headers = {key: value for key, value in self.headers.items() if key.lower() not in dropped}
        connection = http.client.HTTPConnection(self.proxy.upstream, timeout=120)
        try:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            dropped |= {"date", "server"}
            kept = {key: value for key, value in answer.getheaders() if key.lower() not in dropped}
            return answer.status, kept, answer.read()
        except OSError:
            return 502, {}, b"the engine does not answer\n"
        finally:
            connection.close()

    def _answer(
        self, status: int, headers: dict[str, str], body: bytes, *, missing: int = 0
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + missing))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _close(self, *, reset: bool) -> None:
        self.close_connection = True
        if reset:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.rfile.close()  # the last reference: the kernel sends RST now
        else:
            self.connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def engine_faults(engine: EngineProcess) -> Iterator[FaultProxy]:
    """Give a proxy before the running engine: `engine_faults.through(database)`."""
    with FaultProxy(engine.address.url) as proxy:
        yield proxy
