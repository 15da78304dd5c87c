"""ClickHouse's HTTP interface, the request's side: who asks, and what.

The interface is described at https://clickhouse.com/docs/interfaces/http.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import UploadFile

from approvaltrail.local.engine import codes
from approvaltrail.local.engine.compression import decompress, too_large
from approvaltrail.local.engine.errors import QueryError
from approvaltrail.local.engine.executor import Query

if TYPE_CHECKING:
    from starlette.requests import Request

    from approvaltrail.local.engine.folder import EngineAddress

BODY_LIMIT_BYTES = 512 << 20
"""A larger body is refused with status 413; the sink's largest block is half of it."""

_SESSION_LIMIT_SECONDS = 3600.0
_NOT_SETTINGS = frozenset(
    {
        "query",
        "query_id",
        "database",
        "user",
        "password",
        "quota_key",
        "role",
        "session_id",
        "session_timeout",
        "session_check",
        "close_session",
        "compress",
        "decompress",
        "default_format",
        "buffer_size",
        "wait_end_of_query",
        "stacktrace",
        "client_protocol_version",
        # Settings of the HTTP layer: they mean nothing to the statement.
        "enable_http_compression",
        "http_zlib_compression_level",
        "send_progress_in_http_headers",
        "cancel_http_readonly_queries_on_client_close",
        "http_headers_progress_interval_ms",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks."""

    user: str
    reader: bool


class Authenticator:
    """Knows the two users of the engine."""

    def __init__(self, address: EngineAddress) -> None:
        self._callers = {
            address.user: (address.password, Caller(user=address.user, reader=False)),
            address.reader_user: (
                address.reader_password,
                Caller(user=address.reader_user, reader=True),
            ),
        }

    def caller(self, request: Request) -> Caller:
        """Return who asks; raises QueryError 516 for an unknown user or a wrong password."""
        user, password = _credentials(request)
        expected, caller = self._callers.get(user, ("", None))
        matches = hmac.compare_digest(expected.encode(), password.encode())
        if caller is None or not matches:
            raise QueryError.of(
                codes.AUTHENTICATION_FAILED,
                "Authentication failed: password is incorrect, or there is no user with such name.",
            )
        return caller


def _credentials(request: Request) -> tuple[str, str]:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            text = base64.b64decode(encoded, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        user, _, password = text.partition(":")
        return user, password
    # No user or password in the URL: it would end in logs and histories.
    headers = request.headers
    return headers.get("x-clickhouse-user", ""), headers.get("x-clickhouse-key", "")


def query_id_of(request: Request) -> str:
    """Return the client's id for the statement, or a new one."""
    return request.query_params.get("query_id") or str(uuid.uuid4())


async def read_query(request: Request, query_id: str) -> Query:
    """Read and decode the request; raises QueryError."""
    options = dict(request.query_params)
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        body = b""
        options |= await _form_fields(request)
    else:
        body = await _bounded_body(request)
        encoding = request.headers.get("content-encoding", "")
        body = decompress(body, encoding, limit_bytes=BODY_LIMIT_BYTES)
    sql = options.get("query", "").encode("utf-8", "surrogateescape")
    if not sql.strip():
        sql, body = body, b""
    return Query(
        sql=sql,
        body=body,
        query_id=query_id,
        output_format=request.headers.get("x-clickhouse-format")
        or options.get("default_format")
        or "TabSeparated",
        database=request.headers.get("x-clickhouse-database") or options.get("database"),
        settings=_settings(options),
        parameters={
            name.removeprefix("param_"): value
            for name, value in options.items()
            if name.startswith("param_")
        },
        session_id=options.get("session_id"),
        session_timeout_seconds=_session_timeout(options.get("session_timeout")),
        close_session=options.get("close_session") == "1",
    )


def _settings(options: dict[str, str]) -> dict[str, str]:
    unsupported = next((name for name in ("compress", "decompress") if options.get(name) == "1"), 0)
    if unsupported:
        raise QueryError.of(
            codes.NOT_IMPLEMENTED,
            f"{unsupported}=1 (ClickHouse's own block compression) is not served: "
            "use Content-Encoding and Accept-Encoding.",
        )
    return {
        name: value
        for name, value in options.items()
        if name not in _NOT_SETTINGS and not name.startswith("param_")
    }


def _session_timeout(text: str | None) -> float:
    try:
        return min(float(text or 60), _SESSION_LIMIT_SECONDS)
    except ValueError:
        return 60.0


async def _form_fields(request: Request) -> dict[str, str]:
    fields = {}
    async with request.form(max_part_size=BODY_LIMIT_BYTES) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                raise QueryError.of(codes.NOT_IMPLEMENTED, "External tables are not served.")
            fields[name] = value
    return fields


async def _bounded_body(request: Request) -> bytes:
    pieces = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > BODY_LIMIT_BYTES:
            raise too_large(BODY_LIMIT_BYTES)
        pieces.append(piece)
    return b"".join(pieces)
